/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * MIG: what fits where on a board. A GPU instance takes memory slices and media engines, a compute instance takes compute slices of its
 * GPU instance.
 */
#include "mig.h"

#include <fcntl.h>
#include <string.h>

/* --- GPU instances --- */

const struct mig_profile *mig_profile_by_id(const struct board *board, uint32_t id)
{
    for (unsigned i = 0; i < board->mig_profile_count; i++)
        if (board->mig_profiles[i].id == id)
            return &board->mig_profiles[i];
    return NULL;
}

const struct gpu_instance *gpu_instance_by_id(const struct board *board, uint32_t id)
{
    for (unsigned i = 0; i < board->gpu_instance_count; i++)
        if (board->gpu_instances[i].id == id)
            return &board->gpu_instances[i];
    return NULL;
}

const struct mig_profile *gpu_instance_profile(const struct board *board, const struct gpu_instance *instance)
{
    return &board->mig_profiles[instance->profile];
}

/* Memory slices that the largest profile takes: all there are. */
static uint32_t board_slices(const struct board *board)
{
    uint32_t slices = 0;
    for (unsigned i = 0; i < board->mig_profile_count; i++)
        if (board->mig_profiles[i].size > slices)
            slices = board->mig_profiles[i].size;
    return slices;
}

/* Ids count through the halves of the halves: with 8 slices, 0 is the whole, 1 and 2 the halves, 3 to 6 the quarters, 7 to 14 the eighths.
 * Which half comes first differs from board to board: here the first digit of its UUID says so for each level. */
static uint32_t id_of(const struct board *board, const struct mig_profile *profile, uint32_t start)
{
    uint32_t slices = board_slices(board), parts = slices / profile->size;
    char digit = board->uuid[strlen("GPU-")];
    uint32_t swap = (uint32_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10) % slices;
    return parts - 1 + (start / profile->size ^ swap / profile->size);
}

bool gpu_instance_fits(const struct board *board, const struct mig_profile *profile, uint32_t start)
{
    uint32_t same = 0, decoders = profile->decoders, encoders = profile->encoders, jpegs = profile->jpegs, ofas = profile->ofas;
    for (unsigned i = 0; i < board->gpu_instance_count; i++) {
        const struct gpu_instance *other = &board->gpu_instances[i];
        const struct mig_profile *its = gpu_instance_profile(board, other);
        if (start < other->start + its->size && other->start < start + profile->size)
            return false;
        same += its->id == profile->id;
        decoders += its->decoders, encoders += its->encoders, jpegs += its->jpegs, ofas += its->ofas;
    }
    /* There are as many media engines as the profile with the most of them has. */
    uint32_t most[4] = {0};
    for (unsigned i = 0; i < board->mig_profile_count; i++) {
        const struct mig_profile *any = &board->mig_profiles[i];
        const uint32_t its[] = {any->decoders, any->encoders, any->jpegs, any->ofas};
        for (unsigned kind = 0; kind < 4; kind++)
            most[kind] = its[kind] > most[kind] ? its[kind] : most[kind];
    }
    return same < profile->limit && decoders <= most[0] && encoders <= most[1] && jpegs <= most[2] && ofas <= most[3];
}

/* From the end of the board: so 19,19,14,9 leaves no place for the last of them and 9,19,14,19 does, as NVIDIA documents. */
uint32_t gpu_instance_choose(const struct board *board, const struct mig_profile *profile)
{
    for (uint32_t start = 32; start-- > 0;)
        if (profile->starts >> start & 1 && gpu_instance_fits(board, profile, start))
            return start;
    return SIM_NONE;
}

uint32_t gpu_instance_add(struct board *board, const struct mig_profile *profile, uint32_t start)
{
    struct gpu_instance new = {id_of(board, profile, start), (uint32_t)(profile - board->mig_profiles), start};
    board->gpu_instances[board->gpu_instance_count++] = new;
    return new.id;
}

/* --- compute instances --- */

const struct compute_instance *compute_instance_by_id(const struct board *board, uint32_t gi, uint32_t id)
{
    for (unsigned i = 0; i < board->compute_instance_count; i++)
        if (board->compute_instances[i].gi == gi && board->compute_instances[i].id == id)
            return &board->compute_instances[i];
    return NULL;
}

uint32_t compute_slices(uint32_t slices, uint32_t number)
{
    static const uint32_t sizes[] = {1, 2, 3, 4, 7};
    uint32_t size = number < sizeof sizes / sizeof *sizes ? sizes[number] : 0;
    return size > slices || (size == 3 && slices == 4) ? 0 : size;
}

