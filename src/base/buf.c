/* buf.c: bytes that grow, up to a ceiling that was said at the start.
 *
 * Called wherever the size is not known before: JSON out, captured output, files read whole.
 * What must hold: len <= max, and whenever data is set there is room for, and a NUL at,
 * data[len]. The lengths are an attacker's (a command's output, a file's size), so no sum here
 * can wrap: len and max stay below SIZE_MAX / 2. */
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAP 64u

/* The half keeps `max + 1` and doubled capacities from wrapping. */
void csn_buf_init(csn_buf *b, size_t max)
{
    *b = (csn_buf){.max = max < SIZE_MAX / 2 ? max : SIZE_MAX / 2};
}

void csn_buf_release(csn_buf *b)
{
    free(b->data);
    csn_buf_init(b, b->max);
}

int csn_buf_reserve(csn_buf *b, size_t more)
{
    if (more > b->max - b->len)
        return ENOSPC;
    size_t need = b->len + more + 1;
    if (need <= b->cap)
        return 0;
    /* Doubling makes n appends cost O(n); near the ceiling there is no use in more than it. */
    size_t cap = b->cap ? 2 * b->cap : FIRST_CAP;
    if (cap > b->max + 1)
        cap = b->max + 1;
    if (cap < need)
        cap = need;
    char *data = realloc(b->data, cap);
    if (!data)
        return ENOMEM;
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
    /* Measured first: a text that does not fit must not leave a part of itself behind. */
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        return EINVAL;
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
    char *data = b->data ? b->data : calloc(1, 1); /* so that NULL means no memory only */

    csn_buf_init(b, b->max);
    return data;
}
