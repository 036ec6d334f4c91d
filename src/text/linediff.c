/* linediff.c: splits two texts into lines, numbers the lines and turns pairs into hunks.
 *
 * Contents come from a sandbox. Common first and last lines are cut off on the bytes alone, so
 * that this works for texts of any size. The lines between get numbers from a hash table: equal
 * lines have equal numbers. A line that is not found or placed within PROBES_MAX slots ends the
 * numbering, and all lines between become one hunk; the hash has no secret, because the same
 * texts shall always have the same diff. linematch.c pairs the numbers. */
#include "text/linediff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "text/linematch.h"

#define PROBES_MAX   64u   /* half of the slots are empty: chance stops no line before that */
#define BINARY_BYTES 8000u /* in which git looks for a NUL */

/* ---- texts ----------------------------------------------------------------------------- */

bool csn_text_equal(csn_text a, csn_text b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

bool csn_text_is_binary(csn_text t)
{
    size_t len = t.len < BINARY_BYTES ? t.len : BINARY_BYTES;

    return len > 0 && memchr(t.data, '\0', len) != NULL;
}

size_t csn_text_line_len(csn_text t, size_t at)
{
    const char *end = memchr(t.data + at, '\n', t.len - at);

    return end ? (size_t)(end - (t.data + at)) + 1 : t.len - at;
}

size_t csn_text_count_lines(csn_text t)
{
    size_t lines = 0;

    for (size_t at = 0; at < t.len; at += csn_text_line_len(t, at))
        lines++;
    return lines;
}

/* ---- common ends ----------------------------------------------------------------------- */

size_t csn_text_cut_first_lines(csn_text *a, csn_text *b)
{
    size_t lines = 0;

    while (a->len > 0 && b->len > 0) {
        size_t len = csn_text_line_len(*a, 0);
        if (len != csn_text_line_len(*b, 0) || memcmp(a->data, b->data, len) != 0)
            break;
        *a = (csn_text){a->data + len, a->len - len};
        *b = (csn_text){b->data + len, b->len - len};
        lines++;
    }
    return lines;
}

/* A line starts `tail` bytes before the end. */
static bool starts_line(csn_text t, size_t tail)
{
    return tail == t.len || t.data[t.len - tail - 1] == '\n';
}

void csn_text_cut_last_lines(csn_text *a, csn_text *b)
{
    size_t shorter = a->len < b->len ? a->len : b->len, common = 0;

    for (size_t tail = 1; tail <= shorter; tail++) {
        if (a->data[a->len - tail] != b->data[b->len - tail])
            break;
        if (starts_line(*a, tail) && starts_line(*b, tail))
            common = tail;
    }
    a->len -= common;
    b->len -= common;
}

/* ---- numbers --------------------------------------------------------------------------- */

typedef struct known_line {
    uint64_t hash;
    csn_text bytes;
} known_line;

/* Numbers are indexes of `known`. A slot holds a number + 1, or 0. */
typedef struct line_table {
    known_line *known;
    uint32_t count;
    uint32_t *slots;
    uint64_t mask;
} line_table;

static void line_table_release(line_table *t)
{
    free(t->known);
    free(t->slots);
}

static int line_table_init(line_table *t, size_t lines)
{
    size_t slots = 16;

    while (slots < 2 * lines)
        slots *= 2;
    t->mask = slots - 1;
    t->slots = calloc(slots, sizeof(*t->slots));
    t->known = calloc(lines, sizeof(*t->known));
    return t->slots && t->known ? 0 : ENOMEM;
}

static uint64_t hash_line(csn_text line)
{
    const uint64_t odd = 0x9e3779b97f4a7c15u; /* 2^64 divided by the golden ratio */
    uint64_t hash = line.len * odd;

    for (size_t at = 0; at < line.len; at += sizeof(uint64_t)) {
        uint64_t word = 0;
        size_t rest = line.len - at;
        memcpy(&word, line.data + at, rest < sizeof(word) ? rest : sizeof(word));
        hash = (hash ^ word) * odd;
        hash ^= hash >> 32;
    }
    return hash;
}

/* False: PROBES_MAX slots are taken by other lines. */
static bool number_line(line_table *t, csn_text line, uint32_t *ret)
{
    uint64_t hash = hash_line(line), slot = hash, stride = hash >> 32 | 1;

    for (unsigned probes = 0; probes < PROBES_MAX; probes++, slot += stride) {
        uint32_t *at = &t->slots[slot & t->mask];
        if (*at == 0) {
            t->known[t->count] = (known_line){hash, line};
            *at = ++t->count;
        }
        const known_line *k = &t->known[*at - 1];
        if (k->hash == hash && csn_text_equal(k->bytes, line)) {
            *ret = *at - 1;
            return true;
        }
    }
    return false;
}

static bool number_lines(line_table *t, csn_text text, uint32_t *ret)
{
    for (size_t at = 0, len; at < text.len; at += len) {
        len = csn_text_line_len(text, at);
        if (!number_line(t, (csn_text){text.data + at, len}, ret++))
            return false;
    }
    return true;
}

/* ---- hunks ----------------------------------------------------------------------------- */

/* The first hunk at or after (*a, *b), which are lines of m; moves both behind it. */
static bool next_hunk(const csn_linematch *m, uint32_t *a, uint32_t *b, csn_hunk *ret)
{
    while (*a < m->a_count && m->partner[*a] == *b) {
        ++*a;
        ++*b;
    }
    if (*a == m->a_count && *b == m->b_count)
        return false;
    uint32_t a_end = *a;
    while (a_end < m->a_count && m->partner[a_end] == CSN_NO_PARTNER)
        a_end++;
    uint32_t b_end = a_end < m->a_count ? m->partner[a_end] : m->b_count;
    *ret = (csn_hunk){*a, a_end - *a, *b, b_end - *b};
    *a = a_end;
    *b = b_end;
    return true;
}

/* `first`: common lines before those of m. */
static int make_hunks(const csn_linematch *m, size_t first, csn_linediff *ret)
{
    uint32_t a = 0, b = 0;
    csn_hunk h;
    csn_linediff d = {.coarse = m->coarse};

    while (next_hunk(m, &a, &b, &h))
        d.count++;
    d.hunks = d.count ? calloc(d.count, sizeof(*d.hunks)) : NULL;
    if (d.count && !d.hunks)
        return ENOMEM;
    a = b = 0;
    for (size_t i = 0; next_hunk(m, &a, &b, &h); i++) {
        h.a_start += first;
        h.b_start += first;
        d.hunks[i] = h;
    }
    *ret = d;
    return 0;
}

static int one_hunk(csn_hunk h, bool coarse, csn_linediff *ret)
{
    csn_hunk *hunks = malloc(sizeof(*hunks));

    if (!hunks)
        return ENOMEM;
    *hunks = h;
    *ret = (csn_linediff){hunks, 1, coarse};
    return 0;
}

/* ---- one diff -------------------------------------------------------------------------- */

/* Compares what is between the common ends; `whole` is the hunk that replaces all of it. */
static int compare_lines(csn_text a, csn_text b, csn_hunk whole, uint64_t *steps,
                         csn_linediff *ret)
{
    CSN_CLEANUP(line_table_release) line_table table = {0};
    csn_autofree uint32_t *a_numbers = calloc(whole.a_count, sizeof(uint32_t));
    csn_autofree uint32_t *b_numbers = calloc(whole.b_count, sizeof(uint32_t));
    csn_autofree uint32_t *partner = calloc(whole.a_count, sizeof(uint32_t));

    if (!a_numbers || !b_numbers || !partner ||
        line_table_init(&table, whole.a_count + whole.b_count) != 0)
        return ENOMEM;
    if (!number_lines(&table, a, a_numbers) || !number_lines(&table, b, b_numbers))
        return one_hunk(whole, true, ret);
    csn_linematch m = {.a = a_numbers,
                       .b = b_numbers,
                       .a_count = (uint32_t)whole.a_count,
                       .b_count = (uint32_t)whole.b_count,
                       .values = table.count,
                       .steps = *steps,
                       .partner = partner};
    int rc = csn_linematch_run(&m);
    *steps = m.steps;
    return rc == 0 ? make_hunks(&m, whole.a_start, ret) : rc;
}

static int compare_texts(csn_text a, csn_text b, uint64_t *steps, csn_linediff *ret)
{
    size_t first = csn_text_cut_first_lines(&a, &b);

    csn_text_cut_last_lines(&a, &b);
    csn_hunk whole = {first, csn_text_count_lines(a), first, csn_text_count_lines(b)};
    if (a.len == 0 && b.len == 0) {
        *ret = (csn_linediff){0};
        return 0;
    }
    if (a.len == 0 || b.len == 0)
        return one_hunk(whole, false, ret);
    if (whole.a_count > CSN_DIFF_LINES_MAX || whole.b_count > CSN_DIFF_LINES_MAX)
        return one_hunk(whole, true, ret);
    return compare_lines(a, b, whole, steps, ret);
}

csn_status csn_linediff_make(csn_text a, csn_text b, uint64_t *steps, csn_linediff *ret,
                             csn_error **err)
{
    uint64_t allowance = CSN_DIFF_STEPS_MAX;

    if (compare_texts(a, b, steps ? steps : &allowance, ret) != 0)
        return csn_fail(err, CSN_NOMEM, "no memory to compare two texts");
    return CSN_OK;
}

void csn_linediff_release(csn_linediff *d)
{
    free(d->hunks);
    *d = (csn_linediff){0};
}
