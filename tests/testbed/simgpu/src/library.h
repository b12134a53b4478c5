/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Shared by the files of the library: from a handle to what it means, and the answers that every call gives alike. Each call asks the
 * server once, so that faults can count calls.
 */
#ifndef SIMGPU_LIBRARY_H
#define SIMGPU_LIBRARY_H

#include "mig.h"

#include <nvml.h>
#include <string.h>

#define CHECK(expression)                    \
    do {                                     \
        nvmlReturn_t checked = (expression); \
        if (checked != NVML_SUCCESS)         \
            return checked;                  \
    } while (0)

/* The body of a call that reads one number of a board. */
#define READS(function, type, expression)                   \
    nvmlReturn_t function(nvmlDevice_t device, type *value) \
    {                                                       \
        struct board board;                                 \
        CHECK(board_of(device, &board));                    \
        if (!value)                                         \
            return NVML_ERROR_INVALID_ARGUMENT;             \
        *value = (type)(expression);                        \
        return NVML_SUCCESS;                                \
    }

/* The body of a call that reads one text of a board. */
#define READS_TEXT(function, text)                                              \
    nvmlReturn_t function(nvmlDevice_t device, char *value, unsigned int length) \
    {                                                                           \
        struct board board;                                                     \
        CHECK(board_of(device, &board));                                        \
        return put_text(value, length, text);                                   \
    }

/* What a handle means at this moment. */
struct view {
    struct state state;
    unsigned minor;
    struct board *board;
    const struct gpu_instance *gi;     /* NULL: the GPU itself */
    const struct compute_instance *ci; /* NULL: the GPU or the GPU instance itself */
};

nvmlReturn_t ready(void);                                            /* fails before nvmlInit */
nvmlReturn_t look(struct state *state);                              /* for calls that concern no single board */
nvmlReturn_t device_view(nvmlDevice_t device, struct view *view);    /* of a GPU or a MIG device; fails when the board is lost */
nvmlReturn_t gpu_view(nvmlDevice_t device, struct view *view);       /* MIG devices are not supported */
nvmlReturn_t board_of(nvmlDevice_t device, struct board *board);     /* the same, when the board is enough */
nvmlReturn_t gpu_instance_view(nvmlGpuInstance_t instance, struct view *view);
nvmlReturn_t compute_instance_view(nvmlComputeInstance_t instance, struct view *view);
nvmlReturn_t handle_of(const struct state *state, unsigned minor, nvmlDevice_t *device);
nvmlDevice_t handle(unsigned minor);
nvmlDevice_t mig_handle(unsigned minor, uint32_t gi, uint32_t ci);
nvmlGpuInstance_t gpu_instance_handle(unsigned minor, uint32_t gi);
nvmlComputeInstance_t compute_instance_handle(unsigned minor, uint32_t gi, uint32_t ci);
unsigned minor_of(const void *handle);
uint32_t gi_of(const void *handle); /* SIM_NONE: outside of MIG */
uint32_t ci_of(const void *handle);
nvmlReturn_t put_text(char *to, unsigned length, const char *text);

#endif
