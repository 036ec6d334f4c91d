/* pool.h: threads for work that waits: every tool call is one task. */
#pragma once
#include <stdbool.h>

typedef struct csn_pool csn_pool;

csn_pool *csn_pool_new(unsigned threads_max, unsigned queue_max); /* NULL: out of memory */
/* false: as much is waiting as may wait, no thread could be made, or the pool is stopping. */
bool csn_pool_submit(csn_pool *p, void (*run)(void *arg), void *arg);
/* Waits for all tasks, also those that wait, and ends the threads. NULL is fine. */
void csn_pool_free(csn_pool *p);
