/* buf.h: a growable byte buffer with a ceiling. `data` is NUL-terminated (not counted in len)
 * once anything was appended. A failed append leaves the buffer unchanged: ENOSPC at the
 * ceiling, else ENOMEM. `err` keeps the first failure, so that a text of many pieces can be
 * checked once. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

typedef struct csn_buf {
    char *data;
    size_t len, cap, max;
    int err;
} csn_buf;

void csn_buf_init(csn_buf *b, size_t max);
void csn_buf_release(csn_buf *b);
static inline void csn_buf_releasep(csn_buf *b)
{
    csn_buf_release(b);
}
#define csn_autobuf CSN_CLEANUP(csn_buf_releasep) csn_buf

int csn_buf_append(csn_buf *b, const void *data, size_t len); /* 0 or errno */
int csn_buf_puts(csn_buf *b, const char *s);
int csn_buf_putc(csn_buf *b, char c);
int csn_buf_printf(csn_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int csn_buf_reserve(csn_buf *b, size_t more);
char *csn_buf_take(csn_buf *b); /* malloc'd, "" if nothing was appended; b is empty after */

/* Bytes in memory as a csn_source (caisson/backend.h). csn_memory_read only copies, so it
 * can be called under any identity. */
typedef struct csn_memory_source {
    const char *data;
    size_t left;
} csn_memory_source;
int64_t csn_memory_read(void *ctx, void *buf, size_t len);
