/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * MIG as the driver changes it: the mode of a board, its GPU instances, their compute instances.
 */
#include "driver.h"

#include <nvml.h>
#include <string.h>

#define DETAIL(outcome, ...) snprintf((outcome)->detail, sizeof(outcome)->detail, __VA_ARGS__)

/* --- mode --- */

static void clear(struct board *board, unsigned minor)
{
    board->gpu_instance_count = board->compute_instance_count = 0;
    capabilities_follow(board, minor);
}

void board_restart(struct board *board, unsigned minor)
{
    clear(board, minor);
    board->mig_current = board->mig_pending;
    board->ecc_current = board->ecc_pending;
    board->last_xid = 0;
}

/* Work on the board, or anybody else who has the driver open. Persistenced lets go of a board for a change of mode. */
static bool is_busy(const struct state *state, unsigned minor, pid_t caller)
{
    static const char persistenced[] = "nvidia-persiste"; /* what the kernel keeps of the name */
    for (unsigned i = 0; i < state->process_count; i++) {
        const struct process *process = &state->processes[i];
        if (process->use == USE_CLIENT ? process->pid != caller && strcmp(process->name, persistenced) : process->board == minor)
            return true;
    }
    return fault_active(state, minor, FAULT_INVISIBLE_CLIENT);
}

uint32_t mig_set_mode(struct state *state, const struct request *request, pid_t pid, struct outcome *outcome)
{
    struct board *board = &state->boards[request->board];
    if (!board->mig)
        return NVML_ERROR_NOT_SUPPORTED;
    if (request->a != NVML_DEVICE_MIG_DISABLE && request->a != NVML_DEVICE_MIG_ENABLE)
        return NVML_ERROR_INVALID_ARGUMENT;
    board->mig_pending = (uint32_t)request->a;
    if (board_remember(board))
        return NVML_ERROR_UNKNOWN;

    outcome->result = NVML_SUCCESS;
    if (board->mig_pending == board->mig_current) {
        ; /* nothing to do, and nothing pending any more */
    } else if (mig_mode_is_kept(board) && fault_active(state, request->board, FAULT_PASSTHROUGH)) {
        outcome->result = NVML_ERROR_RESET_REQUIRED;
    } else if (is_busy(state, request->board, pid)) {
        outcome->result = NVML_ERROR_IN_USE;
    } else if (mig_mode_is_kept(board)) { /* those boards can change it only by a reset */
        board_restart(board, request->board);
        outcome->reset = true;
    } else {
        board->mig_current = board->mig_pending;
        clear(board, request->board);
    }
    DETAIL(outcome, "mode=%u activation=%u", board->mig_pending, outcome->result);
    return NVML_SUCCESS;
}

/* --- GPU instances --- */

uint32_t mig_create_gi(struct state *state, const struct request *request, struct outcome *outcome)
{
    struct board *board = &state->boards[request->board];
    const struct mig_profile *profile = mig_profile_by_id(board, (uint32_t)request->a);
    uint32_t start = (uint32_t)request->b;
    DETAIL(outcome, start == SIM_NONE ? "profile=%s" : "profile=%s placement=%u:%u", profile ? profile->name : "unknown", start,
           (unsigned)request->c);
    if (!board->mig_current)
        return NVML_ERROR_NOT_SUPPORTED;
    if (!profile)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (start == SIM_NONE)
        start = gpu_instance_choose(board, profile);
    else if (start > 31 || !(profile->starts >> start & 1) || request->c != profile->size)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (start == SIM_NONE || !gpu_instance_fits(board, profile, start))
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    outcome->result = gpu_instance_add(board, profile, start);
    DETAIL(outcome, "profile=%s placement=%u:%u gi=%u", profile->name, start, profile->size, outcome->result);
    capabilities_follow(board, request->board);
    return NVML_SUCCESS;
}

