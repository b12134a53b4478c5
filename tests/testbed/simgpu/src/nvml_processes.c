/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * NVML: who holds a GPU. Three kinds of processes, each in three versions of the call; the structure of versions 2 and 3 is the same.
 */
#include "library.h"

/* Fills count entries, of the old structure when it is smaller; says how many there are. A GPU lists its instances' processes, too. */
static nvmlReturn_t processes(nvmlDevice_t device, enum use use, unsigned int *count, void *infos, size_t size)
{
    struct view view;
    CHECK(device_view(device, &view));
    if (!count || (*count && !infos))
        return NVML_ERROR_INVALID_ARGUMENT;
    unsigned room = *count;
    *count = 0;
    for (unsigned i = 0; i < view.state.process_count; i++) {
        const struct process *process = &view.state.processes[i];
        if (process->use != use || process->board != view.minor || (view.ci && (process->gi != view.ci->gi || process->ci != view.ci->id)))
            continue;
        nvmlProcessInfo_t info = {(unsigned)process->pid, process->memory_mib * 1024ULL * 1024, process->gi, process->ci};
        if (*count < room)
            memcpy((char *)infos + *count * size, &info, size);
        ++*count;
    }
    return *count > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

#define PROCESSES(kind, use)                                                                                                          \
    nvmlReturn_t nvmlDeviceGet##kind##RunningProcesses(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos)          \
    {                                                                                                                                 \
        return processes(device, use, count, infos, sizeof *infos);                                                                   \
    }                                                                                                                                 \
    nvmlReturn_t nvmlDeviceGet##kind##RunningProcesses_v2(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v2_t *infos)       \
    {                                                                                                                                 \
        return processes(device, use, count, infos, sizeof *infos);                                                                   \
    }                                                                                                                                 \
    nvmlReturn_t nvmlDeviceGet##kind##RunningProcesses_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos)          \
    {                                                                                                                                 \
        return processes(device, use, count, infos, sizeof *infos);                                                                   \
    }

PROCESSES(Compute, USE_COMPUTE)
PROCESSES(Graphics, USE_GRAPHICS)
PROCESSES(MPSCompute, USE_MPS)
