/* log.c: debug lines to the callback of csn_set_log.
 *
 * The callback is set before any other call, so it needs no lock. Lines are bounded; callers
 * escape untrusted text with csn_path_printable. */
#include "base/log.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "caisson/caisson.h"

#define LINE_MAX_BYTES 1024

static csn_log_fn sink;
static void *sink_ctx;

void csn_set_log(csn_log_fn fn, void *ctx)
{
    sink_ctx = ctx;
    sink = fn;
}

void csn_log_debug(const char *fmt, ...)
{
    char line[LINE_MAX_BYTES];
    va_list ap;

    if (!sink)
        return;
    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    sink(sink_ctx, line);
}