uint32_t mig_destroy_gi(struct state *state, const struct request *request, struct outcome *outcome)
{
    struct board *board = &state->boards[request->board];
    const struct gpu_instance *instance = gpu_instance_by_id(board, request->gi);
    DETAIL(outcome, "gi=%u", request->gi);
    if (!board->mig_current)
        return NVML_ERROR_NOT_SUPPORTED;
    if (!instance)
        return NVML_ERROR_INVALID_ARGUMENT;
    const struct mig_profile *profile = gpu_instance_profile(board, instance);
    DETAIL(outcome, "profile=%s placement=%u:%u gi=%u", profile->name, instance->start, profile->size, request->gi);
    for (unsigned i = 0; i < board->compute_instance_count; i++)
        if (board->compute_instances[i].gi == request->gi)
            return NVML_ERROR_IN_USE;
    if (fault_active(state, request->board, FAULT_INVISIBLE_CLIENT))
        return NVML_ERROR_IN_USE;
    size_t place = (size_t)(instance - board->gpu_instances);
    board->gpu_instance_count--;
    memmove(&board->gpu_instances[place], &board->gpu_instances[place + 1], (board->gpu_instance_count - place) * sizeof *instance);
    capabilities_follow(board, request->board);
    return NVML_SUCCESS;
}

/* --- compute instances --- */

uint32_t mig_create_ci(struct state *state, const struct request *request, struct outcome *outcome)
{
    struct board *board = &state->boards[request->board];
    const struct gpu_instance *parent = gpu_instance_by_id(board, request->gi);
    char name[40];
    DETAIL(outcome, "gi=%u", request->gi);
    if (!board->mig_current)
        return NVML_ERROR_NOT_SUPPORTED;
    const struct mig_profile *profile = parent ? gpu_instance_profile(board, parent) : NULL;
    uint32_t slices = profile ? compute_slices(profile->slices, (uint32_t)request->a) : 0, start = (uint32_t)request->b;
    if (!slices)
        return NVML_ERROR_INVALID_ARGUMENT;
    mig_name(profile, slices, name, sizeof name);
    if (start == SIM_NONE)
        start = compute_instance_choose(board, request->gi, slices);
    else if (start > 31 || !(compute_starts(profile->slices, slices) >> start & 1) || request->c != slices)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (start == SIM_NONE || !compute_instance_fits(board, request->gi, slices, start)) {
        DETAIL(outcome, "profile=%s gi=%u", name + strlen("MIG "), request->gi);
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    }
    outcome->result = compute_instance_add(board, request->gi, slices, start);
    DETAIL(outcome, "profile=%s placement=%u:%u gi=%u ci=%u", name + strlen("MIG "), start, slices, request->gi, outcome->result);
    capabilities_follow(board, request->board);
    return NVML_SUCCESS;
}

uint32_t mig_destroy_ci(struct state *state, const struct request *request, struct outcome *outcome)
{
    struct board *board = &state->boards[request->board];
    const struct compute_instance *instance = compute_instance_by_id(board, request->gi, request->ci);
    DETAIL(outcome, "gi=%u ci=%u", request->gi, request->ci);
    if (!board->mig_current)
        return NVML_ERROR_NOT_SUPPORTED;
    if (!instance)
        return NVML_ERROR_INVALID_ARGUMENT;
    char name[40];
    mig_name(gpu_instance_profile(board, gpu_instance_by_id(board, request->gi)), instance->slices, name, sizeof name);
    DETAIL(outcome, "profile=%s placement=%u:%u gi=%u ci=%u", name + strlen("MIG "), instance->start, instance->slices, request->gi, request->ci);
    if (processes_in(state, request->board, request->gi, request->ci) || fault_active(state, request->board, FAULT_INVISIBLE_CLIENT))
        return NVML_ERROR_IN_USE;
    size_t place = (size_t)(instance - board->compute_instances);
    board->compute_instance_count--;
    memmove(&board->compute_instances[place], &board->compute_instances[place + 1],
            (board->compute_instance_count - place) * sizeof *instance);
    capabilities_follow(board, request->board);
    return NVML_SUCCESS;
}
