/* commit_compare.c: the three-way comparison of one path: original, host, sandbox.
 *
 * A side that did not change gives way to the other one. If both changed, text is merged, and
 * everything else is a conflict. Where the original is not known, the ctime of the host's entry
 * tells whether the host changed it; a process cannot set that time. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "layers/commit_internal.h"
#include "text/merge3.h"

#define PERMISSIONS 01777 /* set-id bits are never committed, so they do not differ */
#define HOST_LABEL  "the host's version"

typedef struct comparison {
    const csn_commit_request *r;
    csn_arena *arena;
    csn_commit_item *item;
    const csn_layer_change *c;
    int dir;          /* of the host's entry, or -1 */
    const char *name; /* in it */
    csn_original original;
    int host, sandbox; /* regular files, once they are needed; else -1 */
    csn_error **err;
} comparison;

static csn_status decided(comparison *k, csn_commit_verdict verdict, const char *why)
{
    k->item->verdict = verdict;
    k->item->why = why;
    return CSN_OK;
}

static csn_status conflict(comparison *k, const char *why)
{
    return decided(k, CSN_COMMIT_CONFLICT, why);
}

static bool same_type(uint32_t a, uint32_t b)
{
    return (a & S_IFMT) == (b & S_IFMT);
}

static bool same_permissions(uint32_t a, uint32_t b)
{
    return (a & PERMISSIONS) == (b & PERMISSIONS);
}

/* ---- content ---- */

