/* jail.h: what the parts of bench_jail share: where they are, and the things they time. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "caisson/caisson.h"

#define BENCH_PAYLOAD "/bin/true"

typedef struct bench_place {
    char top[64];    /* private; holds everything else */
    char ws[80];     /* the workspace of every contestant */
    char file[96];   /* 4 KB in it */
    char **caisson;  /* argv of `caisson run -- true`; NULL: no program was named */
    char **bwrap;    /* argv of the strict bwrap with the payload; NULL: not installed */
    char **bwrap_sh; /* the same with sh -c 'echo hi' */
} bench_place;

extern bench_place bench;

/* Makes the place and points XDG_STATE_HOME and XDG_RUNTIME_DIR into it. */
void bench_place_make(void);
void bench_place_remove(void);

/* Runs argv with two pipes, reads both to the end, and waits. Dies unless it exits with 0 and
 * prints what is expected. Nanoseconds. */
uint64_t bench_spawn(char *const argv[], const char *expect);

csn_sandbox *bench_open(void);
/* Dies unless it exits with 0 and prints what is expected. */
void bench_exec_true(csn_sandbox *sb);
void bench_session_echo(csn_sandbox *sb);
void bench_create_run_destroy(void);

/* The parts. Each prints its verdicts and returns how many goals were missed. */
unsigned bench_part_timed(const char *parts, size_t rounds, size_t runs);
unsigned bench_part_cpu(size_t rounds);
unsigned bench_part_live(size_t live, bool memory, bool scale);
unsigned bench_part_rate(void);
