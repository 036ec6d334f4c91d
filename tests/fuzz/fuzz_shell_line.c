/* fuzz_shell_line.c: the input is a shell line.
 *
 * Beyond not crashing: the same answer twice; a stop points into the line; a command word
 * contains no byte that an expansion could have left out; and a line that is read to its end
 * is still read to its end, with its commands and one more, when `true` follows on a line of
 * its own. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/shell_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct tally {
    size_t commands, words, bytes;
} tally;

static void must(bool ok)
{
    if (!ok)
        __builtin_trap();
}

static int count(void *ctx, const csn_shell_command *c)
{
    tally *t = ctx;

    must(c->count > 0 && c->assignments <= c->count);
    for (size_t i = 0; i < c->count; i++) {
        size_t len = strlen(c->words[i].text);
        must(c->words[i].known <= len && (!c->words[i].literal || c->words[i].known == len));
        must(!c->words[i].splits || !c->words[i].literal);
        must(i >= c->assignments || c->words[i].assigns);
        t->bytes += len;
    }
    if (c->count > c->assignments) {
        const char *why = NULL;
        const csn_shell_word *w = &c->words[c->assignments];
        must(w->literal || strcmp(w->text, "[") == 0);
        (void)csn_shell_builtin(w, c->count - c->assignments, &why);
    }
    t->commands++;
    t->words += c->count;
    return 0;
}

static int read_line(const char *line, tally *t)
{
    csn_shell_stop stop = {0};
    int rc = csn_shell_line(line, count, t, &stop);

    must(rc == 0 || (rc == CSN_SHELL_STOPPED && stop.construct));
    must(rc == 0 || (stop.at >= line && stop.at <= line + strlen(line)));
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    csn_autofree char *line = strndup((const char *)data, size);
    csn_autofree char *longer = NULL;
    tally a = {0}, b = {0}, c = {0};

    if (!line || asprintf(&longer, "%s\ntrue", line) < 0)
        return 0;
    int rc = read_line(line, &a);
    must(read_line(line, &b) == rc);
    must(a.commands == b.commands && a.words == b.words && a.bytes == b.bytes);
    if (rc == 0) {
        must(read_line(longer, &c) == 0);
        must(c.commands == a.commands + 1 && c.words == a.words + 1);
    }
    return 0;
}
