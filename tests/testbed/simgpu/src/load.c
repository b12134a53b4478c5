/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Loading and unloading the "kernel module": what appears on a node with it, in /proc, /dev and /sys, and the process that plays it.
 */
#define _GNU_SOURCE
#include "driver.h"

#include <nvml.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PROC "/proc/driver/nvidia"
#define BIND "../../../bus/pci/drivers/nvidia"

static const struct {
    const char *path;
    unsigned major, minor;
} nodes[] = {
    {"/dev/nvidiactl", 195, 255}, {"/dev/nvidia-modeset", 195, 254}, {"/dev/nvidia-uvm", 234, 0}, {"/dev/nvidia-uvm-tools", 234, 1},
};

/* A file that the package put beside this program, such as "version". */
static bool read_beside(const char *name, char *text, size_t size)
{
    char path[256];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n < 0 ? 0 : n] = 0;
    char *slash = strrchr(path, '/');
    if (!slash)
        return false;
    snprintf(slash + 1, sizeof path - (size_t)(slash + 1 - path), "%s", name);
    FILE *file = fopen(path, "re");
    bool found = file && fgets(text, (int)size, file);
    if (file)
        fclose(file);
    if (found)
        text[strcspn(text, " \n")] = 0;
    return found;
}

/* --- boards --- */

static int by_address(const void *a, const void *b)
{
    return strcmp(((const struct board *)a)->address, ((const struct board *)b)->address);
}

static void bind_path(const struct board *board, char *path, size_t size)
{
    snprintf(path, size, "/sys/bus/pci/devices/%s/driver", board->address);
}

/* A board that nouveau or vfio-pci has taken is not ours. */
static bool is_taken(const struct board *board)
{
    char path[64], target[128];
    bind_path(board, path, sizeof path);
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n < 0)
        return false;
    target[n] = 0;
    char *driver = strrchr(target, '/');
    return strcmp(driver ? driver + 1 : target, "nvidia") != 0;
}

static int read_boards(struct state *state)
{
    DIR *directory = opendir(SIM_HARDWARE);
    struct dirent *entry;
    char path[320];
    while (directory && (entry = readdir(directory)) && state->board_count < SIM_BOARDS) {
        struct board *board = &state->boards[state->board_count];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, SIM_HARDWARE "/%s", entry->d_name);
        if (board_read(path, board)) {
            closedir(directory);
            return -1;
        }
        board_recall(board);
        state->board_count += !is_taken(board);
    }
    if (directory)
        closedir(directory);
    qsort(state->boards, state->board_count, sizeof *state->boards, by_address);
    return 0;
}

/* --- what a node shows --- */

static bool show_in_proc(const struct state *state)
{
    struct statfs fs;
    char path[128];
    if (!statfs("/proc/driver", &fs) && fs.f_type != TMPFS_MAGIC && mount("tmpfs", "/proc/driver", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755")) {
        fprintf(stderr, "simgpu: cannot mount a tmpfs on /proc/driver: %s\n", strerror(errno));
        return false;
    }
    make_directories(PROC);
    bool open = !strcmp(state->flavour, "open");
    if (!put_file(PROC "/version", "NVRM version: NVIDIA UNIX %s  %s  Release Build  (simgpu@testbed)\n"
                              "GCC version:  gcc version 14.2.0 (Debian 14.2.0-19)\n",
             open ? "Open Kernel Module for x86_64" : "x86_64 Kernel Module", state->driver_version) ||
        /* With ModifyDeviceFiles: 1 the container toolkit would mount a changed copy over this file in the container's own /proc, where
         * it does not exist, and no container would start. */
        !put_file(PROC "/params", "ResmanDebugLevel: 4294967295\nRmLogonRC: 1\nModifyDeviceFiles: 0\nDeviceFileUID: 0\nDeviceFileGID: 0\n"
                             "DeviceFileMode: 438\nEnableMSI: 1\nPreserveVideoMemoryAllocations: 0\nEnableGpuFirmware: 18\nRegistryDwords: \"\"\n"))
        return false;
    for (unsigned minor = 0; minor < state->board_count; minor++) {
        const struct board *board = &state->boards[minor];
        snprintf(path, sizeof path, PROC "/gpus/%s", board->address);
        make_directories(path);
        strcat(path, "/information");
        if (!put_file(path, "Model: \t\t %s\nIRQ:   \t\t %u\nGPU UUID: \t %s\nVideo BIOS: \t %s\nBus Type: \t PCIe\nDMA Size: \t 52 bits\n"
                       "DMA Mask: \t 0xfffffffffffff\nBus Location: \t %s\nDevice Minor: \t %u\nGPU Firmware: \t %s\nGPU Excluded:\t No\n",
                 board->name, 100 + minor, board->uuid, board->vbios, board->address, minor, open ? state->driver_version : "N/A"))
            return false;
    }
    return true;
}

static bool show_in_dev(const struct state *state)
{
    bool made = true;
    char path[32];
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
        made &= make_node(nodes[i].path, nodes[i].major, nodes[i].minor, 0666);
    for (unsigned minor = 0; minor < state->board_count; minor++) {
        snprintf(path, sizeof path, "/dev/nvidia%u", minor);
        made &= make_node(path, 195, minor, 0666);
    }
    return made;
}

static void show_in_sys(const struct state *state)
{
    char path[64];
    for (unsigned minor = 0; minor < state->board_count; minor++) {
        bind_path(&state->boards[minor], path, sizeof path);
        if (symlink(BIND, path) && errno != EEXIST)
            fprintf(stderr, "simgpu: %s: %s (the board will look as if no driver had it)\n", path, strerror(errno));
    }
}

static void hide(void)
{
    char path[64];
    remove_tree(PROC);
    capabilities_unload();
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
        unlink(nodes[i].path);
    for (unsigned minor = 0; minor < SIM_BOARDS; minor++) {
        snprintf(path, sizeof path, "/dev/nvidia%u", minor);
        unlink(path);
    }
    unlink(SIM_SHARED_SOCKET);
    unlink(SIM_SOCKET);
}

/* --- the process that plays the kernel --- */

static int listen_at(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    unlink(path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&name, sizeof name) || chmod(path, 0666) || listen(fd, 128)) {
        fprintf(stderr, "simgpu: cannot listen at %s: %s\n", path, strerror(errno));
        return -1;
    }
    return fd;
}

