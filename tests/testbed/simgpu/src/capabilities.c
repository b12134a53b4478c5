/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The kernel's capabilities: a file in /proc says the number of the device node whose opener may use an instance.
 */
#include "driver.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MINORS "/proc/driver/nvidia-caps"
#define FILES "/proc/driver/nvidia/capabilities"
#define NODES "/dev/nvidia-caps"

enum { MAJOR = 235, OWNER = 0400, EVERYBODY = 0444 };

static bool grant(const char *file, unsigned capability, unsigned mode)
{
    char path[128];
    snprintf(path, sizeof path, FILES "/%s", file);
    *strrchr(path, '/') = 0;
    make_directories(path);
    path[strlen(path)] = '/';
    char node[48];
    capability_path(capability, node, sizeof node);
    return put_file(path, "DeviceFileMinor: %u\nDeviceFileMode: %u\nDeviceFileModify: 1\n", capability, mode) &&
           (!access(node, F_OK) || make_node(node, MAJOR, capability, mode));
}

static void withdraw(const char *directory, unsigned capability)
{
    char path[128];
    snprintf(path, sizeof path, FILES "/%s", directory);
    remove_tree(path);
    capability_path(capability, path, sizeof path);
    unlink(path);
}

static bool list_minors(void)
{
    make_directories(MINORS);
    FILE *file = fopen(MINORS "/mig-minors", "we");
    if (!file) {
        perror("simgpu: " MINORS "/mig-minors");
        return false;
    }
    fprintf(file, "config 1\nmonitor 2\n");
    for (unsigned minor = 0; minor < SIM_BOARDS; minor++) {
        for (unsigned gi = 0; gi < SIM_GI_IDS; gi++) {
            fprintf(file, "gpu%u/gi%u/access %u\n", minor, gi, capability_of(minor, gi, SIM_NONE));
            for (unsigned ci = 0; ci < SIM_CI_IDS; ci++)
                fprintf(file, "gpu%u/gi%u/ci%u/access %u\n", minor, gi, ci, capability_of(minor, gi, ci));
        }
    }
    return !fclose(file);
}

void capabilities_unload(void)
{
    remove_tree(MINORS);
    remove_tree(NODES);
}

bool capabilities_load(void)
{
    make_directories(NODES);
    return list_minors() && grant("mig/config", 1, OWNER) && grant("mig/monitor", 2, EVERYBODY);
}

void capabilities_follow(const struct board *board, unsigned minor)
{
    char path[64];
    for (unsigned gi = 0; gi < SIM_GI_IDS; gi++) {
        bool there = gpu_instance_by_id(board, gi);
        for (unsigned ci = 0; ci < SIM_CI_IDS; ci++) {
            snprintf(path, sizeof path, "gpu%u/mig/gi%u/ci%u", minor, gi, ci);
            if (!compute_instance_by_id(board, gi, ci))
                withdraw(path, capability_of(minor, gi, ci));
            else
                grant(strcat(path, "/access"), capability_of(minor, gi, ci), EVERYBODY);
        }
        snprintf(path, sizeof path, "gpu%u/mig/gi%u", minor, gi);
        if (!there)
            withdraw(path, capability_of(minor, gi, SIM_NONE));
        else
            grant(strcat(path, "/access"), capability_of(minor, gi, SIM_NONE), EVERYBODY);
    }
}
