/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Processes that use the driver: its clients, for as long as they are connected, and those that compute, for as long as they live.
 */
#include "driver.h"

#include <nvml.h>
#include <stdlib.h>
#include <string.h>

/* The start time of a process in ticks and its name; 0 when there is none. A name may contain anything, so the line is read from behind. */
static uint64_t identify(pid_t pid, char *name, size_t size)
{
    char path[32], line[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    line[fread(line, 1, sizeof line - 1, file)] = 0;
    fclose(file);
    char *open = strchr(line, '('), *place = strrchr(line, ')');
    if (!open || !place || place[1] != ' ' || place[2] == 'Z') /* a zombie has closed its files */
        return 0;
    snprintf(name, size, "%.*s", (int)(place - open - 1), open + 1);
    for (int field = 2; place && field < 22; field++)
        place = strchr(place + 1, ' ');
    return place ? strtoull(place, NULL, 10) : 0;
}

static void add(struct state *state, struct process process)
{
    if (state->process_count == SIM_PROCESSES)
        return;
    process.started = identify(process.pid, process.name, sizeof process.name);
    state->processes[state->process_count++] = process;
}

void process_add_client(struct state *state, pid_t pid, int connection)
{
    add(state, (struct process){.pid = pid, .connection = connection, .use = USE_CLIENT, .board = SIM_BOARDS, .gi = SIM_NONE, .ci = SIM_NONE});
}

static void drop(struct state *state, unsigned i)
{
    state->process_count--;
    memmove(&state->processes[i], &state->processes[i + 1], (state->process_count - i) * sizeof(struct process));
}

void process_remove(struct state *state, int connection)
{
    for (unsigned i = state->process_count; i-- > 0;)
        if (state->processes[i].connection == connection)
            drop(state, i);
}

void process_prune(struct state *state)
{
    for (unsigned i = state->process_count; i-- > 0;) {
        struct process *process = &state->processes[i];
        if (identify(process->pid, process->name, sizeof process->name) != process->started && process->connection < 0)
            drop(state, i);
    }
}

bool processes_in(const struct state *state, unsigned minor, uint32_t gi, uint32_t ci)
{
    for (unsigned i = 0; i < state->process_count; i++) {
        const struct process *process = &state->processes[i];
        if (process->board == minor && (gi == SIM_NONE || process->gi == gi) && (ci == SIM_NONE || process->ci == ci))
            return true;
    }
    return false;
}

uint32_t process_hold(struct state *state, const struct request *request, pid_t pid)
{
    const struct board *board = &state->boards[request->board];
    uint32_t used = 0, memory = board->memory_mib - board->reserved_mib;
    if (board->mig_current) { /* CUDA finds no device there but the MIG devices */
        if (!compute_instance_by_id(board, request->gi, request->ci))
            return request->gi == SIM_NONE ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_NOT_FOUND;
        memory = gpu_instance_profile(board, gpu_instance_by_id(board, request->gi))->memory_mb;
    } else if (request->gi != SIM_NONE) {
        return NVML_ERROR_NOT_FOUND;
    }
    if (board->compute_mode == NVML_COMPUTEMODE_PROHIBITED ||
        (board->compute_mode == NVML_COMPUTEMODE_EXCLUSIVE_PROCESS && processes_in(state, request->board, request->gi, request->ci)))
        return NVML_ERROR_IN_USE;
    for (unsigned i = 0; i < state->process_count; i++)
        if (state->processes[i].board == request->board && state->processes[i].gi == request->gi)
            used += state->processes[i].memory_mib;
    if (used + request->b > memory)
        return NVML_ERROR_MEMORY;
    if (state->process_count == SIM_PROCESSES)
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    add(state, (struct process){.pid = pid, .connection = -1, .use = (uint32_t)request->a, .board = request->board, .gi = request->gi,
                                .ci = request->ci, .memory_mib = (uint32_t)request->b});
    return NVML_SUCCESS;
}
