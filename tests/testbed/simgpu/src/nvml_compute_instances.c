/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * NVML: compute instances. Their profiles are numbered by their slices; the number is the id as well.
 */
#include "library.h"

#include <unistd.h>

/* The parent and what it is made of; for root alone. */
static nvmlReturn_t parent_view(nvmlGpuInstance_t instance, struct view *view, const struct mig_profile **profile)
{
    CHECK(gpu_instance_view(instance, view));
    *profile = gpu_instance_profile(view->board, view->gi);
    return geteuid() ? NVML_ERROR_NO_PERMISSION : NVML_SUCCESS;
}

static unsigned bits(uint32_t mask)
{
    return (unsigned)__builtin_popcount(mask);
}

/* --- profiles --- */

static nvmlReturn_t profile_of(nvmlGpuInstance_t instance, unsigned number, unsigned engine, struct view *view,
                               nvmlComputeInstanceProfileInfo_v3_t *info)
{
    CHECK(gpu_instance_view(instance, view));
    if (number >= NVML_COMPUTE_INSTANCE_PROFILE_COUNT || engine >= NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    const struct mig_profile *parent = gpu_instance_profile(view->board, view->gi);
    uint32_t slices = compute_slices(parent->slices, number);
    if (!slices)
        return NVML_ERROR_NOT_SUPPORTED;
    *info = (nvmlComputeInstanceProfileInfo_v3_t){
        nvmlComputeInstanceProfileInfo_v3, number, slices, bits(compute_starts(parent->slices, slices)),
        parent->multiprocessors * slices / parent->slices, parent->copy_engines, parent->decoders, parent->encoders, parent->jpegs, parent->ofas,
        "", strstr(parent->name, "+gfx") ? NVML_COMPUTE_INSTANCE_PROFILE_CAPS_GFX : 0};
    mig_name(parent, slices, info->name, sizeof info->name);
    return NVML_SUCCESS;
}

/* The first version is the third without the version before it and the name behind it. */
nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t instance, unsigned int number, unsigned int engine,
                                                          nvmlComputeInstanceProfileInfo_t *info)
{
    struct view view;
    nvmlComputeInstanceProfileInfo_v3_t newest;
    CHECK(profile_of(instance, number, engine, &view, &newest));
    if (!info)
        return NVML_ERROR_INVALID_ARGUMENT;
    memcpy(info, &newest.id, sizeof *info);
    return NVML_SUCCESS;
}

