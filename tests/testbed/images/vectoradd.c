/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Stands in for NVIDIA's CUDA sample: a workload that says which GPUs it sees and fails when it sees none. Everything is looked up in the
 * driver's own library, which only the container runtime can have put here.
 *
 * vectorAdd [--hold SECONDS]   prints "GPU <uuid> <name>" for every GPU; with --hold it computes on all of them for that long
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
#define LOOK_UP(name) \
    __typeof__(name) *name = dlsym(library, #name); \
    if (!name) \
        fail("the driver's library lacks a function", #name)

static void use_gpus(bool hold)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library)
        fail("no NVIDIA driver in this container", dlerror());
    if (!node("/dev/nvidia[0-9]*"))
        fail("no GPU in this container", "no /dev/nvidia* node");
    LOOK_UP(nvmlInit_v2);
    LOOK_UP(nvmlDeviceGetCount_v2);
    LOOK_UP(nvmlDeviceGetHandleByIndex_v2);
    LOOK_UP(nvmlDeviceGetMinorNumber);
    LOOK_UP(nvmlDeviceGetUUID);
    LOOK_UP(nvmlDeviceGetName);

    unsigned count = 0;
    check("nvmlInit_v2", nvmlInit_v2());
    check("nvmlDeviceGetCount_v2", nvmlDeviceGetCount_v2(&count));
    if (!count)
        fail("no GPU in this container", "NVML counts none");
    for (unsigned i = 0; i < count; i++) {
        static struct state state;
        nvmlDevice_t device;
        unsigned minor;
        char uuid[96], name[96];
        check("nvmlDeviceGetHandleByIndex_v2", nvmlDeviceGetHandleByIndex_v2(i, &device));
        check("nvmlDeviceGetMinorNumber", nvmlDeviceGetMinorNumber(device, &minor));
        check("nvmlDeviceGetUUID", nvmlDeviceGetUUID(device, uuid, sizeof uuid));
        check("nvmlDeviceGetName", nvmlDeviceGetName(device, name, sizeof name));
        if (hold)
            check("computing", sim_ask(OP_HOLD, minor, USE_COMPUTE, 512, &state));
        printf("GPU %s %s\n", uuid, name);
    }
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
