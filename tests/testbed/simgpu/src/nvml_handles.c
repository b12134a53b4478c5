/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What handles mean. A handle is a number: the board in the lowest 16 bits, the kind in the next, above them the ids of the instances.
 */
#include "library.h"

enum kind { DEVICE = 0x5347, GPU_INSTANCE, COMPUTE_INSTANCE };

static void *encode(enum kind kind, unsigned minor, uint32_t gi, uint32_t ci)
{
    return (void *)((uintptr_t)kind << 16 | (minor + 1) | (uintptr_t)(uint8_t)(gi + 1) << 32 | (uintptr_t)(uint8_t)(ci + 1) << 40);
}

unsigned minor_of(const void *handle)
{
    return (unsigned)((uintptr_t)handle & 0xffff) - 1;
}

uint32_t gi_of(const void *handle)
{
    return (uint32_t)((uintptr_t)handle >> 32 & 0xff) - 1;
}

uint32_t ci_of(const void *handle)
{
    return (uint32_t)((uintptr_t)handle >> 40 & 0xff) - 1;
}

nvmlDevice_t handle(unsigned minor)
{
    return encode(DEVICE, minor, SIM_NONE, SIM_NONE);
}

nvmlDevice_t mig_handle(unsigned minor, uint32_t gi, uint32_t ci)
{
    return encode(DEVICE, minor, gi, ci);
}

nvmlGpuInstance_t gpu_instance_handle(unsigned minor, uint32_t gi)
{
    return encode(GPU_INSTANCE, minor, gi, SIM_NONE);
}

nvmlComputeInstance_t compute_instance_handle(unsigned minor, uint32_t gi, uint32_t ci)
{
    return encode(COMPUTE_INSTANCE, minor, gi, ci);
}

static nvmlReturn_t view_of(const void *handle, enum kind kind, struct view *view)
{
    view->minor = minor_of(handle);
    view->gi = NULL;
    view->ci = NULL;
    CHECK(ready());
    CHECK((nvmlReturn_t)sim_ask(OP_READ, view->minor, 0, 0, &view->state));
    if (((uintptr_t)handle >> 16 & 0xffff) != kind || view->minor >= view->state.board_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    view->board = &view->state.boards[view->minor];
    if (view->board->lost)
        return NVML_ERROR_GPU_IS_LOST;
    if (gi_of(handle) != SIM_NONE && !(view->gi = gpu_instance_by_id(view->board, gi_of(handle))))
        return NVML_ERROR_INVALID_ARGUMENT; /* it was destroyed */
    if (ci_of(handle) != SIM_NONE && !(view->ci = compute_instance_by_id(view->board, gi_of(handle), ci_of(handle))))
        return NVML_ERROR_INVALID_ARGUMENT;
    return NVML_SUCCESS;
}

nvmlReturn_t device_view(nvmlDevice_t device, struct view *view)
{
    return view_of(device, DEVICE, view);
}

nvmlReturn_t gpu_view(nvmlDevice_t device, struct view *view)
{
    CHECK(view_of(device, DEVICE, view));
    return view->gi ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

nvmlReturn_t board_of(nvmlDevice_t device, struct board *board)
{
    struct view view;
    CHECK(gpu_view(device, &view));
    *board = *view.board;
    return NVML_SUCCESS;
}

nvmlReturn_t gpu_instance_view(nvmlGpuInstance_t instance, struct view *view)
{
    return view_of(instance, GPU_INSTANCE, view);
}

nvmlReturn_t compute_instance_view(nvmlComputeInstance_t instance, struct view *view)
{
    return view_of(instance, COMPUTE_INSTANCE, view);
}

nvmlReturn_t handle_of(const struct state *state, unsigned minor, nvmlDevice_t *device)
{
    if (!device)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (state->boards[minor].lost)
        return NVML_ERROR_GPU_IS_LOST;
    *device = handle(minor);
    return NVML_SUCCESS;
}
