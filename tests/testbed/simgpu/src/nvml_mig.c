/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * NVML: MIG, as far as it can be asked. Nothing creates instances yet.
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

READS(nvmlDeviceIsMigDeviceHandle, unsigned int, 0)
READS(nvmlDeviceGetMaxMigDeviceCount, unsigned int, board.mig_current ? board.mig_slices : 0)

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *instance)
{
    struct board board;
    (void)index;
    CHECK(board_of(device, &board));
    return instance ? NVML_ERROR_NOT_FOUND : NVML_ERROR_INVALID_ARGUMENT;
}
