/* fuzz_merge3.c: flags, then base, ours and theirs, each ended by the byte 0xff.
 *
 * Lines outside of hunks must be equal; a merge with an unchanged side must be the other side;
 * which side is called ours must not decide whether a merge is clean, nor its result. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "text/merge3.h"
#include "text/patch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OUT_MAX (1u << 22)

static void must(bool ok)
{
    if (!ok)
        __builtin_trap();
}

static csn_text cut(const uint8_t **data, size_t *size)
{
    const uint8_t *end = *size ? memchr(*data, 0xff, *size) : NULL;
    csn_text t = {(const char *)*data, end ? (size_t)(end - *data) : *size};

    *data += t.len + (end != NULL);
    *size -= t.len + (end != NULL);
    return t;
}

/* Cuts the first lines off *t. */
static csn_text take(csn_text *t, size_t lines)
{
    csn_text taken = {t->data, 0};

    for (; lines > 0; lines--) {
        must(taken.len < t->len);
        taken.len += csn_text_line_len(*t, taken.len);
    }
    *t = (csn_text){t->data + taken.len, t->len - taken.len};
    return taken;
}

static void check_diff(csn_text a, csn_text b, uint64_t steps)
{
    csn_linediff d = {0};
    size_t line = 0, b_line = 0;

    must(csn_linediff_make(a, b, &steps, &d, NULL) == CSN_OK);
    must((d.count == 0) == csn_text_equal(a, b));
    for (size_t i = 0; i < d.count; i++) {
        const csn_hunk *h = &d.hunks[i];
        must(h->a_count + h->b_count > 0 && h->a_start >= line + (i > 0));
        must(csn_text_equal(take(&a, h->a_start - line), take(&b, h->b_start - b_line)));
        (void)take(&a, h->a_count);
        (void)take(&b, h->b_count);
        line = h->a_start + h->a_count;
        b_line = h->b_start + h->b_count;
    }
    must(csn_text_equal(a, b));
    csn_linediff_release(&d);
}

static size_t merge(csn_text base, csn_text ours, csn_text theirs, bool diff3, csn_buf *out)
{
    csn_merge3_opts opts = {.ours = "a", .theirs = "b", .base = "c", .diff3 = diff3};
    csn_merge3_result r = {0};

    csn_buf_init(out, OUT_MAX);
    must(csn_merge3(base, ours, theirs, &opts, out, &r, NULL) == CSN_OK);
    return r.conflicts;
}

static void check_is(csn_text base, csn_text ours, csn_text theirs, csn_text want)
{
    csn_autobuf out;

    must(merge(base, ours, theirs, false, &out) == 0);
    must(csn_text_equal((csn_text){out.data, out.len}, want));
}

static void check_merge(csn_text base, csn_text ours, csn_text theirs, bool diff3)
{
    csn_autobuf one, other;
    size_t n = merge(base, ours, theirs, diff3, &one);
    size_t m = merge(base, theirs, ours, diff3, &other);

    must((n == 0) == (m == 0));
    if (n == 0)
        must(csn_text_equal((csn_text){one.data, one.len}, (csn_text){other.data, other.len}));
    check_is(base, ours, base, ours);
    check_is(base, base, theirs, theirs);
    check_is(base, ours, ours, ours);
}

static void check_patch(csn_text before, csn_text after, unsigned context)
{
    csn_patch_file a = {"a b", S_IFREG | 0644, before}, b = {"\"", S_IFREG | 0644, after};
    csn_patch_stat written = {0}, counted = {0};
    csn_autobuf out;

    csn_buf_init(&out, OUT_MAX);
    must(csn_patch_write(&a, &b, context, &out, &written, NULL) == CSN_OK);
    must(csn_patch_count(&a, &b, &counted, NULL) == CSN_OK);
    must(written.added == counted.added && written.removed == counted.removed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > 16384)
        return 0;
    unsigned flags = *data++;
    size--;
    csn_text base = cut(&data, &size), ours = cut(&data, &size), theirs = cut(&data, &size);
    check_diff(base, ours, flags & 2 ? flags : CSN_DIFF_STEPS_MAX);
    check_diff(ours, theirs, CSN_DIFF_STEPS_MAX);
    check_merge(base, ours, theirs, (flags & 1) != 0);
    check_patch(base, ours, flags >> 4);
    return 0;
}
