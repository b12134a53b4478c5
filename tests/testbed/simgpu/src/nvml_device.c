/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * NVML: which GPUs there are, and what each of them is.
 */
#include "library.h"

#include <stdlib.h>
#include <strings.h>

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    struct state state;
    CHECK(look(&state));
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    for (unsigned minor = 0; minor < state.board_count; minor++)
        *count += board_visible(minor);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
    return nvmlDeviceGetCount_v2(count);
}

static nvmlReturn_t named(const char *name, nvmlReturn_t absent, nvmlDevice_t *device)
{
    struct state state;
    CHECK(look(&state));
    int minor = board_find(&state, name);
    return minor < 0 ? absent : handle_of(&state, (unsigned)minor, device);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    char name[16];
    snprintf(name, sizeof name, "%u", index);
    return named(name, NVML_ERROR_INVALID_ARGUMENT, device);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

static nvmlReturn_t mig_device_named(const char *uuid, nvmlDevice_t *device)
{
    struct state state;
    unsigned minor;
    CHECK(look(&state));
    const struct compute_instance *instance = mig_device_find(&state, uuid, &minor);
    if (!instance || !device)
        return instance ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_NOT_FOUND;
    if (state.boards[minor].lost)
        return NVML_ERROR_GPU_IS_LOST;
    *device = mig_handle(minor, instance->gi, instance->id);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    if (!uuid)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!strncmp(uuid, "MIG-", 4))
        return mig_device_named(uuid, device);
    return strncmp(uuid, "GPU-", 4) ? NVML_ERROR_NOT_FOUND : named(uuid, NVML_ERROR_NOT_FOUND, device);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *address, nvmlDevice_t *device)
{
    if (!address || !strchr(address, ':'))
        return NVML_ERROR_INVALID_ARGUMENT;
    return named(address, NVML_ERROR_NOT_FOUND, device);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *address, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByPciBusId_v2(address, device);
}

nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
    struct state state;
    CHECK(look(&state));
    for (unsigned minor = 0; serial && minor < state.board_count; minor++)
        if (!strcmp(state.boards[minor].serial, serial) && board_visible(minor))
            return handle_of(&state, minor, device);
    return serial ? NVML_ERROR_NOT_FOUND : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    struct view view;
    CHECK(device_view(device, &view));
    if (!index)
        return NVML_ERROR_INVALID_ARGUMENT;
    *index = view.ci ? view.ci->slot : 0;
    for (unsigned minor = 0; !view.ci && minor < view.minor; minor++)
        *index += board_visible(minor);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
    struct view view;
    CHECK(device_view(device, &view));
    if (!view.ci)
        return put_text(name, length, view.board->name);
    char instance[40], both[128];
    mig_name(gpu_instance_profile(view.board, view.gi), view.ci->slices, instance, sizeof instance);
    snprintf(both, sizeof both, "%s %s", view.board->name, instance);
    return put_text(name, length, both);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
    struct view view;
    CHECK(device_view(device, &view));
    if (!view.ci)
        return put_text(uuid, length, view.board->uuid);
    char its[64];
    mig_uuid(view.board, view.ci->gi, view.ci->id, its, sizeof its);
    return put_text(uuid, length, its);
}

static nvmlDeviceArchitecture_t architecture(const char *name)
{
    static const char *const names[] = {"", "", "kepler", "maxwell", "pascal", "volta", "turing", "ampere", "ada", "hopper", "blackwell"};
    for (unsigned i = 2; i < sizeof names / sizeof *names; i++)
        if (!strcasecmp(names[i], name))
            return i;
    return NVML_DEVICE_ARCH_UNKNOWN;
}

READS_TEXT(nvmlDeviceGetSerial, board.serial)
READS_TEXT(nvmlDeviceGetVbiosVersion, board.vbios)
READS_TEXT(nvmlDeviceGetBoardPartNumber, board.part_number)
READS(nvmlDeviceGetMinorNumber, unsigned int, minor_of(device))
READS(nvmlDeviceGetBoardId, unsigned int, minor_of(device) + 1)
READS(nvmlDeviceGetModuleId, unsigned int, minor_of(device))
READS(nvmlDeviceGetBrand, nvmlBrandType_t, NVML_BRAND_NVIDIA)
READS(nvmlDeviceGetArchitecture, nvmlDeviceArchitecture_t, architecture(board.architecture))
READS(nvmlDeviceGetNumGpuCores, unsigned int, board.cores)
READS(nvmlDeviceGetMemoryBusWidth, unsigned int, board.memory_bus_bits)
READS(nvmlDeviceGetMultiGpuBoard, unsigned int, 0)
READS(nvmlDeviceGetBusType, nvmlBusType_t, NVML_BUS_TYPE_PCIE)

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    struct board board;
    CHECK(board_of(device, &board));
    return major && minor && sscanf(board.compute_capability, "%d.%d", major, minor) == 2 ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}
