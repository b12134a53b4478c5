/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * NVML: events. A set is a connection on which the driver tells of every XID; a set keeps those that it was registered for.
 */
#include "library.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SUPPORTED (nvmlEventTypeXidCriticalError | nvmlEventTypeSingleBitEccError | nvmlEventTypeDoubleBitEccError | nvmlEventTypeClock)

struct nvmlEventSet_st {
    int connection;
    unsigned long long types[SIM_BOARDS];
};

READS(nvmlDeviceGetSupportedEventTypes, unsigned long long, SUPPORTED)

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    struct state state;
    CHECK(ready());
    if (!set)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlEventSet_t new = calloc(1, sizeof *new);
    if (!new)
        return NVML_ERROR_MEMORY;
    if (sim_connect(OP_WATCH, &state, &new->connection)) {
        free(new);
        return NVML_ERROR_UNKNOWN;
    }
    *set = new;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
    struct board board;
    CHECK(board_of(device, &board));
    if (!set)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (types & ~(unsigned long long)SUPPORTED)
        return NVML_ERROR_NOT_SUPPORTED;
    set->types[minor_of(device)] |= types;
    return NVML_SUCCESS;
}

static long long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
    if (!set || !data)
        return NVML_ERROR_INVALID_ARGUMENT;
    long long end = now_ms() + timeout_ms, left;
    while ((left = end - now_ms()) >= 0) {
        struct pollfd wait = {set->connection, POLLIN, 0};
        struct event event;
        if (poll(&wait, 1, left > 60000 ? 60000 : (int)left) <= 0)
            continue;
        if (recv(set->connection, &event, sizeof event, MSG_WAITALL) != sizeof event)
            return NVML_ERROR_UNKNOWN; /* the driver was unloaded */
        if (!(set->types[event.board] & nvmlEventTypeXidCriticalError))
            continue;
        *data = (nvmlEventData_t){handle(event.board), nvmlEventTypeXidCriticalError, event.xid, event.gi, event.ci};
        return NVML_SUCCESS;
    }
    return NVML_ERROR_TIMEOUT;
}

nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
    return nvmlEventSetWait_v2(set, data, timeout_ms);
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
    if (!set)
        return NVML_ERROR_INVALID_ARGUMENT;
    close(set->connection);
    free(set);
    return NVML_SUCCESS;
}
