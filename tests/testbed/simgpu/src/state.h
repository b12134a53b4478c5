/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What a simulated driver knows, and how it is asked. The process that "simgpu load" leaves behind is the kernel's part: it alone
 * owns the state and changes it, one request at a time. Everybody else, on the node or in a container, connects, asks, and gets the whole state back.
 */
#ifndef SIMGPU_STATE_H
#define SIMGPU_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define SIM_MAGIC 0x53475055u /* "SGPU" */
#define SIM_LAYOUT 2u         /* raise it with every change of the structures below */

#define SIM_SOCKET "/run/simgpu/socket"                       /* on a node */
#define SIM_SHARED_SOCKET "/run/nvidia-persistenced/socket"   /* the same inode; the container toolkit mounts it into containers */
#define SIM_HARDWARE "/var/lib/simgpu/hardware/boards"        /* the boards that are plugged in */
#define SIM_INFOROM "/var/lib/simgpu/inforom"                 /* what a board remembers without power */
#define SIM_LOG "/var/log/simgpu.log"                         /* every state-changing call */

enum { SIM_BOARDS = 16, SIM_PROCESSES = 128, SIM_PROFILES = 12, SIM_INSTANCES = 8, SIM_FAULTS = 16 };
enum { SIM_GI_IDS = 15, SIM_CI_IDS = 8 }; /* ids of GPU instances of a board, of compute instances in one */

#define SIM_NONE 0xffffffffu /* outside of MIG; no instance; any start: NVML's own number for "no instance" */

/* A kind of GPU instance that a board offers, as its file says. */
struct mig_profile {
    char name[20];               /* 1g.10gb+me */
    uint32_t number, id;         /* NVML_GPU_INSTANCE_PROFILE_*, and what the board calls it */
    uint32_t slices, limit;      /* compute slices; how many of it a board can have */
    uint32_t memory_mb, multiprocessors;
    uint32_t copy_engines, decoders, encoders, jpegs, ofas;
    uint32_t size, starts;       /* memory slices that it takes; a bit for every slice where it may begin */
};

struct gpu_instance {
    uint32_t id;
    uint32_t profile, start; /* its place in the board's profiles; its first memory slice */
};

struct compute_instance {
    uint32_t gi, id;        /* of its GPU instance, and its own in there */
    uint32_t slices, start; /* within the GPU instance */
    uint32_t slot;          /* its index as a MIG device */
};

/* A board: what its file says, then what changes while it runs. Numbers that NVML defines (modes) are NVML's own. */
struct board {
    char address[16]; /* 0000:1a:00.0 */
    char uuid[48];
    char serial[20];
    char name[64];
    char architecture[16];
    char compute_capability[8];
    char vbios[20];
    char part_number[24];
    uint32_t device, subsystem_vendor, subsystem_device, class;
    uint32_t memory_mib, reserved_mib, bar1_mib, memory_bus_bits;
    uint32_t multiprocessors, cores;
    uint32_t power_limit_w, power_min_w, power_idle_w;
    uint32_t clock_sm_mhz, clock_memory_mhz;
    uint32_t pcie_generation, pcie_width;
    uint32_t ecc, mig, mig_slices;
    uint32_t copy_engines, decoders, encoders, jpegs, ofas;
    uint32_t numa_node;

    uint32_t compute_mode, persistence;
    uint32_t ecc_current, ecc_pending;
    uint32_t mig_current, mig_pending;
    uint32_t lost, last_xid;

    uint32_t mig_profile_count, gpu_instance_count, compute_instance_count;
    struct mig_profile mig_profiles[SIM_PROFILES];
    struct gpu_instance gpu_instances[SIM_INSTANCES];
    struct compute_instance compute_instances[SIM_INSTANCES];
};

enum use { USE_COMPUTE, USE_GRAPHICS, USE_MPS, USE_CLIENT /* has the driver open, as every user of NVML does */ };

struct process {
    int32_t pid;
    int32_t connection;   /* of a client: the server's end; -1 for those that are followed by pid */
    uint64_t started;     /* start time in ticks: a pid that was given to somebody else is not the same process */
    uint32_t use, board;
    uint32_t gi, ci;      /* SIM_NONE outside of MIG */
    uint32_t memory_mib;
    char name[32];
};

