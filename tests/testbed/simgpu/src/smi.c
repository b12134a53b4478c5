/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * nvidia-smi: lists and queries GPUs through the library of the node, with the original's words and exit codes where people look for them.
 */
#define _GNU_SOURCE
#include "state.h"

#include <nvml.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Each NVML call is looked up by name, so that a library that is missing or old is an answer and not a failure to start. */
static void *library;
#define CALL(function, ...) ((__typeof__(&function))need(#function))(__VA_ARGS__)

static void *need(const char *name)
{
    void *symbol = dlsym(library, name);
    if (!symbol) {
        fprintf(stderr, "nvidia-smi: the library has no %s\n", name);
        exit(13);
    }
    return symbol;
}

static void start(void)
{
    library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library) {
        printf("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the NVIDIA Display Driver is properly "
               "installed and present in your system.\nPlease also try adding directory that contains libnvidia-ml.so to your system PATH.\n");
        exit(12);
    }
    nvmlReturn_t status = CALL(nvmlInit_v2);
    char version[64] = "";
    switch (status) {
    case NVML_SUCCESS:
        return;
    case NVML_ERROR_DRIVER_NOT_LOADED:
        printf("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is "
               "installed and running.\n\n");
        exit(9);
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
        CALL(nvmlSystemGetNVMLVersion, version, sizeof version);
        char *own = strchr(version, '.'), *minor = own ? strchr(own + 1, '.') : NULL, *patch = minor ? strchr(minor + 1, '.') : NULL;
        if (patch)
            *patch = 0;
        printf("Failed to initialize NVML: Driver/library version mismatch\nNVML library version: %s\n", own ? own + 1 : version);
        exit(18);
    default:
        printf("Failed to initialize NVML: %s\n", CALL(nvmlErrorString, status));
        exit(status == NVML_ERROR_UNKNOWN ? 255 : (int)status);
    }
}

/* --- what can be asked of a GPU --- */

static nvmlReturn_t memory(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    memory->version = nvmlMemory_v2;
    return CALL(nvmlDeviceGetMemoryInfo_v2, device, memory);
}

static const char *enabled(unsigned state)
{
    return state ? "Enabled" : "Disabled";
}

static const char *compute_mode(unsigned mode)
{
    static const char *const names[] = {"Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process"};
    return mode < NVML_COMPUTEMODE_COUNT ? names[mode] : "Unknown";
}

/* Writes one field as text, its unit apart. Returns false for a field that is not known here. */
static bool field(nvmlDevice_t device, const char *name, char *text, size_t size, const char **unit)
{
    nvmlReturn_t status = NVML_SUCCESS;
    unsigned number = 0, other = 0;
    int major, minor;
    nvmlEnableState_t current, pending;
    nvmlComputeMode_t mode;
    nvmlPciInfo_t pci;
    nvmlMemory_v2_t used;
    nvmlUtilization_t rates;
    *unit = "";
    *text = 0;

#define IS(field_name) (!strcmp(name, field_name))
#define NUMBER(function, divisor, its_unit)            \
    ((status = CALL(function, device, &number)), *unit = (its_unit), snprintf(text, size, "%u", number / (divisor)))
    if (IS("index"))
        NUMBER(nvmlDeviceGetIndex, 1, "");
    else if (IS("name") || IS("gpu_name"))
        status = CALL(nvmlDeviceGetName, device, text, (unsigned)size);
    else if (IS("uuid") || IS("gpu_uuid"))
        status = CALL(nvmlDeviceGetUUID, device, text, (unsigned)size);
    else if (IS("serial") || IS("gpu_serial"))
        status = CALL(nvmlDeviceGetSerial, device, text, (unsigned)size);
    else if (IS("vbios_version"))
        status = CALL(nvmlDeviceGetVbiosVersion, device, text, (unsigned)size);
    else if (IS("driver_version"))
        status = CALL(nvmlSystemGetDriverVersion, text, (unsigned)size);
    else if (IS("count"))
        (status = CALL(nvmlDeviceGetCount_v2, &number)), snprintf(text, size, "%u", number);
    else if (IS("pci.bus_id") || IS("gpu_bus_id") || IS("pci.device_id") || IS("pci.sub_device_id")) {
        status = CALL(nvmlDeviceGetPciInfo_v3, device, &pci);
        if (strstr(name, "bus_id"))
            snprintf(text, size, "%s", pci.busId);
        else
            snprintf(text, size, "0x%08X", IS("pci.device_id") ? pci.pciDeviceId : pci.pciSubSystemId);
    } else if (!strncmp(name, "memory.", 7)) {
        status = memory(device, &used);
        unsigned long long bytes = IS("memory.total") ? used.total : IS("memory.used") ? used.used : IS("memory.free") ? used.free : used.reserved;
        snprintf(text, size, "%llu", bytes >> 20);
        *unit = " MiB";
    } else if (IS("utilization.gpu") || IS("utilization.memory")) {
        status = CALL(nvmlDeviceGetUtilizationRates, device, &rates);
        snprintf(text, size, "%u", IS("utilization.gpu") ? rates.gpu : rates.memory);
        *unit = " %";
    } else if (IS("temperature.gpu"))
        (status = CALL(nvmlDeviceGetTemperature, device, NVML_TEMPERATURE_GPU, &number)), snprintf(text, size, "%u", number);
    else if (IS("power.draw") || IS("power.limit")) {
        status = IS("power.draw") ? CALL(nvmlDeviceGetPowerUsage, device, &number) : CALL(nvmlDeviceGetPowerManagementLimit, device, &number);
        snprintf(text, size, "%.2f", number / 1000.0);
        *unit = " W";
    } else if (IS("compute_cap"))
        (status = CALL(nvmlDeviceGetCudaComputeCapability, device, &major, &minor)), snprintf(text, size, "%d.%d", major, minor);
    else if (IS("compute_mode"))
        (status = CALL(nvmlDeviceGetComputeMode, device, &mode)), snprintf(text, size, "%s", compute_mode(mode));
    else if (IS("persistence_mode"))
        (status = CALL(nvmlDeviceGetPersistenceMode, device, &current)), snprintf(text, size, "%s", enabled(current));
    else if (IS("ecc.mode.current") || IS("ecc.mode.pending"))
        (status = CALL(nvmlDeviceGetEccMode, device, &current, &pending)),
            snprintf(text, size, "%s", enabled(IS("ecc.mode.current") ? current : pending));
    else if (IS("mig.mode.current") || IS("mig.mode.pending"))
        (status = CALL(nvmlDeviceGetMigMode, device, &number, &other)), snprintf(text, size, "%s", enabled(IS("mig.mode.current") ? number : other));
    else
        return false;
    if (status == NVML_ERROR_NOT_SUPPORTED)
        snprintf(text, size, "[N/A]"), *unit = "";
    else if (status != NVML_SUCCESS)
        snprintf(text, size, "[%s]", CALL(nvmlErrorString, status)), *unit = "";
    return true;
}

