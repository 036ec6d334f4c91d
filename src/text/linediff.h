/* linediff.h: which lines differ between two byte strings.
 *
 * A line ends with '\n' and includes it; a last line without '\n' is a line of its own, which
 * differs from the same text with '\n'. All other bytes (NUL, '\r', invalid UTF-8) are plain
 * content. The empty string has no lines. Lines are counted from 0. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "caisson/caisson.h"

/* Borrowed bytes. data may be NULL if len is 0. */
typedef struct csn_text {
    const char *data;
    size_t len;
} csn_text;

/* Lines [a_start, a_start + a_count) of a are replaced by [b_start, b_start + b_count) of b.
 * At least one of the counts is not 0. */
typedef struct csn_hunk {
    size_t a_start, a_count;
    size_t b_start, b_count;
} csn_hunk;

/* Hunks are in ascending order, and at least one unchanged line is between two of them. Lines
 * outside of all hunks are equal, pairwise and in order: replacing every hunk turns a into b.
 * No hunks: a and b are equal. */
typedef struct csn_linediff {
    csn_hunk *hunks;
    size_t count;
    bool coarse; /* a bound was reached: hunks may contain lines that could have been matched */
} csn_linediff;

/* Compares a and b: lines that occur once in both are matched first ("patience diff"), then the
 * lines between them. Where lines repeat, other tools may choose other hunks for the same
 * change. The same texts always have the same hunks. Time and memory are bounded:
 *  - more than CSN_DIFF_LINES_MAX lines on one side, or lines made to collide in a hash table:
 *    one hunk between the common first and the common last lines (coarse);
 *  - a part without lines that are unique in it, and with hundreds of changes: one hunk
 *    (coarse);
 *  - *steps comparisons made: the parts not compared yet become whole hunks (coarse). `steps`
 *    is reduced by what was used, so that several calls can share one allowance; NULL stands
 *    for CSN_DIFF_STEPS_MAX, at most about a second.
 * Fails only with CSN_NOMEM; *ret is then untouched. Release *ret with csn_linediff_release. */
csn_status csn_linediff_make(csn_text a, csn_text b, uint64_t *steps, csn_linediff *ret,
                             csn_error **err);
/* Also valid on a zeroed struct. */
void csn_linediff_release(csn_linediff *d);

bool csn_text_equal(csn_text a, csn_text b);
/* As git decides: a NUL in the first 8000 bytes. */
bool csn_text_is_binary(csn_text t);
size_t csn_text_count_lines(csn_text t);
/* The length of the line that starts at offset `at` < t.len, its '\n' included. */
size_t csn_text_line_len(csn_text t, size_t at);
/* Cuts the common first lines off both and returns their count. */
size_t csn_text_cut_first_lines(csn_text *a, csn_text *b);
/* Cuts the common last lines off both. */
void csn_text_cut_last_lines(csn_text *a, csn_text *b);
