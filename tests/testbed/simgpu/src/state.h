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
#define SIM_LAYOUT 1u         /* raise it with every change of the structures below */

#define SIM_SOCKET "/run/simgpu/socket"                       /* on a node */
#define SIM_SHARED_SOCKET "/run/nvidia-persistenced/socket"   /* the same inode; the container toolkit mounts it into containers */
#define SIM_HARDWARE "/var/lib/simgpu/hardware/boards"        /* the boards that are plugged in */
#define SIM_INFOROM "/var/lib/simgpu/inforom"                 /* what a board remembers without power */
#define SIM_LOG "/var/log/simgpu.log"                         /* every state-changing call */

enum { SIM_BOARDS = 16, SIM_PROCESSES = 128 };

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
};

enum use { USE_COMPUTE, USE_GRAPHICS, USE_MPS, USE_CLIENT /* has the driver open, as every user of NVML does */ };

struct process {
    int32_t pid;
    int32_t connection;   /* of a client: the server's end; -1 for those that are followed by pid */
    uint64_t started;     /* start time in ticks: a pid that was given to somebody else is not the same process */
    uint32_t use, board;
    uint32_t memory_mib;
    char name[32];
};

struct state {
    uint32_t magic, layout;
    char driver_version[32];
    char flavour[16]; /* open | proprietary */
    uint32_t board_count, process_count;
    struct board boards[SIM_BOARDS]; /* in the order of their addresses; the place is the device minor */
    struct process processes[SIM_PROCESSES];
};

enum operation {
    OP_LOOK,             /* nothing but the state */
    OP_OPEN,             /* be a client of the driver until the connection ends */
    OP_WATCH,            /* the same, and get a struct event for every XID */
    OP_HOLD,             /* a = enum use, b = memory in MiB: the caller computes on the board until it ends */
    OP_SET_COMPUTE_MODE, /* a = NVML's number */
    OP_SET_PERSISTENCE,  /* a = 0 or 1 */
    OP_SET_ECC,          /* a = 0 or 1; takes effect at the next load or reset */
    OP_RESET,
    OP_XID,              /* a = the XID */
    OP_LOSE,
    OP_RESTORE,
    OP_UNLOAD,           /* a = 1: whoever uses it */
    OP_COUNT
};

struct request {
    uint32_t magic, layout;
    uint32_t operation, board;
    int64_t a, b;
};

/* The answer's head; the state follows when both sides have the same layout. */
struct answer {
    uint32_t magic, layout;
    uint32_t status; /* nvmlReturn_t */
};

struct event {
    uint32_t board, xid;
};

/* board.c */
int board_read(const char *path, struct board *board); /* 0, or -1 with the reason on stderr */
void board_recall(struct board *board);                /* what the board's InfoROM says */
int board_remember(const struct board *board);
void board_print(FILE *out, const struct board *board); /* as members of a JSON object */
int board_find(const struct state *state, const char *name); /* by visible index, UUID or PCI address; -1 when there is none */
bool board_visible(unsigned minor);
bool address_parse(const char *text, unsigned *domain, unsigned *bus, unsigned *device);

/* client.c: nvmlReturn_t as int; the driver's absence is NVML_ERROR_DRIVER_NOT_LOADED */
int sim_ask(enum operation operation, unsigned board, int64_t a, int64_t b, struct state *state);
int sim_connect(enum operation operation, struct state *state); /* a connection that stays, or -1 */

/* operations.c */
uint32_t operate(struct state *state, const struct request *request, pid_t pid, uid_t uid);
const char *operation_name(enum operation operation); /* NULL when it changes nothing */
void process_add(struct state *state, pid_t pid, int connection, enum use use, unsigned board, unsigned memory_mib);
void process_remove(struct state *state, int connection);
void process_prune(struct state *state); /* forget those that ended */

/* server.c */
void serve(int listener, struct state *state, int log);

/* load.c */
int driver_load(const char *version);
int driver_unload(bool force);

#endif
