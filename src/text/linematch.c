/* linematch.c: pairs equal elements of two sequences by divide and conquer.
 *
 * Work is a stack of ranges, each a part of a and a part of b. For one range:
 *  1. Common first and last elements are paired.
 *  2. Values that occur once in each part are anchor candidates ("patience diff"). The longest
 *     chain of candidates that ascends in both parts is paired, each anchor grows over equal
 *     neighbours, and the gaps between anchors become new ranges.
 *  3. Without candidates, a greedy search finds a shortest edit script (E. Myers, "An O(ND)
 *     difference algorithm and its variations", 1986, the basic algorithm), if one of at most
 *     EDITS_MAX edits exists. Otherwise the range stays without pairs.
 *
 * The input may be chosen by an attacker. Every loop pays from `steps`; a range that cannot pay
 * stays without pairs. The stack has one entry per gap, and gaps are disjoint, so memory is
 * linear. Invariant: pairs ascend in a and in b, and paired elements are equal. */
#include "text/linematch.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/cleanup.h"

/* Edits of one search. Its trace has about EDITS_MAX * EDITS_MAX / 2 entries. */
#define EDITS_MAX  400
#define SCAN_STEPS 4u /* an element is visited up to so often in the search for anchors */
#define NO_POINT   (-1)
#define NO_ANCHOR  UINT32_MAX

/* Elements [a, a_end) and [b, b_end). */
typedef struct range {
    uint32_t a, a_end, b, b_end;
} range;

/* How often a value occurs in the current range: 0, 1, or 2 for more. All 0 between ranges. */
typedef struct tally {
    uint8_t in_a, in_b;
    uint32_t at_b;
} tally;

typedef struct anchor {
    uint32_t a, b;
    uint32_t before; /* index of the previous anchor of the longest chain that ends here */
} anchor;

typedef struct work {
    csn_linematch *m;
    tally *tallies;  /* by value */
    anchor *anchors; /* of the current range */
    uint32_t *chain; /* indexes of anchors */
    int32_t *trace;  /* made by the first search */
    range *stack;
    size_t depth, room;
} work;

static void work_release(work *w)
{
    free(w->tallies);
    free(w->anchors);
    free(w->chain);
    free(w->trace);
    free(w->stack);
}

/* False: the allowance is used up. */
static bool pay(csn_linematch *m, uint64_t steps)
{
    if (m->steps >= steps) {
        m->steps -= steps;
        return true;
    }
    m->steps = 0;
    m->coarse = true;
    return false;
}

static void pair_up(csn_linematch *m, uint32_t a, uint32_t b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        m->partner[a + i] = b + i;
}

/* A range with an empty part has no pairs and is left out. */
static int push(work *w, range r)
{
    if (r.a == r.a_end || r.b == r.b_end)
        return 0;
    if (w->depth == w->room) {
        size_t room = w->room ? w->room * 2 : 64;
        range *more = reallocarray(w->stack, room, sizeof(*more));
        if (!more)
            return ENOMEM;
        w->stack = more;
        w->room = room;
    }
    w->stack[w->depth++] = r;
    return 0;
}

/* ---- ends ------------------------------------------------------------------------------ */

static void pair_ends(csn_linematch *m, range *r)
{
    while (r->a < r->a_end && r->b < r->b_end && m->a[r->a] == m->b[r->b])
        m->partner[r->a++] = r->b++;
    while (r->a < r->a_end && r->b < r->b_end && m->a[r->a_end - 1] == m->b[r->b_end - 1])
        m->partner[--r->a_end] = --r->b_end;
}

/* ---- anchors --------------------------------------------------------------------------- */

/* Fills w->anchors in the order of a and returns their count. *ret_shared: some value occurs in
 * both parts. */