/* --- what can be printed --- */

static unsigned count(void)
{
    unsigned gpus = 0;
    CALL(nvmlDeviceGetCount_v2, &gpus);
    if (!gpus) {
        printf("No devices were found\n");
        exit(6);
    }
    return gpus;
}

/* A GPU that fell off the bus has no handle; the original names its place and goes on. */
static bool take(unsigned index, nvmlDevice_t *device)
{
    nvmlReturn_t status = CALL(nvmlDeviceGetHandleByIndex_v2, index, device);
    if (status != NVML_SUCCESS)
        printf("Unable to determine the device handle for GPU%u: %s\n", index, CALL(nvmlErrorString, status));
    return status == NVML_SUCCESS;
}

static bool wanted(nvmlDevice_t device, const char *id)
{
    nvmlDevice_t named;
    if (!id)
        return true;
    nvmlReturn_t status = strchr(id, ':')    ? CALL(nvmlDeviceGetHandleByPciBusId_v2, id, &named)
                          : id[0] == 'G'     ? CALL(nvmlDeviceGetHandleByUUID, id, &named)
                                             : CALL(nvmlDeviceGetHandleByIndex_v2, (unsigned)strtoul(id, NULL, 10), &named);
    return status == NVML_SUCCESS && named == device;
}

static void list_mig_devices(nvmlDevice_t gpu)
{
    unsigned most = 0;
    CALL(nvmlDeviceGetMaxMigDeviceCount, gpu, &most);
    for (unsigned i = 0; i < most; i++) {
        char name[96], uuid[96];
        nvmlDevice_t device;
        if (CALL(nvmlDeviceGetMigDeviceHandleByIndex, gpu, i, &device) != NVML_SUCCESS)
            continue;
        CALL(nvmlDeviceGetName, device, name, sizeof name);
        CALL(nvmlDeviceGetUUID, device, uuid, sizeof uuid);
        printf("  %-15s Device %2u: (UUID: %s)\n", strstr(name, "MIG "), i, uuid);
    }
}

static int list(const char *id)
{
    int lost = 0;
    for (unsigned i = 0, gpus = count(); i < gpus; i++) {
        char name[96], uuid[96];
        nvmlDevice_t device;
        if (!take(i, &device)) {
            lost = NVML_ERROR_GPU_IS_LOST;
            continue;
        }
        CALL(nvmlDeviceGetName, device, name, sizeof name);
        CALL(nvmlDeviceGetUUID, device, uuid, sizeof uuid);
        if (wanted(device, id))
            printf("GPU %u: %s (UUID: %s)\n", i, name, uuid), list_mig_devices(device);
    }
    return lost;
}

