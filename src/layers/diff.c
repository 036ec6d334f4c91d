/* diff.c: reads both sides of a change. Commands decide about size and content of theirs: at
 * most CSN_DIFF_FILE_MAX bytes of a side are in memory, larger files are hashed as a stream. */
#include "layers/diff.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/path.h"
#include "text/patch.h"

#define CHUNK (256u * 1024u)

/* One side. Neither a file nor a link: all zero. */
typedef struct content {
    bool exists;
    bool opaque;   /* too large, or not readable: there is no text */
    uint64_t size; /* as read */
    char hash[CSN_HASH_HEX];
    csn_buf text;
} content;

typedef struct contents {
    content before, after;
} contents;

static void contents_release(contents *c)
{
    csn_buf_release(&c->before.text);
    csn_buf_release(&c->after.text);
}

static csn_status fail_on(const csn_layer_change *c, int errnum, csn_error **err)
{
    csn_autofree char *shown = csn_path_printable(c->path);

    if (errnum == ESTALE || errnum == ENOENT)
        return csn_fail(err, CSN_UNAVAILABLE, "%s changed while it was read: try again",
                        shown ? shown : c->path);
    return csn_fail_errno(err, errnum, "read %s", shown ? shown : c->path);
}

/* Reads to the end, as far as it is needed: 0 or errno. */
static int read_text(int fd, bool want_hash, content *ret)
{
    csn_autofree char *buf = malloc(CHUNK);
    csn_hash h;

    if (!buf)
        return ENOMEM;
    csn_hash_init(&h);
    for (;;) {
        ssize_t n = read(fd, buf, CHUNK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        if (n == 0)
            break;
        ret->size += (uint64_t)n;
        if (want_hash)
            csn_hash_add(&h, buf, (size_t)n);
        if (!ret->opaque && csn_buf_append(&ret->text, buf, (size_t)n) == ENOSPC) {
            csn_buf_release(&ret->text);
            ret->opaque = true;
        }
        if (ret->text.err == ENOMEM)
            return ENOMEM;
        if (ret->opaque && !want_hash)
            break;
    }
    if (want_hash)
        csn_hash_hex(&h, ret->hash);
    return 0;
}

static int read_link(const csn_layer_stack *s, const csn_layer_change *c, bool after,
                     content *ret)
{
    csn_autofree char *text = csn_layer_readlink(s, c, after);

    if (!text)
        return errno;
    ret->size = strlen(text);
    csn_hash_bytes(text, ret->size, ret->hash);
    return csn_buf_append(&ret->text, text, ret->size);
}

static int read_side(const csn_layer_stack *s, const csn_layer_change *c, bool after,
                     bool want_hash, content *ret)
{
    const csn_change_side *side = after ? &c->after : &c->before;

    csn_buf_init(&ret->text, CSN_DIFF_FILE_MAX);
    ret->exists = S_ISREG(side->mode) || S_ISLNK(side->mode);
    if (!ret->exists)
        return 0;
    if (S_ISLNK(side->mode))
        return read_link(s, c, after, ret);
    csn_autofd int fd = csn_layer_open(s, c, after);
    if (fd == -EACCES && !after) {
        ret->opaque = true;
        ret->size = side->size;
        return 0;
    }
    ret->opaque = side->size > CSN_DIFF_FILE_MAX;
    return fd < 0 ? -fd : read_text(fd, want_hash, ret);
}

static csn_status read_both(const csn_layer_stack *s, const csn_layer_change *c, bool want_hash,
                            contents *ret, csn_error **err)
{
    *ret = (contents){0};
    int r = read_side(s, c, false, want_hash, &ret->before);
    r = r != 0 ? r : read_side(s, c, true, want_hash, &ret->after);
    if (r == 0)
        return CSN_OK;
    contents_release(ret);
    return fail_on(c, r, err);
}

static csn_text text_of(const content *c)
{
    return (csn_text){c->text.data, c->text.len};
}

static bool has_nul(const content *c)
{
    return c->exists && csn_text_is_binary(text_of(c));
}

static bool is_binary(const contents *c)
{
    return c->before.opaque || c->after.opaque || has_nul(&c->before) || has_nul(&c->after);
}

static const csn_patch_file *patch_file(const csn_layer_change *c, const content *side,
                                        uint32_t mode, csn_patch_file *ret)
{
    *ret = (csn_patch_file){.path = c->path, .mode = mode, .content = text_of(side)};
    return side->exists ? ret : NULL;
}

csn_status csn_diff_facts_read(const csn_layer_stack *s, const csn_layer_change *c,
                               unsigned want, csn_diff_facts *ret, csn_error **err)
{
    CSN_CLEANUP(contents_release) contents both = {0};
    csn_patch_file a, b;
    csn_patch_stat stat = {0};
    csn_status st = read_both(s, c, want & CSN_FACTS_HASHES, &both, err);

    if (st != CSN_OK)
        return st;
    csn_diff_facts facts = {.binary = is_binary(&both)};
    const csn_patch_file *before = patch_file(c, &both.before, c->before.mode, &a);
    const csn_patch_file *after = patch_file(c, &both.after, c->after.mode, &b);
    if ((want & CSN_FACTS_LINES) && !facts.binary && (before || after))
        st = csn_patch_count(before, after, &stat, err);
    if (st != CSN_OK)
        return st;
    facts.added = stat.added;
    facts.removed = stat.removed;
    if (want & CSN_FACTS_HASHES) {
        memcpy(facts.before_hash, both.before.hash, sizeof(facts.before_hash));
        memcpy(facts.after_hash, both.after.hash, sizeof(facts.after_hash));
    }
    *ret = facts;
    return CSN_OK;
}

/* ---- patches ---- */

static unsigned git_mode(uint32_t mode)
{
    return S_ISLNK(mode) ? 0120000 : mode & 0100 ? 0100755 : 0100644;
}

static void put_side(csn_buf *out, const char *prefix, const char *path, const content *side)
{
    if (side->exists)
        (void)csn_patch_put_path(out, prefix, path);
    else
        (void)csn_buf_puts(out, "/dev/null");
}

static void put_hash(csn_buf *out, const char *which, const content *side)
{
    if (side->exists && side->hash[0])
        (void)csn_buf_printf(out, "# %s: %llu bytes, sha256 %s\n", which,
                             (unsigned long long)side->size, side->hash);
    else if (side->exists)
        (void)csn_buf_printf(out, "# %s: %llu bytes, not readable\n", which,
                             (unsigned long long)side->size);
}

/* As csn_patch_write does for binary contents, for those that are not in memory. */
static void put_by_hash(csn_buf *out, const csn_layer_change *c, const contents *both)
{
    unsigned old = git_mode(c->before.mode), new = git_mode(c->after.mode);

    (void)csn_buf_puts(out, "diff --git ");
    (void)csn_patch_put_path(out, "a/", c->path);
    (void)csn_buf_putc(out, ' ');
    (void)csn_patch_put_path(out, "b/", c->path);
    (void)csn_buf_putc(out, '\n');
    if (!both->before.exists)
        (void)csn_buf_printf(out, "new file mode %o\n", new);
    else if (!both->after.exists)
        (void)csn_buf_printf(out, "deleted file mode %o\n", old);
    else if (old != new)
        (void)csn_buf_printf(out, "old mode %o\nnew mode %o\n", old, new);
    (void)csn_buf_puts(out, "index 0000000..0000000\nBinary files ");
    put_side(out, "a/", c->path, &both->before);
    (void)csn_buf_puts(out, " and ");
    put_side(out, "b/", c->path, &both->after);
    (void)csn_buf_puts(out, " differ\n");
    put_hash(out, "old", &both->before);
    put_hash(out, "new", &both->after);
}

static csn_status write_by_hash(const csn_layer_stack *s, const csn_layer_change *c,
                                csn_buf *out, csn_error **err)
{
    CSN_CLEANUP(contents_release) contents both = {0};
    csn_autobuf patch;
    csn_status st = read_both(s, c, true, &both, err);

    csn_buf_init(&patch, out->max);
    if (st != CSN_OK)
        return st;
    put_by_hash(&patch, c, &both);
    int e = patch.err ? patch.err : csn_buf_append(out, patch.data, patch.len);
    if (e == ENOSPC)
        return csn_fail(err, CSN_TOO_LARGE, "patch: %s: the patch would be too large", c->path);
    return e ? csn_fail(err, CSN_NOMEM, "patch: %s: no memory", c->path) : CSN_OK;
}

csn_status csn_diff_patch_write(const csn_layer_stack *s, const csn_layer_change *c,
                                unsigned context, csn_buf *out, csn_error **err)
{
    CSN_CLEANUP(contents_release) contents both = {0};
    csn_patch_file a, b;

    /* Contents are equal: only the modes decide, and large files need not be read. */
    if (c->kind == CSN_CHANGE_META) {
        both.before.exists = both.after.exists = S_ISREG(c->after.mode);
    } else {
        csn_status st = read_both(s, c, false, &both, err);
        if (st != CSN_OK)
            return st;
    }
    if (both.before.opaque || both.after.opaque)
        return write_by_hash(s, c, out, err);
    const csn_patch_file *before = patch_file(c, &both.before, c->before.mode, &a);
    const csn_patch_file *after = patch_file(c, &both.after, c->after.mode, &b);
    if (!before && !after)
        return CSN_OK;
    return csn_patch_write(before, after, context, out, NULL, err);
}

csn_status csn_diff_patch_write_all(const csn_layer_stack *s, const csn_layer_changes *c,
                                    unsigned context, csn_buf *out, csn_error **err)
{
    size_t len = out->len;

    for (size_t i = 0; i < c->count; i++) {
        csn_status st = csn_diff_patch_write(s, &c->v[i], context, out, err);
        if (st == CSN_OK)
            continue;
        out->len = len;
        if (out->data)
            out->data[len] = '\0';
        return st;
    }
    return CSN_OK;
}
