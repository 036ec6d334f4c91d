/* fuzz_shwords.c: the input is a shell line.
 *
 * Beside not crashing: it says something about every line (0, never -1), the same twice, and a
 * line it is certain of stays certain inside a group, with the same words, unless a
 * here-document at its end swallows the rest. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/shwords.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct tally {
    size_t words, bytes, unknown;
} tally;

static void must(bool ok)
{
    if (!ok)
        __builtin_trap();
}

static int count(void *ctx, const char *word, const char *text)
{
    tally *t = ctx;

    must(text != NULL);
    t->words++;
    t->bytes += word ? strlen(word) : 0;
    t->unknown += word == NULL;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    csn_autofree char *line = strndup((const char *)data, size);
    csn_autofree char *group = NULL;
    tally a = {0}, b = {0}, c = {0};

    if (!line || asprintf(&group, "{ %s\n}", line) < 0)
        return 0;
    must(csn_shwords(line, count, &a) == 0);
    must(csn_shwords(line, count, &b) == 0);
    must(a.words == b.words && a.bytes == b.bytes && a.unknown == b.unknown);
    must(csn_shwords(group, count, &c) == 0);
    /* Functions are excused only at the top, so a group may say more, never less. */
    if (a.unknown == 0 && c.unknown == 0)
        must(c.words >= a.words && c.bytes >= a.bytes);
    return 0;
}
