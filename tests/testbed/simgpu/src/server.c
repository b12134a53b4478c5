/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The kernel's part as a process: one thread, one request at a time, from the node and from its containers alike. The kernel says who
 * asks (SO_PEERCRED), in the node's own process ids.
 */
#define _GNU_SOURCE
#include "driver.h"

#include <nvml.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS = 512 };

static struct pollfd connections[1 + CONNECTIONS]; /* the listener first */
static bool watching[1 + CONNECTIONS];
static nfds_t count = 1;

static void log_line(int log, const struct state *state, const struct request *request, const struct ucred *peer, const char *what,
                     const char *detail)
{
    const char *board = request->operation == OP_UNLOAD || request->board >= state->board_count ? "-" : state->boards[request->board].uuid;
    char when[32];
    time_t now = time(NULL);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    dprintf(log, "%s pid=%d uid=%u %s gpu=%s %s\n", when, peer->pid, peer->uid, what, board, detail);
}

static void log_call(int log, const struct state *state, const struct request *request, const struct ucred *peer, uint32_t status,
                     const struct outcome *outcome)
{
    char detail[160];
    if (!operation_name(request->operation))
        return;
    if (*outcome->detail)
        snprintf(detail, sizeof detail, "%s status=%u", outcome->detail, status);
    else
        snprintf(detail, sizeof detail, "value=%lld status=%u", (long long)request->a, status);
    log_line(log, state, request, peer, operation_name(request->operation), detail);
    if (outcome->reset)
        log_line(log, state, request, peer, operation_name(OP_RESET), "by=set_mig_mode status=0");
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
    struct answer head = {.magic = SIM_MAGIC, .layout = SIM_LAYOUT, .status = NVML_ERROR_LIB_RM_VERSION_MISMATCH};
    if (request.layout != SIM_LAYOUT || request.operation >= OP_COUNT) {
        send(fd, &head, sizeof head, MSG_NOSIGNAL);
        hang_up(i, state);
        return;
    }
    process_prune(state);
    struct outcome outcome = {0};
    struct fault_hit hit = faults_count(state, &request);
    if (!hit.kill_before) {
        head.status = hit.status ? hit.status : operate(state, &request, peer.pid, peer.uid, &outcome);
        head.result = outcome.result;
        head.delay_ms = hit.delay_ms;
        log_call(log, state, &request, &peer, head.status, &outcome);
    }
    if (hit.kill_before || hit.kill_after) {
        log_line(log, state, &request, &peer, "kill", hit.kill_before ? "when=before" : "when=after");
        kill(peer.pid, SIGKILL);
        hang_up(i, state);
        return;
    }
    if (request.operation == OP_OPEN || request.operation == OP_WATCH)
        process_add_client(state, peer.pid, fd);
    if (send(fd, &head, sizeof head, MSG_NOSIGNAL) != sizeof head || send(fd, state, sizeof *state, MSG_NOSIGNAL) != sizeof *state)
        hang_up(i, state);
    else if (request.operation == OP_WATCH)
        watching[i] = true;

    if (head.status == NVML_SUCCESS && request.operation == OP_UNLOAD)
        exit(0);
    if (head.status == NVML_SUCCESS && (request.operation == OP_XID || request.operation == OP_LOSE))
        tell_watchers((struct event){request.board, state->boards[request.board].last_xid, request.gi, request.ci});
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
