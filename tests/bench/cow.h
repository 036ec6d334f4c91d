/* cow.h: what the parts of bench_cow share: where they are, and the things they time. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "caisson/caisson.h"

typedef struct cow_place {
    char top[256];    /* private; holds everything else, and the state directory */
    char tree[300];   /* the workspace that is opened with --cow */
    char direct[300]; /* the same files, for a jail that writes to them */
} cow_place;

extern cow_place cow;

/* Points XDG_STATE_HOME and XDG_RUNTIME_DIR into a new directory of TMPDIR, or /tmp. */
void cow_place_make(void);
void cow_place_remove(void);

void cow_must(csn_status st, const char *what, csn_error *err);
/* Runs a command on the host. Dies unless it exits with 0. */
void cow_run(const char *const *argv);
void cow_remove(const char *dir);
/* Directories of a hundred files of 10 KB: d0/f0 ... */
void cow_make_tree(const char *dir, size_t files);
void cow_write_file(const char *path, const void *data, size_t len);
csn_sandbox *cow_open(const char *dir, uint32_t flags);
csn_sandbox *cow_fork(csn_sandbox *source);
/* Runs a command in the sandbox. Dies unless it exits with 0. Nanoseconds. */
uint64_t cow_sh(csn_sandbox *sb, const char *command);
uint64_t cow_spawn_true(void);

/* The parts. Each prints its verdicts and returns how many goals were missed. */
unsigned cow_part_calls(size_t files, size_t rounds, size_t runs);
unsigned cow_part_forks(size_t forks);
unsigned cow_part_changes(size_t rounds);
unsigned cow_part_work(size_t rounds, size_t runs);