/* The second version is the third without its end. */
nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfoV(nvmlGpuInstance_t instance, unsigned int number, unsigned int engine,
                                                           nvmlComputeInstanceProfileInfo_v2_t *info)
{
    struct view view;
    nvmlComputeInstanceProfileInfo_v3_t newest;
    CHECK(profile_of(instance, number, engine, &view, &newest));
    if (fault_active(&view.state, view.minor, FAULT_NO_PROFILE_NAMES))
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    if (!info || (info->version != nvmlComputeInstanceProfileInfo_v2 && info->version != nvmlComputeInstanceProfileInfo_v3))
        return NVML_ERROR_INVALID_ARGUMENT;
    newest.version = info->version;
    memcpy(info, &newest, newest.version == nvmlComputeInstanceProfileInfo_v2 ? sizeof *info : sizeof newest);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstancePossiblePlacements(nvmlGpuInstance_t instance, unsigned int id,
                                                                 nvmlComputeInstancePlacement_t *placements, unsigned int *count)
{
    struct view view;
    const struct mig_profile *parent;
    CHECK(parent_view(instance, &view, &parent));
    uint32_t slices = compute_slices(parent->slices, id), starts = slices ? compute_starts(parent->slices, slices) : 0;
    if (!slices || !count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    for (unsigned start = 0; starts >> start; start++) {
        if (!(starts >> start & 1))
            continue;
        if (placements)
            placements[*count] = (nvmlComputeInstancePlacement_t){start, slices};
        ++*count;
    }
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_t instance, unsigned int id, unsigned int *count)
{
    struct view view;
    const struct mig_profile *parent;
    CHECK(parent_view(instance, &view, &parent));
    uint32_t slices = compute_slices(parent->slices, id), start;
    if (!slices || !count)
        return NVML_ERROR_INVALID_ARGUMENT;
    /* As many as can be made, in our copy of the state. */
    for (*count = 0; (start = compute_instance_choose(view.board, view.gi->id, slices)) != SIM_NONE; ++*count)
        compute_instance_add(view.board, view.gi->id, slices, start);
    return NVML_SUCCESS;
}

/* --- instances --- */

static nvmlReturn_t create(nvmlGpuInstance_t parent, unsigned id, uint32_t start, uint32_t size, nvmlComputeInstance_t *instance)
{
    struct state state;
    uint32_t ci = 0;
    struct request request = {.operation = OP_CREATE_CI, .board = minor_of(parent), .gi = gi_of(parent), .ci = SIM_NONE, .a = id, .b = start,
                              .c = size};
    CHECK(ready());
    if (!instance)
        return NVML_ERROR_INVALID_ARGUMENT;
    CHECK((nvmlReturn_t)sim_request(&request, &state, &ci));
    *instance = compute_instance_handle(minor_of(parent), gi_of(parent), ci);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t parent, unsigned int id, nvmlComputeInstance_t *instance)
{
    return create(parent, id, SIM_NONE, 0, instance);
}

nvmlReturn_t nvmlGpuInstanceCreateComputeInstanceWithPlacement(nvmlGpuInstance_t parent, unsigned int id,
                                                               const nvmlComputeInstancePlacement_t *placement, nvmlComputeInstance_t *instance)
{
    return placement && placement->start != SIM_NONE ? create(parent, id, placement->start, placement->size, instance)
                                                     : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t instance)
{
    struct state state;
    struct request request = {.operation = OP_DESTROY_CI, .board = minor_of(instance), .gi = gi_of(instance), .ci = ci_of(instance)};
    CHECK(ready());
    return (nvmlReturn_t)sim_request(&request, &state, NULL);
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t parent, unsigned int id, nvmlComputeInstance_t *instances,
                                                unsigned int *count)
{
    struct view view;
    const struct mig_profile *profile;
    CHECK(parent_view(parent, &view, &profile));
    uint32_t slices = compute_slices(profile->slices, id);
    if (!slices || !instances || !count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    for (unsigned i = 0; i < view.board->compute_instance_count; i++) {
        const struct compute_instance *instance = &view.board->compute_instances[i];
        if (instance->gi == view.gi->id && instance->slices == slices)
            instances[(*count)++] = compute_instance_handle(view.minor, instance->gi, instance->id);
    }
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t parent, unsigned int id, nvmlComputeInstance_t *instance)
{
    struct view view;
    const struct mig_profile *profile;
    CHECK(parent_view(parent, &view, &profile));
    if (!instance)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!compute_instance_by_id(view.board, view.gi->id, id))
        return NVML_ERROR_NOT_FOUND;
    *instance = compute_instance_handle(view.minor, view.gi->id, id);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t instance, nvmlComputeInstanceInfo_t *info)
{
    struct view view;
    CHECK(compute_instance_view(instance, &view));
    if (!info)
        return NVML_ERROR_INVALID_ARGUMENT;
    uint32_t id = 0;
    while (compute_slices(gpu_instance_profile(view.board, view.gi)->slices, id) != view.ci->slices)
        id++;
    *info = (nvmlComputeInstanceInfo_t){handle(view.minor), gpu_instance_handle(view.minor, view.gi->id), view.ci->id, id,
                                        {view.ci->start, view.ci->slices}};
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlComputeInstanceGetInfo(nvmlComputeInstance_t instance, nvmlComputeInstanceInfo_t *info)
{
    return nvmlComputeInstanceGetInfo_v2(instance, info);
}