/* What a test can make go wrong; faults.c says what each does. */
enum fault_kind {
    FAULT_PASSTHROUGH, FAULT_NO_PROFILES_WHEN_OFF, FAULT_NO_PROFILE_NAMES, FAULT_INVISIBLE_CLIENT, FAULT_NO_PERMISSION,
    FAULT_SLOW, FAULT_FAIL, FAULT_FAIL_READ, FAULT_KILL_BEFORE, FAULT_KILL_AFTER, FAULT_KILL, FAULT_KINDS
};

struct fault {
    uint32_t kind, board;  /* SIM_BOARDS: all of them */
    uint32_t number, code; /* of the call that is hit, or milliseconds; what it returns */
    uint32_t seen;         /* calls since it was set */
};

struct state {
    uint32_t magic, layout;
    char driver_version[32];
    char flavour[16]; /* open | proprietary */
    uint32_t board_count, process_count, fault_count;
    struct board boards[SIM_BOARDS]; /* in the order of their addresses; the place is the device minor */
    struct process processes[SIM_PROCESSES];
    struct fault faults[SIM_FAULTS];
};

enum operation {
    OP_LOOK,             /* nothing but the state */
    OP_READ,             /* the same for a call of NVML, so that faults can count it */
    OP_OPEN,             /* be a client of the driver until the connection ends */
    OP_WATCH,            /* the same, and get a struct event for every XID */
    OP_HOLD,             /* a = enum use, b = memory in MiB, gi, ci: the caller computes there until it ends */
    OP_SET_COMPUTE_MODE, /* a = NVML's number */
    OP_SET_PERSISTENCE,  /* a = 0 or 1 */
    OP_SET_ECC,          /* a = 0 or 1; takes effect at the next load or reset */
    OP_SET_MIG,          /* a = 0 or 1; answers with the activation status */
    OP_CREATE_GI,        /* a = profile id, b = start or SIM_NONE, c = size; answers with the new instance's id */
    OP_DESTROY_GI,       /* gi */
    OP_CREATE_CI,        /* gi, a = profile id, b = start or SIM_NONE, c = size; answers with the new instance's id */
    OP_DESTROY_CI,       /* gi, ci */
    OP_RESET,
    OP_XID,              /* a = the XID; gi, ci: where */
    OP_LOSE,
    OP_RESTORE,
    OP_FAULT,            /* board or SIM_BOARDS, a = enum fault_kind, b = number, c = code */
    OP_CLEAR_FAULTS,
    OP_UNLOAD,           /* a = 1: whoever uses it */
    OP_COUNT
};

struct request {
    uint32_t magic, layout;
    uint32_t operation, board, gi, ci;
    int64_t a, b, c;
};

/* The answer's head; the state follows when both sides have the same layout. */
struct answer {
    uint32_t magic, layout;
    uint32_t status; /* nvmlReturn_t */
    uint32_t result; /* of operations that answer with a number */
    uint32_t delay_ms; /* how long the caller has to believe that it took */
};

struct event {
    uint32_t board, xid, gi, ci;
};

/* board.c */
int board_read(const char *path, struct board *board); /* 0, or -1 with the reason on stderr */
void board_recall(struct board *board);                /* what the board's InfoROM says */
int board_remember(const struct board *board);
bool mig_mode_is_kept(const struct board *board);
void board_print(FILE *out, const struct board *board); /* as members of a JSON object */
int board_find(const struct state *state, const char *name); /* by visible index, UUID or PCI address; -1 when there is none */
bool node_opens(const char *path, int flags); /* nobody forbids it */
bool board_visible(unsigned minor);
bool address_parse(const char *text, unsigned *domain, unsigned *bus, unsigned *device);

/* client.c: nvmlReturn_t as int; the driver's absence is NVML_ERROR_DRIVER_NOT_LOADED */
int sim_request(const struct request *request, struct state *state, uint32_t *result);
int sim_ask(enum operation operation, unsigned board, int64_t a, int64_t b, struct state *state); /* a request outside of MIG */
int sim_connect(enum operation operation, struct state *state, int *connection);                 /* one that stays */

#endif