/* Opens both versions. CSN_OK with a verdict set: the host's cannot be read. */
static csn_status open_files(comparison *k)
{
    if (k->sandbox < 0 && S_ISREG(k->c->after.mode)) {
        int fd = csn_layer_open(k->r->stack, k->c, true);
        if (fd == -ESTALE)
            return csn_commit_stale(k->err, "the sandbox", k->c->path);
        if (fd < 0)
            return csn_commit_fail(k->err, -fd, "read the sandbox's", k->c->path);
        k->sandbox = fd;
    }
    if (k->host < 0 && S_ISREG(k->item->host.mode))
        k->host =
            openat(k->dir, k->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    return CSN_OK;
}

/* *ret: are both readable and equal? */
static csn_status equal_files(comparison *k, int a, int b, bool *ret)
{
    int rc = a < 0 || b < 0 ? 0 : csn_content_equal(a, b);

    *ret = rc == 1;
    return rc < 0 ? csn_commit_fail(k->err, -rc, "read", k->c->path) : CSN_OK;
}

static csn_status equal_links(comparison *k, bool *ret)
{
    char text[CSN_PATH_MAX + 1];
    csn_autofree char *sandbox = csn_layer_readlink(k->r->stack, k->c, true);
    ssize_t n = readlinkat(k->dir, k->name, text, sizeof(text) - 1);

    if (!sandbox || n < 0)
        return csn_commit_fail(k->err, errno, "read the link", k->c->path);
    text[n] = '\0';
    *ret = strcmp(text, sandbox) == 0;
    return CSN_OK;
}

/* ---- who changed it ---- */

static bool later(struct timespec a, struct timespec b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

static csn_status changed_since_original(comparison *k, bool *ret)
{
    const csn_change_side *was = &k->original.side, *now = &k->item->host;
    bool equal = false;

    *ret = !csn_side_same(was, now);
    if (S_ISDIR(was->mode) && S_ISDIR(now->mode))
        *ret = !same_permissions(was->mode, now->mode);
    /* Written again with the same content, or restored from a copy. */
    if (!*ret || !S_ISREG(was->mode) || !S_ISREG(now->mode) || k->original.content < 0 ||
        !same_permissions(was->mode, now->mode))
        return CSN_OK;
    csn_status st = open_files(k);
    if (st == CSN_OK)
        st = equal_files(k, k->host, k->original.content, &equal);
    *ret = !equal;
    return st;
}

static csn_status host_changed(comparison *k, bool *ret)
{
    const csn_change_side *now = &k->item->host;
    uint32_t before = k->c->before.mode;

    /* The contents of a directory are compared path by path. */
    if (S_ISDIR(now->mode) && S_ISDIR(before) && !S_ISDIR(k->c->after.mode)) {
        *ret = false;
        return CSN_OK;
    }
    if (k->original.known)
        return changed_since_original(k, ret);
    if (now->mode == 0 || before == 0)
        *ret = now->mode != before;
    else if (S_ISDIR(now->mode) && S_ISDIR(before))
        *ret = false; /* its ctime changes with its contents */
    else
        *ret = later(now->ctime, k->r->since);
    return CSN_OK;
}

/* Has the host what the sandbox has? */
static csn_status is_same(comparison *k, bool *ret)
{
    uint32_t host = k->item->host.mode, sandbox = k->c->after.mode;
    csn_status st = CSN_OK;

    *ret = same_type(host, sandbox);
    if (!*ret || host == 0 || S_ISDIR(host))
        return CSN_OK;
    if (S_ISLNK(host))
        return equal_links(k, ret);
    *ret = S_ISREG(host) && same_permissions(host, sandbox);
    if (*ret)
        st = open_files(k);
    return *ret && st == CSN_OK ? equal_files(k, k->host, k->sandbox, ret) : st;
}

/* ---- both changed a file ---- */

/* The permissions after both changes. false: they conflict. */
static bool merge_modes(const comparison *k, uint32_t *ret)
{
    uint32_t host = k->item->host.mode, sandbox = k->c->after.mode;
    bool known = k->original.known && k->original.side.mode != 0;
    uint32_t was = k->original.side.mode;

    *ret = sandbox & PERMISSIONS;
    if (same_permissions(host, sandbox) || (known && same_permissions(host, was)))
        return true;
    *ret = host & PERMISSIONS;
    return known && same_permissions(sandbox, was);
}

static bool has_nul(const csn_buf *b)
{
    return b->len > 0 && memchr(b->data, '\0', b->len) != NULL;
}

static csn_text text_of(const csn_buf *b)
{
    return (csn_text){.data = b->data, .len = b->len};
}

/* The line of the first conflict in the merged text, from 1. */
static size_t conflict_line(const csn_buf *merged)
{
    static const char marker[] = "<<<<<<< " HOST_LABEL;
    const char *at =
        merged->len ? memmem(merged->data, merged->len, marker, sizeof(marker) - 1) : NULL;
    size_t line = 1;

    for (const char *p = merged->data; at && p < at; p++)
        line += *p == '\n';
    return line;
}

static csn_status merge_text(comparison *k, csn_buf texts[3], uint32_t mode)
{
    const csn_merge3_opts opts = {
        .ours = HOST_LABEL, .theirs = "the sandbox's version", .base = "the original"};
    csn_merge3_result result = {0};
    csn_autobuf merged;

    csn_buf_init(&merged, 4 * (size_t)CSN_MERGE_TEXT_MAX);
    csn_status st = csn_merge3(text_of(&texts[0]), text_of(&texts[1]), text_of(&texts[2]),
                               &opts, &merged, &result, k->err);
    if (st != CSN_OK)
        return st;
    if (result.conflicts > 0) {
        const char *why = csn_arena_printf(
            k->arena, "both changed the same lines: %zu %s, the first at line %zu",
            result.conflicts, result.conflicts == 1 ? "place" : "places",
            conflict_line(&merged));
        return why ? conflict(k, why) : csn_fail(k->err, CSN_NOMEM, "out of memory");
    }
    if (csn_text_equal(text_of(&merged), text_of(&texts[1])) &&
        same_permissions(mode, k->item->host.mode))
        return decided(k, CSN_COMMIT_SAME, "only the host changed it");
    k->item->merged = merged;
    csn_buf_init(&merged, 0);
    k->item->mode = mode;
    return decided(k, CSN_COMMIT_MERGE, "merged with the host's changes");
}

static csn_status read_and_merge(comparison *k, uint32_t mode)
{
    static const char *const binary[] = {
        "both changed it, and the original is binary",
        "both changed it, and the host's version is binary",
        "both changed it, and the sandbox's version is binary"};
    const int from[] = {k->original.content, k->host, k->sandbox};
    csn_buf texts[3] = {{0}};
    csn_status st = CSN_OK;
    bool done = false;

    for (size_t i = 0; !done && i < 3; i++) {
        int rc = csn_content_read(from[i], CSN_MERGE_TEXT_MAX, &texts[i]);
        done = rc < 0 || has_nul(&texts[i]);
        if (rc == -EFBIG)
            st = conflict(k, "both changed it, and it is too large to be merged");
        else if (rc < 0)
            st = csn_commit_fail(k->err, -rc, "read", k->c->path);
        else if (done)
            st = conflict(k, binary[i]);
    }
    if (!done)
        st = merge_text(k, texts, mode);
    for (size_t i = 0; i < 3; i++)
        csn_buf_release(&texts[i]);
    return st;
}

static csn_status both_changed_file(comparison *k)
{
    bool equal = false;
    uint32_t mode;
    csn_status st = open_files(k);

    if (st != CSN_OK)
        return st;
    if (k->host < 0)
        return conflict(k, "both changed it, and the host's version cannot be read");
    if (!merge_modes(k, &mode))
        return conflict(k, k->original.known
                               ? "both changed its mode"
                               : "its mode differs, and the original is not known");
    st = equal_files(k, k->host, k->sandbox, &equal);
    if (st != CSN_OK)
        return st;
    if (equal)
        return decided(
            k, same_permissions(mode, k->item->host.mode) ? CSN_COMMIT_SAME : CSN_COMMIT_APPLY,
            NULL);
    if (k->original.known && k->original.side.mode == 0)
        return conflict(k, "both added it, with different content");
    if (!k->original.known || k->original.content < 0)
        return conflict(k, k->c->before.mode == 0
                               ? "the host has added another file"
                               : "both changed it, and the original is not known");
    st = equal_files(k, k->sandbox, k->original.content, &equal);
    if (st == CSN_OK && equal && same_permissions(mode, k->item->host.mode))
        return decided(k, CSN_COMMIT_SAME, "only the host changed it");
    return st == CSN_OK ? read_and_merge(k, mode) : st;
}

static csn_status both_changed(comparison *k)
{
    uint32_t host = k->item->host.mode, sandbox = k->c->after.mode;

    if (host == 0)
        return conflict(k, "the host deleted it");
    if (S_ISDIR(host) && !S_ISDIR(sandbox)) {
        k->item->stuck = true; /* the directory may hold anything */
        return conflict(k, "the host has a directory there");
    }
    if (sandbox == 0)
        return conflict(k, "the sandbox deleted it, and the host changed it");
    if (S_ISREG(host) && S_ISREG(sandbox))
        return both_changed_file(k);
    if (S_ISDIR(host))
        return conflict(k, "both changed the mode of the directory");
    if (S_ISLNK(host) && S_ISLNK(sandbox))
        return conflict(k, "both changed where the link points");
    return conflict(k, S_ISLNK(host) ? "the host has a link there"
                                     : "the host has a file of another kind there");
}

static csn_status compare(comparison *k)
{
    uint32_t sandbox = k->c->after.mode;
    bool changed = false, same = false;

    if (sandbox != 0 && !S_ISREG(sandbox) && !S_ISDIR(sandbox) && !S_ISLNK(sandbox))
        return decided(k, CSN_COMMIT_KEEP, "sockets, fifos and devices are not committed");
    csn_status st = host_changed(k, &changed);
    if (st != CSN_OK)
        return st;
    if (!changed)
        return decided(k, CSN_COMMIT_APPLY, NULL);
    st = is_same(k, &same);
    if (st != CSN_OK)
        return st;
    if (same && S_ISDIR(sandbox) && k->original.known && k->original.side.mode != 0 &&
        !same_permissions(sandbox, k->item->host.mode))
        same = false;
    if (same)
        return decided(k, CSN_COMMIT_SAME,
                       sandbox != 0 && !same_permissions(sandbox, k->item->host.mode) &&
                               !S_ISLNK(sandbox)
                           ? "both added the directory; the host's mode stays"
                           : NULL);
    return both_changed(k);
}

csn_status csn_item_compare(const csn_commit_request *r, csn_arena *arena,
                            csn_commit_item *item, int dir, const char *name, csn_error **err)
{
    comparison k = {.r = r,
                    .arena = arena,
                    .item = item,
                    .c = item->change,
                    .dir = dir,
                    .name = name,
                    .original = {.content = -1},
                    .host = -1,
                    .sandbox = -1,
                    .err = err};
    csn_status st = CSN_OK;

    if (r->original)
        st = r->original(r->ctx, k.c, &k.original, err);
    if (st == CSN_OK)
        st = compare(&k);
    csn_closep(&k.original.content);
    csn_closep(&k.host);
    csn_closep(&k.sandbox);
    return st;
}
