/* pool.h: runs blocking tasks, such as tool calls, on a bounded number of threads. */
#pragma once
#include <stdbool.h>

typedef struct csn_pool csn_pool;

csn_pool *csn_pool_new(unsigned threads_max, unsigned queue_max); /* NULL: out of memory */
/* Returns false if the queue is full, no thread could be created, or the pool is stopping. */
bool csn_pool_submit(csn_pool *p, void (*run)(void *arg), void *arg);
/* Waits for all tasks, including queued ones, and ends the threads. NULL is allowed. */
void csn_pool_free(csn_pool *p);
