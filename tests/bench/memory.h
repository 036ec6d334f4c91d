/* memory.h: what the kernel says is in memory, for benchmarks that count it. */
#pragma once
#include <stdbool.h>

typedef struct bench_memory { /* KB */
    long kernel;              /* slab, stacks, page tables, per-cpu data, memory files */
    long available;           /* with the free pages that processors keep for themselves */
    long own;                 /* of this process */
} bench_memory;

bench_memory bench_memory_now(void);
/* The number of KB after `key` in a file such as /proc/meminfo, or -1. */
long bench_kb_in(const char *path, const char *key);
/* Of all processes whose name begins with `prefix`: pages of their own, and their part of
 * shared ones. */
long bench_processes_kb(const char *prefix);
