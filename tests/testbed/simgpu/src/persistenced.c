/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * nvidia-persistenced: keeps the driver open and the boards initialised. Like the original it becomes a daemon by itself (systemd's
 * Type=forking) and says where in its pid file; stopping it ends persistence mode.
 */
#define _GNU_SOURCE
#include "state.h"

#include <nvml.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORY "/var/run/nvidia-persistenced"
#define PIDFILE DIRECTORY "/nvidia-persistenced.pid"

static struct state state;

static int persist(bool enabled)
{
    for (unsigned minor = 0; minor < state.board_count; minor++) {
        int status = sim_ask(OP_SET_PERSISTENCE, minor, enabled, 0, &state);
        if (status && status != NVML_ERROR_GPU_IS_LOST)
            return status;
    }
    return 0;
}

/* For those who look into /proc/PID/fd. */
static void open_nodes(void)
{
    char path[32] = "/dev/nvidiactl";
    for (unsigned i = 0; i <= state.board_count; i++) {
        (void)!open(path, O_PATH | O_CLOEXEC);
        snprintf(path, sizeof path, "/dev/nvidia%u", i);
    }
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"user", required_argument, NULL, 'u'}, {"persistence-mode", no_argument, NULL, 'p'}, {"no-persistence-mode", no_argument, NULL, 'n'},
        {"verbose", no_argument, NULL, 'V'}, {"foreground", no_argument, NULL, 'f'}, {"uvm-persistence-mode", no_argument, NULL, 'V'},
        {"version", no_argument, NULL, 'v'}, {NULL, 0, NULL, 0}};
    const char *user = NULL;
    bool enabled = true, foreground = false;
    int option;
    while ((option = getopt_long(argc, argv, "u:Vv", options, NULL)) != -1) {
        switch (option) {
        case 'u': user = optarg; break;
        case 'p': enabled = true; break;
        case 'n': enabled = false; break;
        case 'f': foreground = true; break;
        case 'V': break;
        case 'v': puts("nvidia-persistenced:  version " SIM_VERSION); return 0;
        default: return 1;
        }
    }
    const struct passwd *account = user ? getpwnam(user) : NULL;
    if (user && !account) {
        fprintf(stderr, "nvidia-persistenced: there is no user %s\n", user);
        return 1;
    }

    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    sigprocmask(SIG_BLOCK, &stop, NULL);

    /* The parent returns when the daemon is ready, which a byte in the pipe says. */
    int ready[2] = {-1, -1};
    if (!foreground) {
        if (pipe(ready))
            return 1;
        pid_t child = fork();
        if (child) {
            char byte;
            close(ready[1]);
            return child > 0 && read(ready[0], &byte, 1) == 1 ? 0 : 1;
        }
        close(ready[0]);
        setsid();
    }

    int connection; /* from now on unloading the driver is refused */
    if (sim_connect(OP_OPEN, &state, &connection)) {
        fprintf(stderr, "nvidia-persistenced: failed to open the NVIDIA driver: is it loaded?\n");
        return 1;
    }
    open_nodes();
    int status = persist(enabled);
    if (status) {
        fprintf(stderr, "nvidia-persistenced: cannot set persistence mode: NVML status %d\n", status);
        return 1;
    }
    /* The unit of the package empties this directory when the daemon stops; containers hold on to the socket itself. */
    mkdir(DIRECTORY, 0755);
    if (link(SIM_SOCKET, SIM_SHARED_SOCKET) && errno != EEXIST)
        perror("nvidia-persistenced: " SIM_SHARED_SOCKET);
    FILE *file = fopen(PIDFILE, "we");
    if (!file) {
        perror("nvidia-persistenced: " PIDFILE);
        return 1;
    }
    fprintf(file, "%d\n", getpid());
    fclose(file);
    if (!foreground) {
        int null = open("/dev/null", O_RDWR);
        for (int fd = 0; fd < 3; fd++)
            dup2(null, fd);
        if (chdir("/") || write(ready[1], "", 1) != 1)
            return 1;
        close(ready[1]);
    }
    /* The daemon's effective user is the one it was told; it stays able to end persistence mode. */
    if (account && seteuid(account->pw_uid))
        return 1;
    int signal;
    sigwait(&stop, &signal);
    if (account && seteuid(0))
        return 1;
    persist(false);
    unlink(PIDFILE);
    return 0;
}
