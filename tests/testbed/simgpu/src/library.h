/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Shared by the files of the library: from a handle to a board, and the answers that every call gives alike.
 */
#ifndef SIMGPU_LIBRARY_H
#define SIMGPU_LIBRARY_H

#include "state.h"

#include <nvml.h>
#include <string.h>

#define CHECK(expression)                \
    do {                                 \
        nvmlReturn_t result = (expression); \
        if (result != NVML_SUCCESS)      \
            return result;               \
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

nvmlReturn_t look(struct state *state);                           /* fails before nvmlInit */
nvmlReturn_t board_of(nvmlDevice_t device, struct board *board);  /* fails when the board is lost */
nvmlReturn_t handle_of(const struct state *state, unsigned minor, nvmlDevice_t *device);
nvmlDevice_t handle(unsigned minor);
unsigned minor_of(nvmlDevice_t device);
nvmlReturn_t put_text(char *to, unsigned length, const char *text);

#endif
