/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * NVML: the MIG mode of a GPU and its MIG devices, which are its compute instances seen as devices.
 */
#include "library.h"

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
    struct board board;
    CHECK(board_of(device, &board));
    if (!current || !pending)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!board.mig)
        return NVML_ERROR_NOT_SUPPORTED;
    *current = board.mig_current;
    *pending = board.mig_pending;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t device, unsigned int mode, nvmlReturn_t *activation)
{
    struct state state;
    uint32_t result = 0;
    struct request request = {.operation = OP_SET_MIG, .board = minor_of(device), .gi = gi_of(device), .ci = ci_of(device), .a = mode};
    CHECK(ready());
    if (!activation || gi_of(device) != SIM_NONE)
        return NVML_ERROR_INVALID_ARGUMENT;
    CHECK((nvmlReturn_t)sim_request(&request, &state, &result));
    *activation = (nvmlReturn_t)result;
    return NVML_SUCCESS;
}

READS(nvmlDeviceGetMaxMigDeviceCount, unsigned int, board.mig_current ? board.mig_slices : 0)

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *instance)
{
    struct view view;
    CHECK(gpu_view(device, &view));
    if (!instance || (view.board->mig_current && index >= view.board->mig_slices))
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; i < view.board->compute_instance_count; i++) {
        const struct compute_instance *ci = &view.board->compute_instances[i];
        if (ci->slot == index && mig_device_visible(view.minor, ci->gi, ci->id)) {
            *instance = mig_handle(view.minor, ci->gi, ci->id);
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

/* What a call of a device handle tells about its MIG device. */
#define OF_MIG_DEVICE(function, type, expression)            \
    nvmlReturn_t function(nvmlDevice_t device, type *value)  \
    {                                                        \
        struct view view;                                    \
        CHECK(device_view(device, &view));                   \
        if (!value || !view.ci)                              \
            return NVML_ERROR_INVALID_ARGUMENT;              \
        *value = (expression);                               \
        return NVML_SUCCESS;                                 \
    }

OF_MIG_DEVICE(nvmlDeviceGetGpuInstanceId, unsigned int, view.gi->id)
OF_MIG_DEVICE(nvmlDeviceGetComputeInstanceId, unsigned int, view.ci->id)
OF_MIG_DEVICE(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, nvmlDevice_t, handle(view.minor))

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is)
{
    struct view view;
    CHECK(device_view(device, &view));
    if (!is)
        return NVML_ERROR_INVALID_ARGUMENT;
    *is = view.ci != NULL;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes)
{
    struct view view;
    CHECK(device_view(device, &view));
    if (!attributes)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!view.ci)
        return NVML_ERROR_NOT_SUPPORTED;
    const struct mig_profile *profile = gpu_instance_profile(view.board, view.gi);
    *attributes = (nvmlDeviceAttributes_t){
        .multiprocessorCount = profile->multiprocessors * view.ci->slices / profile->slices, .sharedCopyEngineCount = profile->copy_engines,
        .sharedDecoderCount = profile->decoders, .sharedEncoderCount = profile->encoders, .sharedJpegCount = profile->jpegs,
        .sharedOfaCount = profile->ofas, .gpuInstanceSliceCount = profile->slices, .computeInstanceSliceCount = view.ci->slices,
        .memorySizeMB = profile->memory_mb};
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes)
{
    return nvmlDeviceGetAttributes_v2(device, attributes);
}
