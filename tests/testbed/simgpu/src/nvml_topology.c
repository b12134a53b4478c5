/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * NVML: the place of a GPU in the machine - PCI, NUMA, its neighbours.
 */
#include "library.h"

static nvmlReturn_t pci_of(nvmlDevice_t device, nvmlPciInfo_t *info, uint32_t *class)
{
    struct board board;
    CHECK(board_of(device, &board));
    if (!info)
        return NVML_ERROR_INVALID_ARGUMENT;
    *info = (nvmlPciInfo_t){.pciDeviceId = board.device << 16 | 0x10de, .pciSubSystemId = board.subsystem_device << 16 | board.subsystem_vendor};
    address_parse(board.address, &info->domain, &info->bus, &info->device);
    snprintf(info->busIdLegacy, sizeof info->busIdLegacy, "%04X:%02X:%02X.0", info->domain & 0xffff, info->bus & 0xff, info->device & 0x1f);
    snprintf(info->busId, sizeof info->busId, NVML_DEVICE_PCI_BUS_ID_FMT, NVML_DEVICE_PCI_BUS_ID_FMT_ARGS(info));
    *class = board.class;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *info)
{
    return pci_of(device, info, &(uint32_t){0});
}

/* The older structures are the beginning of today's: up to the legacy bus id's numbers, then with the subsystem. */
static nvmlReturn_t old_pci_of(nvmlDevice_t device, nvmlPciInfo_t *info, size_t size)
{
    nvmlPciInfo_t now;
    CHECK(nvmlDeviceGetPciInfo_v3(device, info ? &now : NULL));
    memcpy(info, &now, size);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *info)
{
    return old_pci_of(device, info, offsetof(nvmlPciInfo_t, pciSubSystemId));
}

nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *info)
{
    return old_pci_of(device, info, offsetof(nvmlPciInfo_t, busId));
}

nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_t *info)
{
    nvmlPciInfo_t now;
    uint32_t class;
    if (!info)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (info->version != nvmlPciInfoExt_v1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    CHECK(pci_of(device, &now, &class));
    *info = (nvmlPciInfoExt_t){info->version, now.domain, now.bus, now.device, now.pciDeviceId, now.pciSubSystemId, class >> 8, class & 0xff, ""};
    memcpy(info->busId, now.busId, sizeof info->busId);
    return NVML_SUCCESS;
}

READS(nvmlDeviceGetMaxPcieLinkGeneration, unsigned int, board.pcie_generation)
READS(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned int, board.pcie_generation)
READS(nvmlDeviceGetCurrPcieLinkGeneration, unsigned int, board.pcie_generation)
READS(nvmlDeviceGetMaxPcieLinkWidth, unsigned int, board.pcie_width)
READS(nvmlDeviceGetCurrPcieLinkWidth, unsigned int, board.pcie_width)
READS(nvmlDeviceGetPcieReplayCounter, unsigned int, 0)
READS(nvmlDeviceGetNumaNodeId, unsigned int, board.numa_node)

/* One NUMA node that has every CPU: what a small guest looks like. */
static nvmlReturn_t affinity(nvmlDevice_t device, unsigned int size, unsigned long *set, unsigned long value)
{
    struct board board;
    CHECK(board_of(device, &board));
    if (!set || !size)
        return NVML_ERROR_INVALID_ARGUMENT;
    memset(set, 0, size * sizeof *set);
    *set = value;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int size, unsigned long *set)
{
    return affinity(device, size, set, 3);
}

nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device, unsigned int size, unsigned long *set, nvmlAffinityScope_t scope)
{
    (void)scope;
    return affinity(device, size, set, 3);
}

nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int size, unsigned long *set, nvmlAffinityScope_t scope)
{
    (void)scope;
    return affinity(device, size, set, 1);
}

static nvmlReturn_t both(nvmlDevice_t first, nvmlDevice_t second, const void *result)
{
    struct view view;
    CHECK(gpu_view(first, &view));
    if (minor_of(second) >= view.state.board_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (view.state.boards[minor_of(second)].lost)
        return NVML_ERROR_GPU_IS_LOST;
    return result ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t first, nvmlDevice_t second, nvmlGpuTopologyLevel_t *level)
{
    CHECK(both(first, second, level));
    *level = first == second ? NVML_TOPOLOGY_INTERNAL : NVML_TOPOLOGY_NODE;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t first, nvmlDevice_t second, nvmlGpuP2PCapsIndex_t capability, nvmlGpuP2PStatus_t *status)
{
    (void)capability;
    CHECK(both(first, second, status));
    *status = NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t first, nvmlDevice_t second, int *same)
{
    CHECK(both(first, second, same));
    *same = first == second;
    return NVML_SUCCESS;
}

/* No NVSwitch, so no fabric: state 0, "not supported". */
nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t *info)
{
    struct board board;
    CHECK(board_of(device, &board));
    if (!info)
        return NVML_ERROR_INVALID_ARGUMENT;
    *info = (nvmlGpuFabricInfo_t){.state = NVML_GPU_FABRIC_STATE_NOT_SUPPORTED};
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfoV_t *info)
{
    struct board board;
    CHECK(board_of(device, &board));
    if (!info)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (info->version != nvmlGpuFabricInfo_v2 && info->version != nvmlGpuFabricInfo_v3)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    unsigned version = info->version;
    memset(info, 0, version & 0xffffff);
    info->version = version;
    return NVML_SUCCESS;
}