static int query(const char *id, const char *fields, const char *format)
{
    bool header = !strcasestr(format, "noheader"), units = !strcasestr(format, "nounits");
    int lost = 0;
    for (unsigned i = 0, gpus = count(), printed = 0; i < gpus; i++) {
        nvmlDevice_t device;
        if (!take(i, &device)) {
            lost = NVML_ERROR_GPU_IS_LOST;
            continue;
        }
        if (!wanted(device, id))
            continue;
        for (int row = printed++ || !header; row < 2; row++) { /* 0: the header, once */
            char names[1024], *rest = names, *name, text[96];
            const char *unit, *comma = "";
            snprintf(names, sizeof names, "%s", fields);
            while ((name = strsep(&rest, ","))) {
                name += strspn(name, " ");
                if (!field(device, name, text, sizeof text, &unit)) {
                    printf("Field \"%s\" is not a valid field to query.\n\n", name);
                    return 2;
                }
                if (row)
                    printf("%s%s%s", comma, text, units ? unit : "");
                else if (*unit)
                    printf("%s%s [%s]", comma, name, unit + 1);
                else
                    printf("%s%s", comma, name);
                comma = ", ";
            }
            printf("\n");
        }
    }
    return lost;
}

static int table(void)
{
    char driver[64] = "";
    int cuda = 0, lost = 0;
    CALL(nvmlSystemGetDriverVersion, driver, sizeof driver);
    CALL(nvmlSystemGetCudaDriverVersion_v2, &cuda);
    printf("NVIDIA-SMI %s    Driver Version: %s    CUDA Version: %d.%d\n", SIM_VERSION, driver, cuda / 1000, cuda % 1000 / 10);
    for (unsigned i = 0, gpus = count(); i < gpus; i++) {
        static const char *const shown[] = {"name", "pci.bus_id", "memory.used", "memory.total", "utilization.gpu", "compute_mode",
                                            "mig.mode.current"};
        nvmlDevice_t device;
        if (!take(i, &device)) {
            lost = NVML_ERROR_GPU_IS_LOST;
            continue;
        }
        printf("| %u", i);
        for (size_t n = 0; n < sizeof shown / sizeof *shown; n++) {
            char text[96];
            const char *unit;
            field(device, shown[n], text, sizeof text, &unit);
            printf(" | %s%s", text, unit);
        }
        printf(" |\n");
        nvmlProcessInfo_t processes[128];
        unsigned found = 128;
        CALL(nvmlDeviceGetComputeRunningProcesses_v3, device, &found, processes);
        for (unsigned n = 0; n < found; n++) {
            char name[128] = "";
            CALL(nvmlSystemGetProcessName, processes[n].pid, name, sizeof name);
            printf("|   process %u %s %lluMiB\n", processes[n].pid, name, processes[n].usedGpuMemory >> 20);
        }
    }
    return lost;
}

/* Whether a list such as "0,GPU-...,0000:1a:00.0" names the board; no list names every one. */
static bool listed(const struct state *state, int minor, const char *ids)
{
    char copy[1024], *rest = copy, *id;
    if (!ids)
        return true;
    snprintf(copy, sizeof copy, "%s", ids);
    while ((id = strsep(&rest, ",")))
        if (board_find(state, id) == minor)
            return true;
    return false;
}

/* NVML has no call for this; nvidia-smi asks the driver. */
static int reset(const char *ids)
{
    static struct state state;
    nvmlReturn_t result = CALL(nvmlShutdown), failure = NVML_SUCCESS; /* or we would be in our own way */
    result = (nvmlReturn_t)sim_ask(OP_LOOK, 0, 0, 0, &state);
    int done = 0;
    for (int minor = 0; result != NVML_ERROR_DRIVER_NOT_LOADED && minor < (int)state.board_count; minor++) {
        if (!listed(&state, minor, ids))
            continue;
        done++;
        result = (nvmlReturn_t)sim_ask(OP_RESET, (unsigned)minor, 0, 0, &state);
        if (result == NVML_ERROR_IN_USE)
            printf("GPU 0000%s is currently in use by another process.\n", state.boards[minor].address);
        else if (result != NVML_SUCCESS)
            printf("Unable to reset GPU 0000%s: %s\n", state.boards[minor].address, CALL(nvmlErrorString, result));
        else
            printf("GPU 0000%s was successfully reset.\n", state.boards[minor].address);
        failure = result != NVML_SUCCESS ? result : failure;
    }
    if (!done)
        printf("No devices were found\n");
    else if (failure == NVML_SUCCESS)
        printf("All done.\n");
    return done ? (int)failure : 6;
}

int main(int argc, char **argv)
{
    const char *id = NULL, *fields = NULL, *format = NULL;
    bool as_list = false, as_reset = false;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-L") || !strcmp(argv[i], "--list-gpus"))
            as_list = true;
        else if (!strcmp(argv[i], "-r") || !strcmp(argv[i], "--gpu-reset"))
            as_reset = true;
        else if (!strcmp(argv[i], "-i") && i + 1 < argc)
            id = argv[++i];
        else if (!strncmp(argv[i], "--id=", 5))
            id = argv[i] + 5;
        else if (!strncmp(argv[i], "--query-gpu=", 12))
            fields = argv[i] + 12;
        else if (!strncmp(argv[i], "--format=csv", 12))
            format = argv[i] + 12;
        else {
            printf("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n\n");
            return 2;
        }
    }
    if (fields && !format) {
        printf("\"--query-*\" requires \"--format=csv\".\n\n");
        return 2;
    }
    start();
    return as_list ? list(id) : as_reset ? reset(id) : fields ? query(id, fields, format) : table();
}
