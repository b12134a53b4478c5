/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the driver does when it is asked to. Only the server calls this, so nothing here needs a lock.
 */
#include "state.h"

#include <nvml.h>
#include <stdlib.h>
#include <string.h>

/* The operations that the log counts. */
static const char *const names[OP_COUNT] = {
    [OP_HOLD] = "hold", [OP_SET_COMPUTE_MODE] = "set_compute_mode", [OP_SET_PERSISTENCE] = "set_persistence_mode",
    [OP_SET_ECC] = "set_ecc_mode", [OP_RESET] = "reset", [OP_XID] = "xid", [OP_LOSE] = "lose", [OP_RESTORE] = "restore",
    [OP_UNLOAD] = "unload",
};

const char *operation_name(enum operation operation)
{
    return names[operation];
}

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

void process_add(struct state *state, pid_t pid, int connection, enum use use, unsigned board, unsigned memory_mib)
{
    if (state->process_count == SIM_PROCESSES)
        return;
    struct process *process = &state->processes[state->process_count++];
    *process = (struct process){.pid = pid, .connection = connection, .use = use, .board = board, .memory_mib = memory_mib};
    process->started = identify(pid, process->name, sizeof process->name);
}

static void process_drop(struct state *state, unsigned i)
{
    state->process_count--;
    memmove(&state->processes[i], &state->processes[i + 1], (state->process_count - i) * sizeof(struct process));
}

void process_remove(struct state *state, int connection)
{
    for (unsigned i = state->process_count; i-- > 0;)
        if (state->processes[i].connection == connection)
            process_drop(state, i);
}

void process_prune(struct state *state)
{
    for (unsigned i = state->process_count; i-- > 0;) {
        struct process *process = &state->processes[i];
        if (identify(process->pid, process->name, sizeof process->name) != process->started && process->connection < 0)
            process_drop(state, i);
    }
}

static bool held(const struct state *state, unsigned board)
{
    for (unsigned i = 0; i < state->process_count; i++)
        if (state->processes[i].use != USE_CLIENT && state->processes[i].board == board)
            return true;
    return false;
}

static uint32_t hold(struct state *state, const struct request *request, pid_t pid)
{
    const struct board *board = &state->boards[request->board];
    uint32_t used = board->reserved_mib;
    if (board->compute_mode == NVML_COMPUTEMODE_PROHIBITED ||
        (board->compute_mode == NVML_COMPUTEMODE_EXCLUSIVE_PROCESS && held(state, request->board)))
        return NVML_ERROR_IN_USE;
    for (unsigned i = 0; i < state->process_count; i++)
        if (state->processes[i].board == request->board)
            used += state->processes[i].memory_mib;
    if (used + request->b > board->memory_mib)
        return NVML_ERROR_MEMORY;
    if (state->process_count == SIM_PROCESSES)
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    process_add(state, pid, -1, (enum use)request->a, request->board, (unsigned)request->b);
    return NVML_SUCCESS;
}

static uint32_t set_ecc(struct board *board, uint32_t enabled)
{
    if (!board->ecc)
        return NVML_ERROR_NOT_SUPPORTED;
    board->ecc_pending = enabled;
    return board_remember(board) ? NVML_ERROR_UNKNOWN : NVML_SUCCESS;
}

static uint32_t reset(struct state *state, unsigned minor)
{
    struct board *board = &state->boards[minor];
    for (unsigned i = 0; i < state->process_count; i++)
        if (state->processes[i].use == USE_CLIENT || state->processes[i].board == minor)
            return NVML_ERROR_IN_USE;
    board->ecc_current = board->ecc_pending;
    board->last_xid = 0;
    return NVML_SUCCESS;
}

uint32_t operate(struct state *state, const struct request *request, pid_t pid, uid_t uid)
{
    struct board *board = &state->boards[request->board];
    uint32_t a = (uint32_t)request->a;

    if (request->operation == OP_LOOK || request->operation == OP_OPEN || request->operation == OP_WATCH)
        return NVML_SUCCESS;
    if (request->operation == OP_UNLOAD) {
        if (uid)
            return NVML_ERROR_NO_PERMISSION;
        return state->process_count && !a ? NVML_ERROR_IN_USE : NVML_SUCCESS;
    }
    if (request->operation >= OP_COUNT || request->board >= state->board_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (request->operation != OP_HOLD && uid)
        return NVML_ERROR_NO_PERMISSION;
    if (board->lost && request->operation != OP_RESTORE)
        return NVML_ERROR_GPU_IS_LOST;

    switch (request->operation) {
    case OP_HOLD:
        return hold(state, request, pid);
    case OP_SET_COMPUTE_MODE:
        if (a == NVML_COMPUTEMODE_EXCLUSIVE_THREAD)
            return NVML_ERROR_NOT_SUPPORTED;
        if (a >= NVML_COMPUTEMODE_COUNT)
            return NVML_ERROR_INVALID_ARGUMENT;
        board->compute_mode = a;
        return NVML_SUCCESS;
    case OP_SET_PERSISTENCE:
        board->persistence = a != 0;
        return NVML_SUCCESS;
    case OP_SET_ECC:
        return set_ecc(board, a != 0);
    case OP_RESET:
        return reset(state, request->board);
    case OP_XID:
        board->last_xid = a;
        return NVML_SUCCESS;
    case OP_LOSE:
        board->lost = 1;
        board->last_xid = 79;
        return NVML_SUCCESS;
    default: /* OP_RESTORE */
        board->lost = board->last_xid = 0;
        return NVML_SUCCESS;
    }
}
