/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The kernel's part as a process: one thread, one request at a time, from the node and from its containers alike. The kernel says who
 * asks (SO_PEERCRED), in the node's own process ids.
 */
#define _GNU_SOURCE
#include "state.h"

#include <nvml.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS = 512 };

static struct pollfd connections[1 + CONNECTIONS]; /* the listener first */
static bool watching[1 + CONNECTIONS];
static nfds_t count = 1;

static void log_call(int log, const struct state *state, const struct request *request, const struct ucred *peer, uint32_t status)
{
    const char *board = request->operation == OP_UNLOAD || request->board >= state->board_count ? "-" : state->boards[request->board].uuid;
    char when[32];
    time_t now = time(NULL);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    dprintf(log, "%s pid=%d uid=%u %s gpu=%s value=%lld status=%u\n", when, peer->pid, peer->uid, operation_name(request->operation), board,
            (long long)request->a, status);
}

static void tell_watchers(struct event event)
{
    for (nfds_t i = 1; i < count; i++)
        if (watching[i])
            send(connections[i].fd, &event, sizeof event, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void hang_up(nfds_t i, struct state *state)
{
    process_remove(state, connections[i].fd);
    close(connections[i].fd);
    count--;
    connections[i] = connections[count];
    watching[i] = watching[count];
}

static void answer(nfds_t i, struct state *state, int log)
{
    struct request request;
    struct ucred peer;
    int fd = connections[i].fd;

    if (recv(fd, &request, sizeof request, MSG_WAITALL) != sizeof request || request.magic != SIM_MAGIC ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &(socklen_t){sizeof peer})) {
        hang_up(i, state);
        return;
    }
    struct answer head = {SIM_MAGIC, SIM_LAYOUT, NVML_ERROR_LIB_RM_VERSION_MISMATCH};
    if (request.layout != SIM_LAYOUT || request.operation >= OP_COUNT) {
        send(fd, &head, sizeof head, MSG_NOSIGNAL);
        hang_up(i, state);
        return;
    }
    process_prune(state);
    head.status = operate(state, &request, peer.pid, peer.uid);
    if (request.operation == OP_OPEN || request.operation == OP_WATCH)
        process_add(state, peer.pid, fd, USE_CLIENT, SIM_BOARDS, 0);
    if (operation_name(request.operation))
        log_call(log, state, &request, &peer, head.status);
    if (send(fd, &head, sizeof head, MSG_NOSIGNAL) != sizeof head || send(fd, state, sizeof *state, MSG_NOSIGNAL) != sizeof *state)
        hang_up(i, state);
    else if (request.operation == OP_WATCH)
        watching[i] = true;

    if (head.status == NVML_SUCCESS && request.operation == OP_UNLOAD)
        exit(0);
    if (head.status == NVML_SUCCESS && (request.operation == OP_XID || request.operation == OP_LOSE))
        tell_watchers((struct event){request.board, state->boards[request.board].last_xid});
}

void serve(int listener, struct state *state, int log)
{
    connections[0] = (struct pollfd){listener, POLLIN, 0};
    for (;;) {
        poll(connections, count, -1);
        /* From behind, because hanging up moves the last one to the free place. */
        for (nfds_t i = count; i-- > 1;)
            if (connections[i].revents)
                answer(i, state, log);
        if (!connections[0].revents)
            continue;
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0 && count == 1 + CONNECTIONS) {
            close(fd);
        } else if (fd >= 0) {
            struct timeval patience = {.tv_sec = 2}; /* a client that was stopped must not stop everybody */
            setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
            setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
            connections[count] = (struct pollfd){fd, POLLIN, 0};
            watching[count] = false;
            count++;
        }
    }
}