static uint32_t find_anchors(work *w, range r, bool *ret_shared)
{
    const csn_linematch *m = w->m;
    uint32_t count = 0;

    for (uint32_t j = r.b; j < r.b_end; j++) {
        tally *t = &w->tallies[m->b[j]];
        t->in_b = t->in_b ? 2 : 1;
        t->at_b = j;
    }
    for (uint32_t i = r.a; i < r.a_end; i++) {
        tally *t = &w->tallies[m->a[i]];
        t->in_a = t->in_a ? 2 : 1;
    }
    *ret_shared = false;
    for (uint32_t i = r.a; i < r.a_end; i++) {
        const tally *t = &w->tallies[m->a[i]];
        if (t->in_b)
            *ret_shared = true;
        if (t->in_a == 1 && t->in_b == 1)
            w->anchors[count++] = (anchor){.a = i, .b = t->at_b, .before = NO_ANCHOR};
    }
    for (uint32_t i = r.a; i < r.a_end; i++)
        w->tallies[m->a[i]] = (tally){0};
    for (uint32_t j = r.b; j < r.b_end; j++)
        w->tallies[m->b[j]] = (tally){0};
    return count;
}

/* The first of the `piles` whose top is not before position b. Tops ascend. */
static uint32_t find_pile(const work *w, uint32_t piles, uint32_t b)
{
    uint32_t low = 0, high = piles;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (w->anchors[w->chain[middle]].b < b)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Patience sorting: chain[n] is the top of pile n, the anchor at which an ascending chain of
 * n + 1 anchors ends earliest in b. Leaves the longest chain in w->chain, returns its length.
 */
static uint32_t choose_chain(work *w, uint32_t anchors)
{
    uint32_t piles = 0;

    for (uint32_t i = 0; i < anchors; i++) {
        uint32_t pile = find_pile(w, piles, w->anchors[i].b);
        if (pile > 0)
            w->anchors[i].before = w->chain[pile - 1];
        w->chain[pile] = i;
        if (pile == piles)
            piles++;
    }
    for (uint32_t n = piles; n > 1; n--)
        w->chain[n - 2] = w->anchors[w->chain[n - 1]].before;
    return piles;
}

/* Pairs the anchors of the chain and their equal neighbours; the gaps go onto the stack. An
 * anchor's value is unique in both parts, so growing never runs past another anchor except
 * along the same pairs. */
static int split_at_chain(work *w, range r, uint32_t length)
{
    csn_linematch *m = w->m;

    for (uint32_t n = 0; n < length; n++) {
        const anchor *at = &w->anchors[w->chain[n]];
        uint32_t back = 0, count = 1;
        if (at->a < r.a)
            continue; /* the anchor before grew over it */
        while (at->a - back > r.a && at->b - back > r.b &&
               m->a[at->a - back - 1] == m->b[at->b - back - 1])
            back++;
        while (at->a + count < r.a_end && at->b + count < r.b_end &&
               m->a[at->a + count] == m->b[at->b + count])
            count++;
        pair_up(m, at->a - back, at->b - back, back + count);
        if (push(w, (range){r.a, at->a - back, r.b, at->b - back}) != 0)
            return ENOMEM;
        r.a = at->a + count;
        r.b = at->b + count;
    }
    return push(w, r);
}

/* ---- search ---------------------------------------------------------------------------- */

/* Row d of the trace has the end of the furthest path with d edits on each of d + 1 diagonals:
 * column t is the diagonal on which a is ahead of b by 2t - d, and the entry is the position in
 * a, from the start of the range. */
typedef struct search {
    const uint32_t *a, *b;
    int32_t a_len, b_len;
    int32_t *trace;
} search;

/* Where a path of `edits` edits comes onto the diagonal of `column`. */
typedef struct entry {
    int32_t a;    /* NO_POINT: not at all */
    int32_t from; /* column in the row before */
} entry;

/* Row d has d + 1 entries. */
static size_t row_offset(int32_t edits)
{
    return (size_t)edits * ((size_t)edits + 1) / 2;
}

static int32_t *row_of(const search *s, int32_t edits)
{
    return s->trace + row_offset(edits);
}

static entry enter(const search *s, int32_t edits, int32_t column)
{
    entry e = {NO_POINT, column};

    if (edits == 0)
        return (entry){0, 0};
    const int32_t *before = row_of(s, edits - 1);
    int32_t ahead = 2 * column - edits;
    if (column > 0 && before[column - 1] != NO_POINT && before[column - 1] < s->a_len)
        e = (entry){before[column - 1] + 1, column - 1}; /* leaves out an element of a */
    if (column < edits && before[column] != NO_POINT && before[column] - ahead <= s->b_len &&
        before[column] > e.a)
        e = (entry){before[column], column}; /* leaves out one of b */
    return e;
}

static void pair_path(csn_linematch *m, const search *s, range r, int32_t edits, int32_t column)
{
    for (; edits >= 0; edits--) {
        int32_t end = row_of(s, edits)[column];
        entry e = enter(s, edits, column);
        pair_up(m, r.a + (uint32_t)e.a, r.b + (uint32_t)(e.a - (2 * column - edits)),
                (uint32_t)(end - e.a));
        column = e.from;
    }
}

/* Fills one row. Returns the column that reaches the end of both parts, -1 if none does, -2 if
 * the allowance is used up. */
static int32_t fill_row(csn_linematch *m, const search *s, int32_t edits)
{
    int32_t *row = row_of(s, edits);

    for (int32_t column = 0; column <= edits; column++) {
        entry e = enter(s, edits, column);
        int32_t a = e.a, b = e.a - (2 * column - edits);
        row[column] = a;
        if (a == NO_POINT)
            continue;
        while (a < s->a_len && b < s->b_len && s->a[a] == s->b[b]) {
            a++;
            b++;
        }
        row[column] = a;
        if (!pay(m, 1 + (uint64_t)(a - e.a)))
            return -2;
        if (a == s->a_len && b == s->b_len)
            return column;
    }
    return -1;
}

static int search_range(work *w, range r)
{
    csn_linematch *m = w->m;
    int32_t a_len = (int32_t)(r.a_end - r.a), b_len = (int32_t)(r.b_end - r.b), end = -1;

    if (a_len - b_len > EDITS_MAX || b_len - a_len > EDITS_MAX) {
        m->coarse = true;
        return 0;
    }
    if (!w->trace)
        w->trace = calloc(row_offset(EDITS_MAX + 1), sizeof(*w->trace));
    if (!w->trace)
        return ENOMEM;
    search s = {m->a + r.a, m->b + r.b, a_len, b_len, w->trace};
    for (int32_t edits = 0; edits <= EDITS_MAX && end == -1; edits++) {
        end = fill_row(m, &s, edits);
        if (end >= 0)
            pair_path(m, &s, r, edits, end);
    }
    if (end < 0)
        m->coarse = true;
    return 0;
}

/* ---- all ------------------------------------------------------------------------------- */

static uint64_t bits_of(uint32_t n)
{
    return n ? 32u - (unsigned)__builtin_clz(n) : 0;
}

static int compare_range(work *w, range r)
{
    csn_linematch *m = w->m;
    bool shared = false;

    if (!pay(m, SCAN_STEPS * ((uint64_t)(r.a_end - r.a) + (r.b_end - r.b))))
        return 0;
    pair_ends(m, &r);
    if (r.a == r.a_end || r.b == r.b_end)
        return 0;
    uint32_t anchors = find_anchors(w, r, &shared);
    if (anchors == 0)
        return shared ? search_range(w, r) : 0;
    if (!pay(m, anchors * bits_of(anchors)))
        return 0;
    return split_at_chain(w, r, choose_chain(w, anchors));
}

int csn_linematch_run(csn_linematch *m)
{
    CSN_CLEANUP(work_release) work w = {.m = m};
    uint32_t shorter = m->a_count < m->b_count ? m->a_count : m->b_count;
    int rc = 0;

    m->coarse = false;
    for (uint32_t i = 0; i < m->a_count; i++)
        m->partner[i] = CSN_NO_PARTNER;
    if (shorter == 0)
        return 0;
    w.tallies = calloc(m->values, sizeof(*w.tallies));
    w.anchors = calloc(shorter, sizeof(*w.anchors));
    w.chain = calloc(shorter, sizeof(*w.chain));
    if (!w.tallies || !w.anchors || !w.chain)
        return ENOMEM;
    rc = push(&w, (range){0, m->a_count, 0, m->b_count});
    while (rc == 0 && w.depth > 0)
        rc = compare_range(&w, w.stack[--w.depth]);
    return rc;
}
