/* merge3.h: merges two changes of the same text. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "text/linediff.h"

typedef struct csn_merge3_opts {
    const char *ours, *theirs, *base; /* labels of the markers; NULL: none. No '\n' */
    bool diff3;                       /* a conflict shows the lines of the base, too */
} csn_merge3_opts;

typedef struct csn_merge3_result {
    size_t conflicts; /* 0: clean */
    bool binary;      /* no lines were merged: see below */
} csn_merge3_result;

/* Appends to *out `base` with the changes of `ours` and of `theirs`. Texts are borrowed; opts
 * may be NULL.
 *
 * A three-way merge by lines (diff3). Changes of one side are taken; the same change on both
 * sides is taken once; changes that overlap or touch (no unchanged line is between them)
 * conflict unless they are equal. A conflict is written as
 *     <<<<<<< OURS / lines / ||||||| BASE / lines (diff3) / ======= / lines / >>>>>>> THEIRS
 * with CRLF after the markers if all its lines have CRLF. Without diff3, first and last lines
 * common to both sides are moved out of a conflict.
 *
 * Where lines are distinct enough that there is only one way to match them, `git merge-file`
 * finds the same conflicts or the same merged bytes. Elsewhere:
 *  - Repeated lines can be matched differently, which can make or avoid a conflict. A clean
 *    result never loses a change.
 *  - git may write one conflict as several, or several as one.
 *  - Binary (csn_text_is_binary of any of the three; git refuses these): if one side is the
 *    base, or both are equal, the changed one is the result. Else conflicts is 1 and `ours` is
 *    appended, without markers.
 *  - A diff that is coarse (csn_linediff_make) can make conflicts that git would not have.
 *
 * On failure *out and *ret are untouched: CSN_INVALID (a label has a '\n'), CSN_TOO_LARGE
 * (ceiling of out), CSN_NOMEM. Conflicts are no failure. */
csn_status csn_merge3(csn_text base, csn_text ours, csn_text theirs,
                      const csn_merge3_opts *opts, csn_buf *out, csn_merge3_result *ret,
                      csn_error **err);