/* Aligned to powers of two, like the GPU instances. */
uint32_t compute_starts(uint32_t slices, uint32_t wanted)
{
    uint32_t starts = 0, step = wanted > 2 ? 4 : wanted;
    for (uint32_t start = 0; start + wanted <= slices; start += step)
        starts |= 1u << start;
    return starts;
}

bool compute_instance_fits(const struct board *board, uint32_t gi, uint32_t slices, uint32_t start)
{
    for (unsigned i = 0; i < board->compute_instance_count; i++) {
        const struct compute_instance *other = &board->compute_instances[i];
        if (other->gi == gi && start < other->start + other->slices && other->start < start + slices)
            return false;
    }
    return true;
}

uint32_t compute_instance_choose(const struct board *board, uint32_t gi, uint32_t slices)
{
    const struct mig_profile *profile = gpu_instance_profile(board, gpu_instance_by_id(board, gi));
    uint32_t starts = compute_starts(profile->slices, slices);
    for (uint32_t start = 0; starts >> start; start++)
        if (starts >> start & 1 && compute_instance_fits(board, gi, slices, start))
            return start;
    return SIM_NONE;
}

static bool slot_is_taken(const struct board *board, uint32_t slot)
{
    for (unsigned i = 0; i < board->compute_instance_count; i++)
        if (board->compute_instances[i].slot == slot)
            return true;
    return false;
}

uint32_t compute_instance_add(struct board *board, uint32_t gi, uint32_t slices, uint32_t start)
{
    struct compute_instance new = {.gi = gi, .slices = slices, .start = start};
    while (compute_instance_by_id(board, gi, new.id))
        new.id++;
    while (slot_is_taken(board, new.slot))
        new.slot++;
    board->compute_instances[board->compute_instance_count++] = new;
    return new.id;
}

/* --- names --- */

void mig_name(const struct mig_profile *profile, uint32_t slices, char *name, size_t size)
{
    if (slices == profile->slices)
        snprintf(name, size, "MIG %s", profile->name);
    else
        snprintf(name, size, "MIG %uc.%s", slices, profile->name);
}

static uint64_t fnv(const char *text, uint64_t hash)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
    return hash;
}

/* From the board and the instances' ids alone: what is made again at the same place has the same UUID. */
void mig_uuid(const struct board *board, uint32_t gi, uint32_t ci, char *uuid, size_t size)
{
    char source[80];
    snprintf(source, sizeof source, "%s/%u/%u", board->uuid, gi, ci);
    uint64_t high = fnv(source, 0xcbf29ce484222325), low = fnv(source, 0x84222325cbf29ce4);
    snprintf(uuid, size, "MIG-%08x-%04x-5%03x-%04x-%012llx", (unsigned)(high >> 32), (unsigned)(high >> 16 & 0xffff), (unsigned)(high & 0xfff),
             (unsigned)(low >> 48 & 0x3fff) | 0x8000, (unsigned long long)(low & 0xffffffffffff));
}

/* --- the device nodes by which instances are opened --- */

/* The numbers are fixed: 1 and 2 for MIG itself, then 9 for each of the 15 GPU instances that a board could have: its own, and those of
 * the compute instances in it. */
unsigned capability_of(unsigned minor, uint32_t gi, uint32_t ci)
{
    return 3 + (minor * SIM_GI_IDS + gi) * (1 + SIM_CI_IDS) + (ci == SIM_NONE ? 0 : 1 + ci);
}

void capability_path(unsigned capability, char *path, size_t size)
{
    snprintf(path, size, "/dev/nvidia-caps/nvidia-cap%u", capability);
}

bool mig_device_visible(unsigned minor, uint32_t gi, uint32_t ci)
{
    char gpu_instance[48], compute_instance[48];
    capability_path(capability_of(minor, gi, SIM_NONE), gpu_instance, sizeof gpu_instance);
    capability_path(capability_of(minor, gi, ci), compute_instance, sizeof compute_instance);
    return node_opens(gpu_instance, O_RDONLY) && node_opens(compute_instance, O_RDONLY);
}

const struct compute_instance *mig_device_find(const struct state *state, const char *uuid, unsigned *minor)
{
    for (*minor = 0; *minor < state->board_count; ++*minor) {
        const struct board *board = &state->boards[*minor];
        for (unsigned i = 0; i < board->compute_instance_count; i++) {
            const struct compute_instance *instance = &board->compute_instances[i];
            char its[64];
            mig_uuid(board, instance->gi, instance->id, its, sizeof its);
            if (!strcmp(its, uuid) && board_visible(*minor) && mig_device_visible(*minor, instance->gi, instance->id))
                return instance;
        }
    }
    return NULL;
}
