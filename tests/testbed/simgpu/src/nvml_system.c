/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * NVML: start, end, and what concerns no single GPU.
 */
#define _GNU_SOURCE
#include "library.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users;
static int connection = -1;       /* makes us a client of the driver, as an open /dev/nvidiactl would */
static int nodes[1 + SIM_BOARDS]; /* shows us as one in /proc/PID/fd */

/* The module's version as /proc shows it; containers do not have that file and must believe the state. */
static void loaded_version(const struct state *state, char *version, size_t size)
{
    char line[256];
    snprintf(version, size, "%s", state->driver_version);
    FILE *file = fopen("/proc/driver/nvidia/version", "re");
    if (!file)
        return;
    char *place = fgets(line, sizeof line, file) ? strstr(line, "  ") : NULL; /* "... Module for x86_64  580.178.04  Release Build ..." */
    if (place)
        snprintf(version, size, "%.*s", (int)strcspn(place + 2, " \n"), place + 2);
    fclose(file);
}

static void keep_nodes_open(void)
{
    char path[32] = "/dev/nvidiactl";
    for (unsigned i = 0; i < 1 + SIM_BOARDS; i++) {
        nodes[i] = i == 0 || board_visible(i - 1) ? open(path, O_PATH | O_CLOEXEC) : -1;
        snprintf(path, sizeof path, "/dev/nvidia%u", i);
    }
}

static nvmlReturn_t attach(void)
{
    static struct state state;
    char version[32];
    int fd = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
    else if (errno == EPERM || errno == EACCES) /* a device cgroup without us, as after a systemd reload */
        return NVML_ERROR_UNKNOWN;
    else if (errno != ENXIO && errno != ENODEV)
        return NVML_ERROR_DRIVER_NOT_LOADED;

    CHECK((nvmlReturn_t)sim_connect(OP_OPEN, &state, &connection));
    loaded_version(&state, version, sizeof version);
    if (strcmp(version, SIM_VERSION)) {
        close(connection);
        return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    }
    keep_nodes_open();
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    (void)flags;
    nvmlReturn_t status = NVML_SUCCESS;
    pthread_mutex_lock(&lock);
    if (!users)
        status = attach();
    users += status == NVML_SUCCESS;
    pthread_mutex_unlock(&lock);
    return status;
}

nvmlReturn_t nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlInit(void)
{
    return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlShutdown(void)
{
    nvmlReturn_t status = NVML_ERROR_UNINITIALIZED;
    pthread_mutex_lock(&lock);
    if (users) {
        status = NVML_SUCCESS;
        if (!--users) {
            close(connection);
            for (unsigned i = 0; i < 1 + SIM_BOARDS; i++)
                close(nodes[i]);
        }
    }
    pthread_mutex_unlock(&lock);
    return status;
}

nvmlReturn_t ready(void)
{
    pthread_mutex_lock(&lock);
    bool initialized = users > 0;
    pthread_mutex_unlock(&lock);
    return initialized ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

nvmlReturn_t look(struct state *state)
{
    CHECK(ready());
    return (nvmlReturn_t)sim_ask(OP_READ, SIM_BOARDS, 0, 0, state);
}

const char *nvmlErrorString(nvmlReturn_t result)
{
    switch (result) {
    case NVML_SUCCESS: return "Success";
    case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
    case NVML_ERROR_NO_PERMISSION: return "Insufficient Permissions";
    case NVML_ERROR_ALREADY_INITIALIZED: return "Already Initialized";
    case NVML_ERROR_NOT_FOUND: return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
    case NVML_ERROR_INSUFFICIENT_POWER: return "Insufficient External Power";
    case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case NVML_ERROR_TIMEOUT: return "Timeout";
    case NVML_ERROR_LIBRARY_NOT_FOUND: return "Shared Library Not Found";
    case NVML_ERROR_FUNCTION_NOT_FOUND: return "Function Not Found";
    case NVML_ERROR_GPU_IS_LOST: return "GPU is lost";
    case NVML_ERROR_RESET_REQUIRED: return "GPU requires reset";
    case NVML_ERROR_OPERATING_SYSTEM: return "GPU access blocked by the operating system";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH: return "Driver/library version mismatch";
    case NVML_ERROR_IN_USE: return "In use by another client";
    case NVML_ERROR_MEMORY: return "Insufficient Memory";
    case NVML_ERROR_NO_DATA: return "No data";
    case NVML_ERROR_INSUFFICIENT_RESOURCES: return "Insufficient Resources";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH: return "Argument version mismatch";
    case NVML_ERROR_NOT_READY: return "System is not in ready state";
    case NVML_ERROR_GPU_NOT_FOUND: return "No GPUs found";
    case NVML_ERROR_INVALID_STATE: return "Invalid State";
    default: return "Unknown Error";
    }
}

nvmlReturn_t put_text(char *to, unsigned length, const char *text)
{
    if (!to)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(text) >= length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(to, text);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    struct state state;
    CHECK(look(&state));
    return put_text(version, length, state.driver_version);
}

/* CUDA 13.0 for branch 580, as nvidia-smi prints it: the newest branch that is not newer than ours. */
static int cuda_version(void)
{
    static const int branches[][2] = {{610, 13030}, {595, 13020}, {590, 13010}, {580, 13000}, {575, 12090}, {570, 12080}, {550, 12040}, {535, 12020}};
    int branch = atoi(SIM_VERSION);
    for (size_t i = 0; i < sizeof branches / sizeof *branches; i++)
        if (branch >= branches[i][0])
            return branches[i][1];
    return 11000;
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    char text[64];
    snprintf(text, sizeof text, "%d.%s", cuda_version() / 1000, SIM_VERSION);
    return put_text(version, length, text);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    if (!version)
        return NVML_ERROR_INVALID_ARGUMENT;
    *version = cuda_version();
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    return nvmlSystemGetCudaDriverVersion_v2(version);
}

nvmlReturn_t nvmlSystemGetDriverBranch(nvmlSystemDriverBranchInfo_t *info, unsigned int length)
{
    if (!info)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (info->version != nvmlSystemDriverBranchInfo_v1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    snprintf(info->branch, length < sizeof info->branch ? length : sizeof info->branch, "r%d_00", atoi(SIM_VERSION));
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length)
{
    char path[32], text[256];
    if (!name || !length)
        return NVML_ERROR_INVALID_ARGUMENT;
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return NVML_ERROR_NOT_FOUND;
    text[fread(text, 1, sizeof text - 1, file)] = 0; /* the first argument, which ends with a zero byte */
    fclose(file);
    snprintf(name, length, "%s", text);
    return NVML_SUCCESS;
}

/* NVIDIA's nvidia-smi asks for tables of internal calls before anything else; ours say of each call that it is not supported. */
static nvmlReturn_t internal(void)
{
    return NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlInternalGetExportTable(const void **table, const void *id); /* not in the header */
nvmlReturn_t nvmlInternalGetExportTable(const void **table, const void *id)
{
    static uintptr_t calls[256]; /* the first is the size in bytes */
    (void)id;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        calls[i] = i ? (uintptr_t)internal : sizeof calls;
    *table = calls;
    return NVML_SUCCESS;
}
