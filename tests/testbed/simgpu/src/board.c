/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Boards: their files (key = value), their names, and what their InfoROM keeps.
 */
#include "state.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct field {
    const char *key;
    size_t at, size; /* size 0: a number */
};

#define MIG_PROFILE ((size_t)-1) /* a line for each */

#define MEMBER(name) ((struct board *)0)->name
#define TEXT(name) {#name, offsetof(struct board, name), sizeof(MEMBER(name))}
#define NUMBER(name) {#name, offsetof(struct board, name), 0}

/* What a board's file must say. */
static const struct field profile[] = {
    TEXT(address), TEXT(uuid), TEXT(serial), TEXT(name), TEXT(architecture), TEXT(compute_capability), TEXT(vbios), TEXT(part_number),
    NUMBER(device), NUMBER(subsystem_vendor), NUMBER(subsystem_device), NUMBER(class),
    NUMBER(memory_mib), NUMBER(reserved_mib), NUMBER(bar1_mib), NUMBER(memory_bus_bits), NUMBER(multiprocessors), NUMBER(cores),
    NUMBER(power_limit_w), NUMBER(power_min_w), NUMBER(power_idle_w), NUMBER(clock_sm_mhz), NUMBER(clock_memory_mhz),
    NUMBER(pcie_generation), NUMBER(pcie_width), NUMBER(ecc), NUMBER(mig), NUMBER(mig_slices),
    NUMBER(copy_engines), NUMBER(decoders), NUMBER(encoders), NUMBER(jpegs), NUMBER(ofas), NUMBER(numa_node),
    {"mig_profile", 0, MIG_PROFILE},
};

static const struct field running[] = {
    NUMBER(compute_mode), NUMBER(persistence), NUMBER(ecc_current), NUMBER(ecc_pending), NUMBER(mig_current), NUMBER(mig_pending),
    NUMBER(lost), NUMBER(last_xid),
};

static const struct field inforom[] = {NUMBER(ecc_pending), NUMBER(mig_pending)};

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static char *trim(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1]))
        *--end = 0;
    return text;
}

static bool assign_mig_profile(struct board *board, const char *value)
{
    if (board->mig_profile_count == SIM_PROFILES)
        return false;
    struct mig_profile *new = &board->mig_profiles[board->mig_profile_count++];
    int end = 0, more;
    if (sscanf(value, "%19s %u %u %u %u %u %u %u %u %u %u %u %u %n", new->name, &new->number, &new->id, &new->slices, &new->limit, &new->memory_mb,
               &new->multiprocessors, &new->copy_engines, &new->decoders, &new->encoders, &new->jpegs, &new->ofas, &new->size, &end) != 13)
        return false;
    for (unsigned start; sscanf(value += end, "%u%n", &start, &more) == 1 && start < 32; end = more + (value[more] == ','))
        new->starts |= 1u << start;
    return !*value && new->starts;
}

static bool assign(struct board *board, const struct field *field, const char *value)
{
    void *place = (char *)board + field->at;
    if (field->size == MIG_PROFILE)
        return assign_mig_profile(board, value);
    if (field->size)
        return (size_t)snprintf(place, field->size, "%s", value) < field->size;
    char *end;
    errno = 0;
    *(uint32_t *)place = (uint32_t)strtoul(value, &end, 0);
    return *value && !*end && !errno;
}

/* Reads the fields a file has; sets a bit in seen for each. */
static int fields_read(const char *path, struct board *board, const struct field *fields, size_t count, uint64_t *seen)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return -1;
    char line[256];
    int number = 0, result = 0;
    while (fgets(line, sizeof line, file)) {
        number++;
        char *key = trim(line), *equals = strchr(key, '=');
        if (!*key || *key == '#')
            continue;
        size_t i = count;
        if (equals) {
            *equals = 0;
            for (i = 0, key = trim(key); i < count && strcmp(fields[i].key, key); i++)
                ;
        }
        if (i == count || !assign(board, &fields[i], trim(equals + 1))) {
            fprintf(stderr, "%s:%d: not a known key with a value that fits: %s\n", path, number, key);
            result = -1;
            break;
        }
        *seen |= 1ULL << i;
    }
    fclose(file);
    return result;
}

