/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * NVML: modes that can be set.
 */
#include "library.h"

static nvmlReturn_t change(nvmlDevice_t device, enum operation operation, int64_t value)
{
    struct state state;
    CHECK(ready());
    if (gi_of(device) != SIM_NONE)
        return NVML_ERROR_NOT_SUPPORTED;
    return (nvmlReturn_t)sim_ask(operation, minor_of(device), value, 0, &state);
}

READS(nvmlDeviceGetComputeMode, nvmlComputeMode_t, board.compute_mode)
READS(nvmlDeviceGetPersistenceMode, nvmlEnableState_t, board.persistence)

nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t device, nvmlComputeMode_t mode)
{
    return change(device, OP_SET_COMPUTE_MODE, mode);
}

nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t mode)
{
    return mode > NVML_FEATURE_ENABLED ? NVML_ERROR_INVALID_ARGUMENT : change(device, OP_SET_PERSISTENCE, mode);
}

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending)
{
    struct board board;
    CHECK(board_of(device, &board));
    if (!current || !pending)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!board.ecc)
        return NVML_ERROR_NOT_SUPPORTED;
    *current = board.ecc_current;
    *pending = board.ecc_pending;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDefaultEccMode(nvmlDevice_t device, nvmlEnableState_t *mode)
{
    CHECK(nvmlDeviceGetEccMode(device, mode, &(nvmlEnableState_t){0}));
    *mode = NVML_FEATURE_ENABLED;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceSetEccMode(nvmlDevice_t device, nvmlEnableState_t mode)
{
    return mode > NVML_FEATURE_ENABLED ? NVML_ERROR_INVALID_ARGUMENT : change(device, OP_SET_ECC, mode);
}
