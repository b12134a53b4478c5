/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Stands in for NVIDIA's CUDA sample: a workload that says which GPUs it sees and fails when it sees none. Everything is looked up in the
 * driver's own library, which only the container runtime can have put here.
 *
 * vectorAdd [--hold SECONDS]   prints "GPU <uuid> <name>" for every GPU, or MIG device of one in MIG mode; with --hold it computes on all of
 *                              them for that long
 * vectorAdd --expect-none      succeeds only where neither a driver nor a GPU is visible
 */
#include "../simgpu/src/state.h"

#include <nvml.h>
#include <dlfcn.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail(const char *what, const char *detail)
{
    fprintf(stderr, "%s: %s\nTest FAILED\n", what, detail);
    exit(1);
}

static void check(const char *call, int status)
{
    char text[32];
    snprintf(text, sizeof text, "error %d", status);
    if (status)
        fail(call, text);
}

/* The first device node of this kind, NULL when there is none. */
static const char *node(const char *pattern)
{
    glob_t found;
    return glob(pattern, 0, NULL, &found) ? NULL : found.gl_pathv[0];
}

static void expect_none(void)
{
    if (dlopen("libnvidia-ml.so.1", RTLD_NOW))
        fail("expected no GPU", "libnvidia-ml.so.1 is here");
    if (node("/dev/nvidia*"))
        fail("expected no GPU", node("/dev/nvidia*"));
}

/* Functions of the library that the container runtime mounted, none of one that is linked in. */
static void *library;
#define LOOK_UP(name) \
    __typeof__(name) *name = dlsym(library, #name); \
    if (!name) \
        fail("the driver's library lacks a function", #name)

/* Uses a GPU (gi and ci are SIM_NONE) or a MIG device of it. */
static void use(nvmlDevice_t device, unsigned minor, unsigned gi, unsigned ci, bool hold)
{
    static struct state state;
    LOOK_UP(nvmlDeviceGetUUID);
    LOOK_UP(nvmlDeviceGetName);
    char uuid[96], name[96];
    check("nvmlDeviceGetUUID", nvmlDeviceGetUUID(device, uuid, sizeof uuid));
    check("nvmlDeviceGetName", nvmlDeviceGetName(device, name, sizeof name));
    struct request request = {.operation = OP_HOLD, .board = minor, .gi = gi, .ci = ci, .a = USE_COMPUTE, .b = 512};
    if (hold)
        check("computing", sim_request(&request, &state, NULL));
    printf("GPU %s %s\n", uuid, name);
}

/* A GPU in MIG mode has no use but through its MIG devices, of which a container sees those whose capabilities it was given. */
static unsigned use_mig_devices(nvmlDevice_t gpu, unsigned minor, bool hold)
{
    LOOK_UP(nvmlDeviceGetMaxMigDeviceCount);
    LOOK_UP(nvmlDeviceGetMigDeviceHandleByIndex);
    LOOK_UP(nvmlDeviceGetGpuInstanceId);
    LOOK_UP(nvmlDeviceGetComputeInstanceId);
    unsigned used = 0, most = 0;
    check("nvmlDeviceGetMaxMigDeviceCount", nvmlDeviceGetMaxMigDeviceCount(gpu, &most));
    for (unsigned i = 0; i < most; i++) {
        nvmlDevice_t device;
        unsigned gi, ci;
        nvmlReturn_t status = nvmlDeviceGetMigDeviceHandleByIndex(gpu, i, &device);
        if (status == NVML_ERROR_NOT_FOUND)
            continue;
        check("nvmlDeviceGetMigDeviceHandleByIndex", status);
        check("nvmlDeviceGetGpuInstanceId", nvmlDeviceGetGpuInstanceId(device, &gi));
        check("nvmlDeviceGetComputeInstanceId", nvmlDeviceGetComputeInstanceId(device, &ci));
        use(device, minor, gi, ci, hold);
        used++;
    }
    return used;
}

static void use_gpus(bool hold)
{
    library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library)
        fail("no NVIDIA driver in this container", dlerror());
    if (!node("/dev/nvidia[0-9]*"))
        fail("no GPU in this container", "no /dev/nvidia* node");
    LOOK_UP(nvmlInit_v2);
    LOOK_UP(nvmlDeviceGetCount_v2);
    LOOK_UP(nvmlDeviceGetHandleByIndex_v2);
    LOOK_UP(nvmlDeviceGetMinorNumber);
    LOOK_UP(nvmlDeviceGetMigMode);

    unsigned count = 0, used = 0;
    check("nvmlInit_v2", nvmlInit_v2());
    check("nvmlDeviceGetCount_v2", nvmlDeviceGetCount_v2(&count));
    for (unsigned i = 0; i < count; i++) {
        nvmlDevice_t device;
        unsigned minor, mode, pending;
        check("nvmlDeviceGetHandleByIndex_v2", nvmlDeviceGetHandleByIndex_v2(i, &device));
        check("nvmlDeviceGetMinorNumber", nvmlDeviceGetMinorNumber(device, &minor));
        if (!nvmlDeviceGetMigMode(device, &mode, &pending) && mode == NVML_DEVICE_MIG_ENABLE) {
            used += use_mig_devices(device, minor, hold);
        } else {
            use(device, minor, SIM_NONE, SIM_NONE, hold);
            used++;
        }
    }
    if (!used)
        fail("no GPU in this container", count ? "MIG is on, and NVML shows no MIG device" : "NVML counts none");
}

static void end(int signal)
{
    (void)signal;
    _exit(0);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGTERM, end); /* the first process of a container has no default action */
    if (argc == 2 && !strcmp(argv[1], "--expect-none")) {
        expect_none();
    } else if (argc == 3 && !strcmp(argv[1], "--hold")) {
        use_gpus(true);
        printf("Holding for %s seconds\n", argv[2]);
        sleep((unsigned)atoi(argv[2]));
    } else if (argc == 1) {
        use_gpus(false);
    } else {
        fail("unknown arguments", "use none, --hold SECONDS or --expect-none");
    }
    puts("Test PASSED");
    return 0;
}
