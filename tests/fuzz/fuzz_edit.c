/* fuzz_edit.c: flags, then old, new and text, each ended by the byte 0xff.
 *
 * The result is compared with a replacement done byte by byte. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "text/edit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        __builtin_trap();
}

typedef struct slice {
    const char *p;
    size_t len;
} slice;

static slice cut(const uint8_t **data, size_t *size)
{
    const uint8_t *end = memchr(*data, 0xff, *size);
    slice s = {(const char *)*data, end ? (size_t)(end - *data) : *size};

    *data += s.len + (end != NULL);
    *size -= s.len + (end != NULL);
    return s;
}

/* Occurrences, and the text with all (or the first) of them replaced. */
static size_t slow_replace(slice text, slice old, slice new, bool all, csn_buf *out)
{
    size_t found = 0;

    for (size_t i = 0; i < text.len;) {
        bool hit = i + old.len <= text.len && memcmp(text.p + i, old.p, old.len) == 0;
        if (hit)
            found++;
        bool replace = hit && (all || found == 1);
        must(csn_buf_append(out, replace ? new.p : text.p + i,
                            replace ? new.len
                            : hit   ? old.len
                                    : 1) == 0);
        i += hit ? old.len : 1;
    }
    return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    csn_autobuf out, want;
    csn_error *err = NULL;
    uint64_t n = 0;

    csn_buf_init(&out, 1 << 25);
    csn_buf_init(&want, 1 << 25);
    if (size < 2 || size > 4096)
        return 0;
    bool all = (*data & 1) != 0;
    data++;
    size--;
    slice old = cut(&data, &size), new = cut(&data, &size), text = cut(&data, &size);
    if (old.len == 0 || new.len == 0) /* a length of 0 means strlen */
        return 0;
    csn_edit_item e = {old.p, old.len, new.p, new.len, all};
    size_t found = slow_replace(text, old, new, all, &want);
    csn_status st = csn_edit_apply("f", text.p, text.len, &e, 1, &out, &n, &err);
    if (old.len == new.len && memcmp(old.p, new.p, old.len) == 0)
        must(st == CSN_INVALID);
    else if (found == 0)
        must(st == CSN_NO_MATCH && csn_error_hint(err) != NULL);
    else if (found > 1 && !all)
        must(st == CSN_AMBIGUOUS && csn_error_hint(err) != NULL);
    else
        must(st == CSN_OK && n == found && out.len == want.len &&
             memcmp(out.data ? out.data : "", want.data ? want.data : "", out.len) == 0);
    csn_error_free(err);
    return 0;
}
