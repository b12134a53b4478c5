/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The parts of the process that plays the kernel.
 */
#ifndef SIMGPU_DRIVER_H
#define SIMGPU_DRIVER_H

#include "mig.h"

/* What came of a request beside its status. */
struct outcome {
    uint32_t result; /* see struct answer */
    bool reset;      /* the board, on the way */
    char detail[96]; /* for the log */
};

/* operations.c */
uint32_t operate(struct state *state, const struct request *request, pid_t pid, uid_t uid, struct outcome *outcome);
const char *operation_name(enum operation operation); /* NULL when it changes nothing */

/* instances.c: the server's side of MIG */
uint32_t mig_set_mode(struct state *state, const struct request *request, pid_t pid, struct outcome *outcome);
uint32_t mig_create_gi(struct state *state, const struct request *request, struct outcome *outcome);
uint32_t mig_destroy_gi(struct state *state, const struct request *request, struct outcome *outcome);
uint32_t mig_create_ci(struct state *state, const struct request *request, struct outcome *outcome);
uint32_t mig_destroy_ci(struct state *state, const struct request *request, struct outcome *outcome);
void board_restart(struct board *board, unsigned minor); /* what a reset does to it */

/* faults.c */
struct fault_hit {
    bool kill_before, kill_after;
    uint32_t status, delay_ms;
};
struct fault_hit faults_count(struct state *state, const struct request *request);
uint32_t fault_set(struct state *state, const struct request *request);

/* processes.c */
void process_add_client(struct state *state, pid_t pid, int connection);
void process_remove(struct state *state, int connection);
void process_prune(struct state *state); /* forget those that ended */
bool processes_in(const struct state *state, unsigned minor, uint32_t gi, uint32_t ci); /* SIM_NONE: anywhere */
uint32_t process_hold(struct state *state, const struct request *request, pid_t pid);

/* capabilities.c: the files and nodes by which MIG instances are opened */
bool capabilities_load(void);
void capabilities_follow(const struct board *board, unsigned minor); /* after instances came or went */
void capabilities_unload(void);

/* server.c */
void serve(int listener, struct state *state, int log);

/* load.c */
int driver_load(const char *version);
int driver_unload(bool force);

/* files.c */
void make_directories(const char *path);
bool put_file(const char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool make_node(const char *path, unsigned major, unsigned minor, unsigned mode);
void remove_tree(const char *path);

#endif
