/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the driver does when it is asked to. Only the server calls this, so nothing here needs a lock.
 */
#include "driver.h"

#include <nvml.h>

/* The operations that the log counts. */
static const char *const names[OP_COUNT] = {
    [OP_HOLD] = "hold", [OP_SET_COMPUTE_MODE] = "set_compute_mode", [OP_SET_PERSISTENCE] = "set_persistence_mode",
    [OP_SET_ECC] = "set_ecc_mode", [OP_SET_MIG] = "set_mig_mode", [OP_CREATE_GI] = "create_gpu_instance",
    [OP_DESTROY_GI] = "destroy_gpu_instance", [OP_CREATE_CI] = "create_compute_instance", [OP_DESTROY_CI] = "destroy_compute_instance",
    [OP_RESET] = "reset", [OP_XID] = "xid", [OP_LOSE] = "lose", [OP_RESTORE] = "restore", [OP_FAULT] = "fault",
    [OP_CLEAR_FAULTS] = "clear_faults", [OP_UNLOAD] = "unload",
};

const char *operation_name(enum operation operation)
{
    return names[operation];
}

static uint32_t set_compute_mode(struct board *board, int64_t mode)
{
    if (mode == NVML_COMPUTEMODE_EXCLUSIVE_THREAD)
        return NVML_ERROR_NOT_SUPPORTED;
    if (mode < 0 || mode >= NVML_COMPUTEMODE_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    board->compute_mode = (uint32_t)mode;
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
    for (unsigned i = 0; i < state->process_count; i++)
        if (state->processes[i].use == USE_CLIENT || state->processes[i].board == minor)
            return NVML_ERROR_IN_USE;
    if (fault_active(state, minor, FAULT_INVISIBLE_CLIENT))
        return NVML_ERROR_IN_USE;
    /* A virtual machine's reset reports success and does not reach the board. */
    if (!fault_active(state, minor, FAULT_PASSTHROUGH) || !mig_mode_is_kept(&state->boards[minor]))
        board_restart(&state->boards[minor], minor);
    return NVML_SUCCESS;
}

static uint32_t perform(struct state *state, const struct request *request, pid_t pid, struct outcome *outcome)
{
    struct board *board = &state->boards[request->board];
    switch (request->operation) {
    case OP_HOLD: return process_hold(state, request, pid);
    case OP_SET_COMPUTE_MODE: return set_compute_mode(board, request->a);
    case OP_SET_PERSISTENCE: board->persistence = request->a != 0; break;
    case OP_SET_ECC: return set_ecc(board, request->a != 0);
    case OP_SET_MIG: return mig_set_mode(state, request, pid, outcome);
    case OP_CREATE_GI: return mig_create_gi(state, request, outcome);
    case OP_DESTROY_GI: return mig_destroy_gi(state, request, outcome);
    case OP_CREATE_CI: return mig_create_ci(state, request, outcome);
    case OP_DESTROY_CI: return mig_destroy_ci(state, request, outcome);
    case OP_RESET: return reset(state, request->board);
    case OP_XID: board->last_xid = (uint32_t)request->a; break;
    case OP_LOSE: board->lost = 1, board->last_xid = 79; break;
    case OP_RESTORE: board->lost = board->last_xid = 0; break;
    }
    return NVML_SUCCESS;
}

uint32_t operate(struct state *state, const struct request *request, pid_t pid, uid_t uid, struct outcome *outcome)
{
    switch (request->operation) {
    case OP_LOOK:
    case OP_READ:
    case OP_OPEN:
    case OP_WATCH:
        return NVML_SUCCESS;
    case OP_HOLD:
        break;
    default:
        if (uid)
            return NVML_ERROR_NO_PERMISSION;
    }
    switch (request->operation) {
    case OP_UNLOAD:
        return state->process_count && !request->a ? NVML_ERROR_IN_USE : NVML_SUCCESS;
    case OP_FAULT:
        return fault_set(state, request);
    case OP_CLEAR_FAULTS:
        state->fault_count = 0;
        return NVML_SUCCESS;
    }
    if (request->board >= state->board_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (state->boards[request->board].lost && request->operation != OP_RESTORE)
        return NVML_ERROR_GPU_IS_LOST;
    return perform(state, request, pid, outcome);
}
