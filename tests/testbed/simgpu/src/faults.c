/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What a test can make go wrong, on one board or on all. Some hold until they are cleared, some hit the n-th call since they were set.
 */
#include "driver.h"

#include <nvml.h>

static const char *const names[FAULT_KINDS] = {
    [FAULT_PASSTHROUGH] = "passthrough", /* an Ampere board in a virtual machine: nothing but a reboot changes its MIG mode */
    [FAULT_NO_PROFILES_WHEN_OFF] = "no-profiles-when-off", /* branch 535: profiles and placements can be asked only with MIG on */
    [FAULT_NO_PROFILE_NAMES] = "no-profile-names",         /* a driver that knows only version 1 of the profiles' structures */
    [FAULT_INVISIBLE_CLIENT] = "invisible-client",         /* IN_USE, though nobody is listed */
    [FAULT_NO_PERMISSION] = "no-permission",               /* for changing calls */
    [FAULT_SLOW] = "slow",                                 /* changing calls take that many milliseconds */
    [FAULT_FAIL] = "fail",                                 /* a changing call */
    [FAULT_FAIL_READ] = "fail-read",                       /* a call that reads */
    [FAULT_KILL_BEFORE] = "kill-before",                   /* the caller, before a changing call takes effect */
    [FAULT_KILL_AFTER] = "kill-after",                     /* the caller, when a changing call took effect and before it returns */
    [FAULT_KILL] = "kill",                                 /* the caller, in a call of any kind, before it takes effect */
};

const char *fault_name(enum fault_kind kind)
{
    return names[kind];
}

static bool concerns(const struct fault *fault, unsigned board)
{
    return fault->board == board || fault->board == SIM_BOARDS;
}

bool fault_active(const struct state *state, unsigned board, enum fault_kind kind)
{
    for (unsigned i = 0; i < state->fault_count; i++)
        if (state->faults[i].kind == kind && concerns(&state->faults[i], board))
            return true;
    return false;
}

/* Calls of NVML that change something. Persistence mode is left out: nvidia-persistenced sets it, whenever it starts or stops. */
static bool is_change(const struct request *request)
{
    switch (request->operation) {
    case OP_SET_COMPUTE_MODE:
    case OP_SET_ECC:
    case OP_SET_MIG:
    case OP_CREATE_GI:
    case OP_DESTROY_GI:
    case OP_CREATE_CI:
    case OP_DESTROY_CI:
        return true;
    }
    return false;
}

struct fault_hit faults_count(struct state *state, const struct request *request)
{
    struct fault_hit hit = {0};
    bool change = is_change(request), read = request->operation == OP_READ;
    for (unsigned i = 0; i < state->fault_count; i++) {
        struct fault *fault = &state->faults[i];
        bool counts = fault->kind == FAULT_KILL ? change || read : fault->kind == FAULT_FAIL_READ ? read : change;
        if (!counts || !concerns(fault, request->board))
            continue;
        bool due = ++fault->seen == fault->number;
        switch (fault->kind) {
        case FAULT_NO_PERMISSION: hit.status = NVML_ERROR_NO_PERMISSION; break;
        case FAULT_SLOW: hit.delay_ms = fault->number; break;
        case FAULT_FAIL:
        case FAULT_FAIL_READ: hit.status = due ? fault->code : hit.status; break;
        case FAULT_KILL:
        case FAULT_KILL_BEFORE: hit.kill_before |= due; break;
        case FAULT_KILL_AFTER: hit.kill_after |= due; break;
        }
    }
    return hit;
}

uint32_t fault_set(struct state *state, const struct request *request)
{
    if (request->a < 0 || request->a >= FAULT_KINDS || (request->board >= state->board_count && request->board != SIM_BOARDS))
        return NVML_ERROR_INVALID_ARGUMENT;
    if (state->fault_count == SIM_FAULTS)
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    state->faults[state->fault_count++] =
        (struct fault){.kind = (uint32_t)request->a, .board = request->board, .number = (uint32_t)request->b, .code = (uint32_t)request->c};
    return NVML_SUCCESS;
}
