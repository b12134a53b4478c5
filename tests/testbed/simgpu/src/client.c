/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Asking the driver: over its socket on the node, or over the same socket where the container toolkit mounts it.
 */
#define _GNU_SOURCE
#include "state.h"

#include <nvml.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int dial(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&name, sizeof name)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static bool receive(int fd, void *data, size_t size)
{
    char *place = data;
    while (size) {
        ssize_t n = recv(fd, place, size, MSG_WAITALL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        place += n;
        size -= (size_t)n;
    }
    return true;
}

static int talk(struct request request, struct state *state, uint32_t *result, int *connection)
{
    struct answer answer = {0};
    int status, fd = dial(SIM_SOCKET);
    if (fd < 0)
        fd = dial(SIM_SHARED_SOCKET);
    if (fd < 0)
        return NVML_ERROR_DRIVER_NOT_LOADED;
    request.magic = SIM_MAGIC;
    request.layout = SIM_LAYOUT;
    if (send(fd, &request, sizeof request, MSG_NOSIGNAL) != sizeof request || !receive(fd, &answer, sizeof answer))
        status = NVML_ERROR_UNKNOWN;
    else if (answer.magic != SIM_MAGIC || answer.layout != SIM_LAYOUT)
        status = NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    else
        status = receive(fd, state, sizeof *state) ? (int)answer.status : NVML_ERROR_UNKNOWN;
    if (result)
        *result = answer.result;
    if (connection && status == NVML_SUCCESS)
        *connection = fd;
    else
        close(fd);
    usleep(answer.delay_ms * 1000);
    return status;
}

int sim_request(const struct request *request, struct state *state, uint32_t *result)
{
    return talk(*request, state, result, NULL);
}

int sim_ask(enum operation operation, unsigned board, int64_t a, int64_t b, struct state *state)
{
    struct request request = {.operation = operation, .board = board, .gi = SIM_NONE, .ci = SIM_NONE, .a = a, .b = b};
    return talk(request, state, NULL, NULL);
}

int sim_connect(enum operation operation, struct state *state, int *connection)
{
    struct request request = {.operation = operation, .gi = SIM_NONE, .ci = SIM_NONE};
    return talk(request, state, NULL, connection);
}
