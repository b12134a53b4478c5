/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * simgpu: loads the simulated driver, shows it, and plays what happens to GPUs.
 */
#define _GNU_SOURCE
#include "driver.h"

#include <nvml.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: simgpu load [--version VERSION]     what modprobe nvidia does\n"
    "       simgpu unload [--force]             what modprobe -r nvidia does; refused while somebody uses the driver\n"
    "       simgpu show                         the state as JSON\n"
    "       simgpu hold [--graphics|--mps] [--memory MIB] [--gi ID [--ci ID]] GPU -- COMMAND...\n"
    "                                           runs COMMAND as a process that computes on GPU\n"
    "       simgpu xid GPU CODE                 an XID error, for those who wait for events\n"
    "       simgpu lose GPU                     falls off the bus: XID 79, calls answer GPU_IS_LOST\n"
    "       simgpu restore GPU                  is back\n"
    "       simgpu reset GPU                    what nvidia-smi --gpu-reset does\n"
    "       simgpu fault GPU|all KIND           from now on, until cleared or unloaded:\n"
    "           passthrough                     an Ampere board in a virtual machine: RESET_REQUIRED, and a reset changes nothing\n"
    "           no-profiles-when-off            branch 535: profiles cannot be asked while MIG is off\n"
    "           no-profile-names                only version 1 of the profiles' structures\n"
    "           invisible-client                IN_USE by nobody that is listed\n"
    "           no-permission                   for calls that change something\n"
    "           slow MS                         calls that change something take so long\n"
    "           fail N CODE, fail-read N CODE   the N-th call from now on that changes, or reads, something returns CODE\n"
    "           kill-before N, kill-after N     SIGKILL for the caller of the N-th that changes something, before or after it does\n"
    "           kill N                          SIGKILL for the caller of the N-th call of any kind\n"
    "       simgpu fault clear                  no faults any more\n"
    "GPU is an index, a UUID (hold, xid: a MIG device's as well) or a PCI address.\n";

static struct state state;

static int fail(const char *what, int status)
{
    fprintf(stderr, "simgpu: %s: %s (NVML status %d)\n", what,
            status == NVML_ERROR_DRIVER_NOT_LOADED ? "the driver is not loaded"
            : status == NVML_ERROR_IN_USE          ? "the GPU is in use or its compute mode forbids it"
            : status == NVML_ERROR_NO_PERMISSION   ? "only root may do that"
            : status == NVML_ERROR_GPU_IS_LOST     ? "the GPU is lost"
            : status == NVML_ERROR_NOT_FOUND       ? "there is no such MIG device"
                                                   : "refused",
            status);
    return 1;
}

/* --- show --- */

static void show_instances(const struct board *board)
{
    printf(", \"gpu_instances\": [");
    for (unsigned i = 0; i < board->gpu_instance_count; i++) {
        const struct gpu_instance *instance = &board->gpu_instances[i];
        const struct mig_profile *profile = gpu_instance_profile(board, instance);
        const char *comma = "";
        printf("%s\n    {\"id\": %u, \"profile\": \"%s\", \"start\": %u, \"size\": %u, \"compute_instances\": [", i ? "," : "", instance->id,
               profile->name, instance->start, profile->size);
        for (unsigned k = 0; k < board->compute_instance_count; k++) {
            const struct compute_instance *ci = &board->compute_instances[k];
            char name[40], uuid[64];
            if (ci->gi != instance->id)
                continue;
            mig_name(profile, ci->slices, name, sizeof name);
            mig_uuid(board, ci->gi, ci->id, uuid, sizeof uuid);
            printf("%s{\"id\": %u, \"profile\": \"%s\", \"start\": %u, \"size\": %u, \"index\": %u, \"uuid\": \"%s\"}", comma, ci->id,
                   name + strlen("MIG "), ci->start, ci->slices, ci->slot, uuid);
            comma = ", ";
        }
        printf("]}");
    }
    printf("]");
}

static void show_processes(void)
{
    static const char *const uses[] = {"compute", "graphics", "mps", "client"};
    for (unsigned i = 0; i < state.process_count; i++) {
        const struct process *process = &state.processes[i];
        printf("%s\n  {\"pid\": %d, \"use\": \"%s\", \"name\": \"%s\"", i ? "," : "", process->pid, uses[process->use], process->name);
        if (process->use != USE_CLIENT)
            printf(", \"gpu\": \"%s\", \"memory_mib\": %u", state.boards[process->board].uuid, process->memory_mib);
        if (process->gi != SIM_NONE)
            printf(", \"gpu_instance\": %u, \"compute_instance\": %u", process->gi, process->ci);
        printf("}");
    }
}

static void show_faults(void)
{
    for (unsigned i = 0; i < state.fault_count; i++) {
        const struct fault *fault = &state.faults[i];
        printf("%s\n  {\"kind\": \"%s\", \"gpu\": \"%s\", \"number\": %u, \"code\": %u, \"seen\": %u}", i ? "," : "", fault_name(fault->kind),
               fault->board == SIM_BOARDS ? "all" : state.boards[fault->board].uuid, fault->number, fault->code, fault->seen);
    }
}

