/* buf.c: a growable byte buffer with a ceiling.
 *
 * Invariants: len <= max; if data is set, data[len] is allocated and NUL. Lengths come from an
 * attacker (output, file sizes), so no sum may wrap: len and max stay below SIZE_MAX / 2. */
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAP 64u

/* half, so that `max + 1` and doubled capacities do not wrap */
void csn_buf_init(csn_buf *b, size_t max)
{
    *b = (csn_buf){.max = max < SIZE_MAX / 2 ? max : SIZE_MAX / 2};
}

void csn_buf_release(csn_buf *b)
{
    free(b->data);
    csn_buf_init(b, b->max);
}

static int failed(csn_buf *b, int error)
{
    if (b->err == 0)
        b->err = error;
    return error;
}

int csn_buf_reserve(csn_buf *b, size_t more)
{
    if (more > b->max - b->len)
        return failed(b, ENOSPC);
    size_t need = b->len + more + 1;
    if (need <= b->cap)
        return 0;
    /* Doubles, but not beyond the ceiling. */
    size_t cap = b->cap ? 2 * b->cap : FIRST_CAP;
    if (cap > b->max + 1)
        cap = b->max + 1;
    if (cap < need)
        cap = need;
    char *data = realloc(b->data, cap);
    if (!data)
        return failed(b, ENOMEM);
    b->data = data;
    b->cap = cap;
    b->data[b->len] = '\0';
    return 0;
}

int csn_buf_append(csn_buf *b, const void *data, size_t len)
{
    int e = csn_buf_reserve(b, len);

    if (e != 0)
        return e;
    if (len > 0)
        memcpy(b->data + b->len, data, len);
    b->len += len;
    b->data[b->len] = '\0';
    return 0;
}

int csn_buf_puts(csn_buf *b, const char *s)
{
    return csn_buf_append(b, s, strlen(s));
}

int csn_buf_putc(csn_buf *b, char c)
{
    return csn_buf_append(b, &c, 1);
}

int csn_buf_printf(csn_buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    /* Measured first, so that a text that does not fit leaves the buffer unchanged. */
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        return failed(b, EINVAL);
    int e = csn_buf_reserve(b, (size_t)n);
    if (e != 0)
        return e;
    va_start(ap, fmt);
    vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->len += (size_t)n;
    return 0;
}

char *csn_buf_take(csn_buf *b)
{
    char *data = b->data ? b->data : calloc(1, 1); /* NULL means out of memory only */

    csn_buf_init(b, b->max);
    return data;
}

int64_t csn_memory_read(void *ctx, void *buf, size_t len)
{
    csn_memory_source *b = ctx;
    size_t n = len < b->left ? len : b->left;

    if (n > 0) {
        memcpy(buf, b->data, n);
        b->data += n;
        b->left -= n;
    }
    return (int64_t)n;
}
