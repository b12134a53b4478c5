/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * NVML: GPU instances.
 */
#include "library.h"

#include <unistd.h>

/* A GPU that can be asked for profiles: with MIG off, too, unless the driver is too old for that. */
static nvmlReturn_t mig_view(nvmlDevice_t device, struct view *view)
{
    CHECK(gpu_view(device, view));
    if (!view->board->mig)
        return NVML_ERROR_NOT_SUPPORTED;
    bool refused = !view->board->mig_current && fault_active(&view->state, view->minor, FAULT_NO_PROFILES_WHEN_OFF);
    return refused ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

/* One that can be asked for instances: for root alone, with MIG on. */
static nvmlReturn_t instances_view(nvmlDevice_t device, struct view *view)
{
    CHECK(mig_view(device, view));
    if (geteuid())
        return NVML_ERROR_NO_PERMISSION;
    return view->board->mig_current ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

/* --- profiles --- */

static nvmlReturn_t profile_by_number(const struct board *board, unsigned number, const struct mig_profile **profile)
{
    if (number >= NVML_GPU_INSTANCE_PROFILE_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; i < board->mig_profile_count; i++) {
        *profile = &board->mig_profiles[i];
        if ((*profile)->number == number)
            return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned int number, nvmlGpuInstanceProfileInfo_t *info)
{
    struct view view;
    const struct mig_profile *profile;
    CHECK(mig_view(device, &view));
    if (!info)
        return NVML_ERROR_INVALID_ARGUMENT;
    CHECK(profile_by_number(view.board, number, &profile));
    *info = (nvmlGpuInstanceProfileInfo_t){
        profile->id, 0, profile->slices, profile->limit, profile->multiprocessors, profile->copy_engines, profile->decoders, profile->encoders,
        profile->jpegs, profile->ofas, profile->memory_mb};
    return NVML_SUCCESS;
}

/* Fills the second or third version of the structure, as its first member says. */
static nvmlReturn_t put_profile(const struct view *view, const struct mig_profile *profile, nvmlGpuInstanceProfileInfo_v2_t *info)
{
    if (fault_active(&view->state, view->minor, FAULT_NO_PROFILE_NAMES))
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    nvmlGpuInstanceProfileInfo_v3_t *newest = (nvmlGpuInstanceProfileInfo_v3_t *)info;
    if (info->version == nvmlGpuInstanceProfileInfo_v2) {
        *info = (nvmlGpuInstanceProfileInfo_v2_t){
            info->version, profile->id, 0, profile->slices, profile->limit, profile->multiprocessors, profile->copy_engines, profile->decoders,
            profile->encoders, profile->jpegs, profile->ofas, profile->memory_mb, ""};
        mig_name(profile, profile->slices, info->name, sizeof info->name);
    } else if (info->version == nvmlGpuInstanceProfileInfo_v3) {
        *newest = (nvmlGpuInstanceProfileInfo_v3_t){
            info->version, profile->id, profile->slices, profile->limit, profile->multiprocessors, profile->copy_engines, profile->decoders,
            profile->encoders, profile->jpegs, profile->ofas, profile->memory_mb, "",
            strstr(profile->name, "+gfx") ? NVML_GPU_INSTANCE_PROFILE_CAPS_GFX : 0};
        mig_name(profile, profile->slices, newest->name, sizeof newest->name);
    } else {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned int number, nvmlGpuInstanceProfileInfo_v2_t *info)
{
    struct view view;
    const struct mig_profile *profile;
    CHECK(mig_view(device, &view));
    if (!info)
        return NVML_ERROR_INVALID_ARGUMENT;
    CHECK(profile_by_number(view.board, number, &profile));
    return put_profile(&view, profile, info);
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoByIdV(nvmlDevice_t device, unsigned int id, nvmlGpuInstanceProfileInfo_v2_t *info)
{
    struct view view;
    CHECK(mig_view(device, &view));
    const struct mig_profile *profile = mig_profile_by_id(view.board, id);
    return info && profile ? put_profile(&view, profile, info) : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t device, unsigned int id, nvmlGpuInstancePlacement_t *placements,
                                                           unsigned int *count)
{
    struct view view;
    CHECK(mig_view(device, &view));
    if (geteuid())
        return NVML_ERROR_NO_PERMISSION;
    const struct mig_profile *profile = mig_profile_by_id(view.board, id);
    if (!profile || !count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    for (unsigned start = 0; profile->starts >> start; start++) {
        if (!(profile->starts >> start & 1))
            continue;
        if (placements)
            placements[*count] = (nvmlGpuInstancePlacement_t){start, profile->size};
        ++*count;
    }
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements(nvmlDevice_t device, unsigned int id, nvmlGpuInstancePlacement_t *placements,
                                                        unsigned int *count)
{
    return nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, id, placements, count);
}

nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device, unsigned int id, unsigned int *count)
{
    struct view view;
    CHECK(instances_view(device, &view));
    const struct mig_profile *profile = mig_profile_by_id(view.board, id);
    if (!profile || !count)
        return NVML_ERROR_INVALID_ARGUMENT;
    /* As many as can be made, in our copy of the state. */
    uint32_t start;
    for (*count = 0; (start = gpu_instance_choose(view.board, profile)) != SIM_NONE; ++*count)
        gpu_instance_add(view.board, profile, start);
    return NVML_SUCCESS;
}

/* --- instances --- */

static nvmlReturn_t create(nvmlDevice_t device, unsigned id, uint32_t start, uint32_t size, nvmlGpuInstance_t *instance)
{
    struct state state;
    uint32_t gi = 0;
    struct request request = {.operation = OP_CREATE_GI, .board = minor_of(device), .gi = gi_of(device), .ci = ci_of(device), .a = id, .b = start,
                              .c = size};
    CHECK(ready());
    if (!instance || gi_of(device) != SIM_NONE)
        return NVML_ERROR_INVALID_ARGUMENT;
    CHECK((nvmlReturn_t)sim_request(&request, &state, &gi));
    *instance = gpu_instance_handle(minor_of(device), gi);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *instance)
{
    return create(device, id, SIM_NONE, 0, instance);
}

nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t device, unsigned int id, const nvmlGpuInstancePlacement_t *placement,
                                                      nvmlGpuInstance_t *instance)
{
    return placement && placement->start != SIM_NONE ? create(device, id, placement->start, placement->size, instance)
                                                     : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t instance)
{
    struct state state;
    struct request request = {.operation = OP_DESTROY_GI, .board = minor_of(instance), .gi = gi_of(instance), .ci = SIM_NONE};
    CHECK(ready());
    return (nvmlReturn_t)sim_request(&request, &state, NULL);
}

nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *instances, unsigned int *count)
{
    struct view view;
    CHECK(instances_view(device, &view));
    const struct mig_profile *profile = mig_profile_by_id(view.board, id);
    if (!profile || !instances || !count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    for (unsigned i = 0; i < view.board->gpu_instance_count; i++)
        if (gpu_instance_profile(view.board, &view.board->gpu_instances[i]) == profile)
            instances[(*count)++] = gpu_instance_handle(view.minor, view.board->gpu_instances[i].id);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *instance)
{
    struct view view;
    CHECK(instances_view(device, &view));
    if (!instance)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!gpu_instance_by_id(view.board, id))
        return NVML_ERROR_NOT_FOUND;
    *instance = gpu_instance_handle(view.minor, id);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t instance, nvmlGpuInstanceInfo_t *info)
{
    struct view view;
    CHECK(gpu_instance_view(instance, &view));
    if (!info)
        return NVML_ERROR_INVALID_ARGUMENT;
    const struct mig_profile *profile = gpu_instance_profile(view.board, view.gi);
    *info = (nvmlGpuInstanceInfo_t){handle(view.minor), view.gi->id, profile->id, {view.gi->start, profile->size}};
    return NVML_SUCCESS;
}
