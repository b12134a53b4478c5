/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * NVML: what a GPU's meters read. An idle board, but for the memory of the processes that hold it.
 */
#include "library.h"

#include <stdlib.h>

#define MIB (1024ULL * 1024)

/* Of a GPU, or of the GPU instance that a MIG device is in: compute instances share it. */
static nvmlReturn_t memory_of(nvmlDevice_t device, nvmlMemory_t *memory, unsigned long long *reserved)
{
    struct view view;
    CHECK(device_view(device, &view));
    *reserved = view.gi ? 0 : view.board->reserved_mib * MIB;
    memory->total = (view.gi ? gpu_instance_profile(view.board, view.gi)->memory_mb : view.board->memory_mib) * MIB;
    memory->used = 0;
    for (unsigned i = 0; i < view.state.process_count; i++) {
        const struct process *process = &view.state.processes[i];
        if (process->board == view.minor && (!view.gi || process->gi == view.gi->id))
            memory->used += process->memory_mib * MIB;
    }
    memory->free = memory->total - *reserved - memory->used;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    unsigned long long reserved;
    if (!memory)
        return NVML_ERROR_INVALID_ARGUMENT;
    CHECK(memory_of(device, memory, &reserved));
    memory->used += reserved;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    nvmlMemory_t now;
    if (!memory)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (memory->version != nvmlMemory_v2)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    CHECK(memory_of(device, &now, &memory->reserved));
    memory->total = now.total;
    memory->used = now.used;
    memory->free = now.free;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory)
{
    struct board board;
    CHECK(board_of(device, &board));
    if (!memory)
        return NVML_ERROR_INVALID_ARGUMENT;
    *memory = (nvmlBAR1Memory_t){.bar1Total = board.bar1_mib * MIB, .bar1Free = (board.bar1_mib - 1) * MIB, .bar1Used = MIB};
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
    struct board board;
    CHECK(board_of(device, &board));
    if (!utilization)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (board.mig_current)
        return NVML_ERROR_NOT_SUPPORTED;
    *utilization = (nvmlUtilization_t){0, 0};
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned int *temperature)
{
    struct board board;
    CHECK(board_of(device, &board));
    if (!temperature || sensor != NVML_TEMPERATURE_GPU)
        return NVML_ERROR_INVALID_ARGUMENT;
    *temperature = 31;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *temperature)
{
    unsigned int degrees;
    if (!temperature)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (temperature->version != nvmlTemperature_v1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    CHECK(nvmlDeviceGetTemperature(device, temperature->sensorType, &degrees));
    temperature->temperature = (int)degrees;
    return NVML_SUCCESS;
}

static nvmlReturn_t clock_of(nvmlDevice_t device, nvmlClockType_t type, bool idle, unsigned int *clock)
{
    struct board board;
    CHECK(board_of(device, &board));
    if (!clock || type >= NVML_CLOCK_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    *clock = type == NVML_CLOCK_MEM ? board.clock_memory_mhz : idle ? 345 : board.clock_sm_mhz;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *clock)
{
    return clock_of(device, type, true, clock);
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *clock)
{
    return clock_of(device, type, false, clock);
}

READS(nvmlDeviceGetPowerUsage, unsigned int, board.power_idle_w * 1000)
READS(nvmlDeviceGetPowerManagementLimit, unsigned int, board.power_limit_w * 1000)
READS(nvmlDeviceGetPowerManagementDefaultLimit, unsigned int, board.power_limit_w * 1000)
READS(nvmlDeviceGetEnforcedPowerLimit, unsigned int, board.power_limit_w * 1000)
READS(nvmlDeviceGetPowerManagementMode, nvmlEnableState_t, NVML_FEATURE_ENABLED)
READS(nvmlDeviceGetPerformanceState, nvmlPstates_t, NVML_PSTATE_0)
READS(nvmlDeviceGetPowerState, nvmlPstates_t, NVML_PSTATE_0)
READS(nvmlDeviceGetDisplayMode, nvmlEnableState_t, NVML_FEATURE_DISABLED)
READS(nvmlDeviceGetDisplayActive, nvmlEnableState_t, NVML_FEATURE_DISABLED)
READS(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, nvmlClocksEventReasonGpuIdle)
READS(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, nvmlClocksEventReasonGpuIdle)
READS(nvmlDeviceGetRetiredPagesPendingStatus, nvmlEnableState_t, NVML_FEATURE_DISABLED)
READS(nvmlDeviceGetAccountingMode, nvmlEnableState_t, NVML_FEATURE_DISABLED)

nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int *min, unsigned int *max)
{
    struct board board;
    CHECK(board_of(device, &board));
    if (!min || !max)
        return NVML_ERROR_INVALID_ARGUMENT;
    *min = board.power_min_w * 1000;
    *max = board.power_limit_w * 1000;
    return NVML_SUCCESS;
}

static nvmlReturn_t with_ecc(nvmlDevice_t device, unsigned long long *count)
{
    struct board board;
    CHECK(board_of(device, &board));
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    return board.ecc_current ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter, unsigned long long *count)
{
    (void)type, (void)counter;
    return with_ecc(device, count);
}

nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter,
                                             nvmlMemoryLocation_t location, unsigned long long *count)
{
    (void)type, (void)counter, (void)location;
    return with_ecc(device, count);
}

/* Row remapping came with Ampere. */
nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *corrected, unsigned int *uncorrected, unsigned int *pending,
                                       unsigned int *failed)
{
    struct board board;
    CHECK(board_of(device, &board));
    if (strtod(board.compute_capability, NULL) < 8)
        return NVML_ERROR_NOT_SUPPORTED;
    if (!corrected || !uncorrected || !pending || !failed)
        return NVML_ERROR_INVALID_ARGUMENT;
    *corrected = *uncorrected = *pending = *failed = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    struct board board;
    CHECK(board_of(device, &board));
    if (count < 1 || !values)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; i < count; i++) {
        values[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
        if (values[i].fieldId == NVML_FI_DEV_GET_GPU_RECOVERY_ACTION) {
            values[i].valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
            values[i].value.uiVal = NVML_GPU_RECOVERY_ACTION_NONE;
            values[i].nvmlReturn = NVML_SUCCESS;
        }
    }
    return NVML_SUCCESS;
}
