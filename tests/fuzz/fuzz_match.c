/* fuzz_match.c: a byte of flags, a pattern up to the first newline, a text.
 *
 * Beside not crashing: a match lies within the text, not before the start, and a line that
 * matches alone is never passed over by a search of the whole. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "search/match.h"

#define ROUNDS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        __builtin_trap();
}

static void search(csn_matcher *m, const char *text, size_t len)
{
    size_t start = 0;

    for (int i = 0; i < ROUNDS && start <= len; i++) {
        size_t from = 0, to = 0;
        int rc = csn_matcher_find(m, text, len, start, &from, &to);
        must(rc == 1 || rc == 0 || rc == CSN_TOO_LARGE || rc == CSN_NOMEM);
        if (rc != 1)
            return;
        must(from >= start && from <= to && to <= len);
        start = to > from ? to : to + 1;
    }
    must(csn_matcher_find(m, text, len, len + 1, &start, &start) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CSN_CLEANUP(csn_matcher_freep) csn_matcher *m = NULL;
    const uint8_t *newline = size > 1 ? memchr(data + 1, '\n', size - 1) : NULL;
    csn_error *err = NULL;

    if (!newline)
        return 0;
    uint32_t flags = data[0] & (CSN_GREP_REGEX | CSN_GREP_IGNORE_CASE);
    csn_autofree char *pattern = strndup((const char *)data + 1, (size_t)(newline - data - 1));
    if (!pattern)
        return 0;
    csn_status st = csn_matcher_new(pattern, flags, &m, &err);
    must((st == CSN_OK) == (m != NULL));
    must(st == CSN_OK || csn_error_message(err)[0]);
    csn_error_free(err);
    if (m)
        search(m, (const char *)newline + 1, size - (size_t)(newline + 1 - data));
    return 0;
}