static int show(void)
{
    int status = sim_ask(OP_LOOK, 0, 0, 0, &state);
    if (status)
        return fail("show", status);
    printf("{\"driver_version\": \"%s\", \"flavour\": \"%s\", \"gpus\": [", state.driver_version, state.flavour);
    for (unsigned minor = 0; minor < state.board_count; minor++) {
        printf("%s\n  {\"minor\": %u", minor ? "," : "", minor);
        board_print(stdout, &state.boards[minor]);
        show_instances(&state.boards[minor]);
        printf("}");
    }
    printf("],\n \"processes\": [");
    show_processes();
    printf("],\n \"faults\": [");
    show_faults();
    printf("]}\n");
    return 0;
}

/* --- what happens to a GPU --- */

/* Says which board or MIG device the request is about. */
static int find(const char *name, const char *what, struct request *request)
{
    int status = sim_ask(OP_LOOK, 0, 0, 0, &state);
    if (status)
        return fail(what, status);
    unsigned minor;
    const struct compute_instance *instance = mig_device_find(&state, name, &minor);
    int found = instance ? (int)minor : board_find(&state, name);
    if (found < 0) {
        fprintf(stderr, "simgpu: %s: no GPU is called %s here\n", what, name);
        return 1;
    }
    request->board = (uint32_t)found;
    if (instance) {
        request->gi = instance->gi;
        request->ci = instance->id;
    }
    return 0;
}

static int on_gpu(const char *name, const char *what, enum operation operation, int64_t a)
{
    struct request request = {.operation = operation, .gi = SIM_NONE, .ci = SIM_NONE, .a = a};
    if (find(name, what, &request))
        return 1;
    int status = sim_request(&request, &state, NULL);
    return status ? fail(what, status) : 0;
}

/* What a process that computes has open, for those who look into /proc/PID/fd. */
static void open_nodes(const struct request *request)
{
    char path[48];
    (void)!open("/dev/nvidiactl", O_PATH);
    snprintf(path, sizeof path, "/dev/nvidia%u", request->board);
    (void)!open(path, O_PATH);
    if (request->gi == SIM_NONE)
        return;
    capability_path(capability_of(request->board, request->gi, SIM_NONE), path, sizeof path);
    (void)!open(path, O_PATH);
    capability_path(capability_of(request->board, request->gi, request->ci), path, sizeof path);
    (void)!open(path, O_PATH);
}

static int hold(char **arguments)
{
    struct request request = {.operation = OP_HOLD, .gi = SIM_NONE, .ci = SIM_NONE, .a = USE_COMPUTE, .b = 512};
    for (; *arguments && !strncmp(*arguments, "--", 2); arguments++) {
        if (!strcmp(*arguments, "--graphics"))
            request.a = USE_GRAPHICS;
        else if (!strcmp(*arguments, "--mps"))
            request.a = USE_MPS;
        else if (!strcmp(*arguments, "--memory") && arguments[1])
            request.b = strtol(*++arguments, NULL, 10);
        else if (!strcmp(*arguments, "--gi") && arguments[1])
            request.gi = (uint32_t)strtoul(*++arguments, NULL, 10), request.ci = 0;
        else if (!strcmp(*arguments, "--ci") && arguments[1])
            request.ci = (uint32_t)strtoul(*++arguments, NULL, 10);
        else
            break;
    }
    if (!arguments[0] || !arguments[1] || strcmp(arguments[1], "--") || !arguments[2])
        return fputs(usage, stderr), 2;
    if (find(arguments[0], "hold", &request))
        return 1;
    /* The process stays the same through exec: same pid, same start time. */
    int status = sim_request(&request, &state, NULL);
    if (status)
        return fail("hold", status);
    open_nodes(&request);
    execvp(arguments[2], arguments + 2);
    perror(arguments[2]);
    return 127;
}

static int fault(int count, char **arguments)
{
    struct request request = {.operation = OP_FAULT, .board = SIM_BOARDS, .gi = SIM_NONE, .ci = SIM_NONE};
    static const int numbers[FAULT_KINDS] = {
        [FAULT_SLOW] = 1, [FAULT_FAIL] = 2, [FAULT_FAIL_READ] = 2, [FAULT_KILL_BEFORE] = 1, [FAULT_KILL_AFTER] = 1, [FAULT_KILL] = 1};
    if (count == 1 && !strcmp(arguments[0], "clear")) {
        int status = sim_ask(OP_CLEAR_FAULTS, SIM_BOARDS, 0, 0, &state);
        return status ? fail("fault", status) : 0;
    }
    while (count > 1 && request.a < FAULT_KINDS && strcmp(fault_name((enum fault_kind)request.a), arguments[1]))
        request.a++;
    if (count < 2 || request.a == FAULT_KINDS || count != 2 + numbers[request.a])
        return fputs(usage, stderr), 2;
    if (strcmp(arguments[0], "all") && find(arguments[0], "fault", &request))
        return 1;
    request.b = count > 2 ? strtol(arguments[2], NULL, 10) : 0;
    request.c = count > 3 ? strtol(arguments[3], NULL, 10) : 0;
    int status = sim_request(&request, &state, NULL);
    return status ? fail("fault", status) : 0;
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
        return on_gpu(argv[2], command, OP_XID, strtol(argv[3], NULL, 10));
    if (!strcmp(command, "lose") && argc == 3)
        return on_gpu(argv[2], command, OP_LOSE, 0);
    if (!strcmp(command, "restore") && argc == 3)
        return on_gpu(argv[2], command, OP_RESTORE, 0);
    if (!strcmp(command, "reset") && argc == 3)
        return on_gpu(argv[2], command, OP_RESET, 0);
    if (!strcmp(command, "fault"))
        return fault(argc - 2, argv + 2);
    fputs(usage, stderr);
    return 2;
}