int board_read(const char *path, struct board *board)
{
    uint64_t seen = 0;
    *board = (struct board){0};
    if (fields_read(path, board, profile, COUNT(profile), &seen)) {
        fprintf(stderr, "%s: cannot be read as a board\n", path);
        return -1;
    }
    for (size_t i = 0; i < COUNT(profile); i++) {
        if (!(seen >> i & 1) && (profile[i].size != MIG_PROFILE || board->mig)) {
            fprintf(stderr, "%s: %s is missing\n", path, profile[i].key);
            return -1;
        }
    }
    return 0;
}

static void inforom_path(const struct board *board, char *path, size_t size)
{
    snprintf(path, size, "%s/%s", SIM_INFOROM, board->uuid);
}

/* Only Ampere boards keep it without power. */
bool mig_mode_is_kept(const struct board *board)
{
    return !strcmp(board->architecture, "ampere");
}

void board_recall(struct board *board)
{
    char path[128];
    uint64_t seen = 0;
    inforom_path(board, path, sizeof path);
    board->ecc_pending = board->ecc;
    fields_read(path, board, inforom, COUNT(inforom), &seen);
    board->ecc_current = board->ecc_pending;
    board->mig_current = board->mig_pending;
}

int board_remember(const struct board *board)
{
    char path[128], part[136];
    inforom_path(board, path, sizeof path);
    snprintf(part, sizeof part, "%s.part", path);
    FILE *file = fopen(part, "we");
    if (!file)
        return -1;
    for (size_t i = 0; i < COUNT(inforom); i++)
        if (strncmp(inforom[i].key, "mig", 3) || mig_mode_is_kept(board))
            fprintf(file, "%s = %u\n", inforom[i].key, *(const uint32_t *)((const char *)board + inforom[i].at));
    return fclose(file) || rename(part, path) ? -1 : 0;
}

static void print_fields(FILE *out, const struct board *board, const struct field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *place = (const char *)board + fields[i].at;
        if (fields[i].size == MIG_PROFILE)
            continue;
        if (fields[i].size)
            fprintf(out, ", \"%s\": \"%s\"", fields[i].key, place);
        else
            fprintf(out, ", \"%s\": %u", fields[i].key, *(const uint32_t *)place);
    }
}

void board_print(FILE *out, const struct board *board)
{
    print_fields(out, board, profile, COUNT(profile));
    print_fields(out, board, running, COUNT(running));
}

/* Any of 0000:1a:00.0, 00000000:1A:00.0, 1a:00.0 and the same without the function. */
bool address_parse(const char *text, unsigned *domain, unsigned *bus, unsigned *device)
{
    unsigned function = 0;
    int end = 0;
    *domain = 0;
    if (sscanf(text, "%x:%x:%x%n", domain, bus, device, &end) != 3) {
        *domain = 0;
        end = 0;
        if (sscanf(text, "%x:%x%n", bus, device, &end) != 2)
            return false;
    }
    if (text[end] == '.' && sscanf(text + end, ".%u%n", &function, &(int){0}) == 1)
        end += 2;
    return !text[end] && function == 0 && *bus <= 0xff && *device <= 0x1f;
}

/* There is no driver behind the number: "no such device" means that nobody forbade it. */
bool node_opens(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
    return fd >= 0 || errno == ENXIO || errno == ENODEV;
}

bool board_visible(unsigned minor)
{
    char path[32];
    snprintf(path, sizeof path, "/dev/nvidia%u", minor);
    return node_opens(path, O_RDWR);
}

int board_find(const struct state *state, const char *name)
{
    unsigned domain, bus, device, d, b, v;
    char *end;
    unsigned long index = strtoul(name, &end, 10);
    bool by_index = *name && !*end, by_address = !by_index && address_parse(name, &domain, &bus, &device);
    for (unsigned minor = 0, visible = 0; minor < state->board_count; minor++) {
        const struct board *board = &state->boards[minor];
        if (!board_visible(minor))
            continue;
        if (by_index ? visible == index
            : by_address ? address_parse(board->address, &d, &b, &v) && d == domain && b == bus && v == device
                         : !strcmp(board->uuid, name))
            return (int)minor;
        visible++;
    }
    return -1;
}
