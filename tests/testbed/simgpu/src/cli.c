/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * simgpu: loads the simulated driver, shows it, and plays what happens to GPUs.
 */
#define _GNU_SOURCE
#include "state.h"

#include <nvml.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: simgpu load [--version VERSION]     what modprobe nvidia does\n"
    "       simgpu unload [--force]             what modprobe -r nvidia does; refused while somebody uses the driver\n"
    "       simgpu show                         the state as JSON\n"
    "       simgpu hold [--graphics|--mps] [--memory MIB] GPU -- COMMAND...   runs COMMAND as a process that computes on GPU\n"
    "       simgpu xid GPU CODE                 an XID error, for those who wait for events\n"
    "       simgpu lose GPU                     falls off the bus: XID 79, calls answer GPU_IS_LOST\n"
    "       simgpu restore GPU                  is back\n"
    "       simgpu reset GPU                    what nvidia-smi --gpu-reset does\n"
    "GPU is an index, a UUID or a PCI address.\n";

static struct state state;

static int fail(const char *what, int status)
{
    fprintf(stderr, "simgpu: %s: %s (NVML status %d)\n", what,
            status == NVML_ERROR_DRIVER_NOT_LOADED ? "the driver is not loaded"
            : status == NVML_ERROR_IN_USE          ? "the GPU is in use or its compute mode forbids it"
            : status == NVML_ERROR_NO_PERMISSION   ? "only root may do that"
            : status == NVML_ERROR_GPU_IS_LOST     ? "the GPU is lost"
                                                   : "refused",
            status);
    return 1;
}

static int show(void)
{
    static const char *const uses[] = {"compute", "graphics", "mps", "client"};
    int status = sim_ask(OP_LOOK, 0, 0, 0, &state);
    if (status)
        return fail("show", status);
    printf("{\"driver_version\": \"%s\", \"flavour\": \"%s\", \"gpus\": [", state.driver_version, state.flavour);
    for (unsigned minor = 0; minor < state.board_count; minor++) {
        printf("%s\n  {\"minor\": %u", minor ? "," : "", minor);
        board_print(stdout, &state.boards[minor]);
        printf("}");
    }
    printf("],\n \"processes\": [");
    for (unsigned i = 0; i < state.process_count; i++) {
        const struct process *process = &state.processes[i];
        printf("%s\n  {\"pid\": %d, \"use\": \"%s\", \"name\": \"%s\"", i ? "," : "", process->pid, uses[process->use], process->name);
        if (process->use != USE_CLIENT)
            printf(", \"gpu\": \"%s\", \"memory_mib\": %u", state.boards[process->board].uuid, process->memory_mib);
        printf("}");
    }
    printf("]}\n");
    return 0;
}

static int on_gpu(const char *name, const char *what, enum operation operation, int64_t a, int64_t b)
{
    int status = sim_ask(OP_LOOK, 0, 0, 0, &state);
    if (status)
        return fail(what, status);
    int minor = board_find(&state, name);
    if (minor < 0) {
        fprintf(stderr, "simgpu: %s: no GPU is called %s here\n", what, name);
        return 1;
    }
    status = sim_ask(operation, (unsigned)minor, a, b, &state);
    return status ? fail(what, status) : 0;
}

static int hold(char **arguments)
{
    enum use use = USE_COMPUTE;
    long memory = 512;
    for (; *arguments && !strncmp(*arguments, "--", 2); arguments++) {
        if (!strcmp(*arguments, "--graphics"))
            use = USE_GRAPHICS;
        else if (!strcmp(*arguments, "--mps"))
            use = USE_MPS;
        else if (!strcmp(*arguments, "--memory") && arguments[1])
            memory = strtol(*++arguments, NULL, 10);
        else
            break;
    }
    if (!arguments[0] || !arguments[1] || strcmp(arguments[1], "--") || !arguments[2])
        return fputs(usage, stderr), 2;
    /* The process stays the same through exec: same pid, same start time. */
    if (on_gpu(arguments[0], "hold", OP_HOLD, use, memory))
        return 1;
    execvp(arguments[2], arguments + 2);
    perror(arguments[2]);
    return 127;
}

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";
    if (!strcmp(command, "load") && (argc == 2 || (argc == 4 && !strcmp(argv[2], "--version"))))
        return driver_load(argc == 4 ? argv[3] : NULL);
    if (!strcmp(command, "unload") && (argc == 2 || (argc == 3 && !strcmp(argv[2], "--force"))))
        return driver_unload(argc == 3);
    if (!strcmp(command, "show") && argc == 2)
        return show();
    if (!strcmp(command, "hold"))
        return hold(argv + 2);
    if (!strcmp(command, "xid") && argc == 4)
        return on_gpu(argv[2], command, OP_XID, strtol(argv[3], NULL, 10), 0);
    if (!strcmp(command, "lose") && argc == 3)
        return on_gpu(argv[2], command, OP_LOSE, 0, 0);
    if (!strcmp(command, "restore") && argc == 3)
        return on_gpu(argv[2], command, OP_RESTORE, 0, 0);
    if (!strcmp(command, "reset") && argc == 3)
        return on_gpu(argv[2], command, OP_RESET, 0, 0);
    fputs(usage, stderr);
    return 2;
}
