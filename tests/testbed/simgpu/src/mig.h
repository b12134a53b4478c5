/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * MIG: what a board's state means, for the library and the server alike.
 */
#ifndef SIMGPU_MIG_H
#define SIMGPU_MIG_H

#include "state.h"

/* mig.c: what a board offers and has */
const struct mig_profile *mig_profile_by_id(const struct board *board, uint32_t id);
const struct gpu_instance *gpu_instance_by_id(const struct board *board, uint32_t id);
const struct mig_profile *gpu_instance_profile(const struct board *board, const struct gpu_instance *instance);
const struct compute_instance *compute_instance_by_id(const struct board *board, uint32_t gi, uint32_t id);
bool gpu_instance_fits(const struct board *board, const struct mig_profile *profile, uint32_t start);
uint32_t gpu_instance_choose(const struct board *board, const struct mig_profile *profile); /* the driver's choice; SIM_NONE: no place */
uint32_t gpu_instance_add(struct board *board, const struct mig_profile *profile, uint32_t start); /* the new id */
uint32_t compute_slices(uint32_t slices, uint32_t number);  /* of NVML_COMPUTE_INSTANCE_PROFILE_* there; 0: does not exist */
uint32_t compute_starts(uint32_t slices, uint32_t wanted);  /* a bit for every slice where it may begin */
bool compute_instance_fits(const struct board *board, uint32_t gi, uint32_t slices, uint32_t start);
uint32_t compute_instance_choose(const struct board *board, uint32_t gi, uint32_t slices);
uint32_t compute_instance_add(struct board *board, uint32_t gi, uint32_t slices, uint32_t start); /* the new id */
void mig_name(const struct mig_profile *profile, uint32_t slices, char *name, size_t size);       /* MIG 1c.3g.40gb */
void mig_uuid(const struct board *board, uint32_t gi, uint32_t ci, char *uuid, size_t size);
const struct compute_instance *mig_device_find(const struct state *state, const char *uuid, unsigned *minor); /* visible here */
unsigned capability_of(unsigned minor, uint32_t gi, uint32_t ci); /* the number of its device node; ci SIM_NONE: the GPU instance's own */
void capability_path(unsigned capability, char *path, size_t size);
bool mig_device_visible(unsigned minor, uint32_t gi, uint32_t ci);

/* faults.c */
const char *fault_name(enum fault_kind kind);
bool fault_active(const struct state *state, unsigned board, enum fault_kind kind);

#endif