/* The kernel is in nobody's cgroup: whoever loads the module may be a unit that is stopped later, with all that is in its cgroup. */
static void leave_cgroup(void)
{
    static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd"};
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        char path[96];
        snprintf(path, sizeof path, "%s/cgroup.procs", roots[i]);
        if (access(path, W_OK))
            continue;
        snprintf(path, sizeof path, "%s/simgpu", roots[i]);
        mkdir(path, 0755);
        strcat(path, "/cgroup.procs");
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd >= 0) {
            (void)!write(fd, "0", 1);
            close(fd);
        }
    }
}

static int start_server(struct state *state)
{
    make_directories("/run/simgpu");
    make_directories(SIM_INFOROM);
    make_directories("/run/nvidia-persistenced");
    int listener = listen_at(SIM_SOCKET);
    int log = open(SIM_LOG, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (listener < 0 || log < 0)
        return -1;
    /* The loader may end only when its child has left: a unit that ends takes along what is still in its cgroup. */
    int left[2];
    if (pipe(left))
        return -1;
    pid_t pid = fork();
    if (pid < 0)
        return -1;
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);
        setsid();
        leave_cgroup();
        (void)!write(left[1], "", 1);
        if (chdir("/"))
            _exit(1);
        for (int fd = 0; fd < 3; fd++)
            dup2(null, fd);
        /* Nothing that the loader had open may stay open, such as the pipe of an ssh session. */
        for (int fd = 3; fd < 1024; fd++)
            if (fd != listener && fd != log)
                close(fd);
        signal(SIGHUP, SIG_IGN);
        serve(listener, state, log);
    }
    char byte;
    close(left[1]);
    (void)!read(left[0], &byte, 1);
    close(left[0]);
    close(listener);
    close(log);
    unlink(SIM_SHARED_SOCKET);
    if (link(SIM_SOCKET, SIM_SHARED_SOCKET)) {
        fprintf(stderr, "simgpu: %s: %s\n", SIM_SHARED_SOCKET, strerror(errno));
        return -1;
    }
    return 0;
}

int driver_load(const char *version)
{
    static struct state running, state = {.magic = SIM_MAGIC, .layout = SIM_LAYOUT, .flavour = "open"};
    int lock = open("/run/simgpu.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0 || flock(lock, LOCK_EX)) {
        perror("simgpu: /run/simgpu.lock");
        return 1;
    }
    if (sim_ask(OP_LOOK, 0, 0, 0, &running) == NVML_SUCCESS)
        return 0; /* loaded already, as modprobe sees it */

    read_beside("flavour", state.flavour, sizeof state.flavour);
    if (version)
        snprintf(state.driver_version, sizeof state.driver_version, "%s", version);
    else if (!read_beside("version", state.driver_version, sizeof state.driver_version)) {
        fprintf(stderr, "simgpu: no driver version: neither --version nor a file \"version\" beside this program\n");
        return 1;
    }
    if (read_boards(&state))
        return 1;
    if (!state.board_count) {
        fprintf(stderr, "simgpu: could not insert 'nvidia': No such device (no free board in " SIM_HARDWARE ")\n");
        return 1;
    }
    if (start_server(&state))
        return 1;
    if (!show_in_proc(&state) || !show_in_dev(&state) || !capabilities_load()) {
        driver_unload(true);
        return 1;
    }
    show_in_sys(&state);
    return 0;
}

int driver_unload(bool force)
{
    static struct state state;
    char path[64];
    int status = sim_ask(OP_UNLOAD, 0, force, 0, &state);
    if (status == NVML_ERROR_DRIVER_NOT_LOADED) {
        hide();
        return 0;
    }
    if (status == NVML_ERROR_IN_USE) {
        fprintf(stderr, "simgpu: module nvidia is in use by:");
        for (unsigned i = 0; i < state.process_count; i++)
            fprintf(stderr, " %s (%d)", state.processes[i].name, state.processes[i].pid);
        fprintf(stderr, "\n");
        return 1;
    }
    if (status) {
        fprintf(stderr, "simgpu: cannot unload: NVML status %d\n", status);
        return 1;
    }
    for (unsigned minor = 0; minor < state.board_count; minor++) {
        bind_path(&state.boards[minor], path, sizeof path);
        unlink(path);
    }
    hide();
    return 0;
}
