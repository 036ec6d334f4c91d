/* linematch.h: pairs equal elements of two sequences of integers, in order. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define CSN_NO_PARTNER UINT32_MAX

/* One comparison. Sequences are borrowed; both have fewer than INT32_MAX elements. */
typedef struct csn_linematch {
    const uint32_t *a, *b;
    uint32_t a_count, b_count;
    uint32_t values;   /* every element is below */
    uint64_t steps;    /* allowance; reduced by what was used */
    bool coarse;       /* result: a bound was reached, pairs may be missing */
    uint32_t *partner; /* result: a_count indexes of b, ascending, or CSN_NO_PARTNER */
} csn_linematch;

/* Fills partner and coarse. 0 or ENOMEM. */
int csn_linematch_run(csn_linematch *m);
