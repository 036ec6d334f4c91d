/* journal.c: writes and reads the list of operations of a commit.
 *
 * A list is a header, the operations field by field, and the SHA-256 of both. It is written to
 * a temporary name, synchronized and renamed, so a reader finds all of it or nothing. Numbers
 * are in host byte order: a magic number tells another machine's. The store is private to the
 * user; the reader still checks every length, because a damaged list must not act. */
#include "layers/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/pack.h"
#include "os/atomic.h"

#define MAGIC 0x316e726a2d6e7363ull /* "csn-jrn1" */
#define HEX   (CSN_HASH_HEX - 1)

void csn_oplist_release(csn_oplist *l)
{
    free(l->v);
    csn_arena_free(l->arena);
    *l = (csn_oplist){0};
}

csn_op *csn_oplist_add(csn_oplist *l, csn_op_kind kind, const char *path)
{
    if (l->count == l->room) {
        size_t room = l->room ? 2 * l->room : 32;
        csn_op *v = reallocarray(l->v, room, sizeof(*v));
        if (!v)
            return NULL;
        l->v = v;
        l->room = room;
    }
    csn_op *op = &l->v[l->count++];
    *op = (csn_op){.kind = (uint32_t)kind, .path = path};
    return op;
}

void csn_op_temp_name(const csn_oplist *l, const csn_op *op, char ret[CSN_COMMIT_TEMP_SIZE])
{
    snprintf(ret, CSN_COMMIT_TEMP_SIZE, CSN_COMMIT_TEMP "%s-%llu", l->token,
             (unsigned long long)op->number);
}

/* ---- writing ---- */

static void put(csn_buf *b, const void *data, size_t len)
{
    (void)csn_buf_append(b, data, len); /* b->err keeps a failure */
}

static void put_u64(csn_buf *b, uint64_t v)
{
    put(b, &v, sizeof(v));
}

/* As csn_get_str reads it. */
static void put_str(csn_buf *b, const char *s)
{
    uint32_t len = s ? (uint32_t)strlen(s) : UINT32_MAX;

    put(b, &len, sizeof(len));
    if (s)
        put(b, s, (size_t)len + 1);
}

static void put_side(csn_buf *b, const csn_change_side *s)
{
    const uint64_t v[] = {s->mode,
                          s->size,
                          s->dev,
                          s->ino,
                          s->nlink,
                          (uint64_t)s->mtime.tv_sec,
                          (uint64_t)s->mtime.tv_nsec,
                          (uint64_t)s->ctime.tv_sec,
                          (uint64_t)s->ctime.tv_nsec};

    put(b, v, sizeof(v));
}

static void put_op(csn_buf *b, const csn_op *op)
{
    const uint64_t v[] = {op->kind,
                          op->flags,
                          op->number,
                          op->temp_ino,
                          op->mode,
                          op->uid,
                          op->gid,
                          (uint64_t)op->mtime.tv_sec,
                          (uint64_t)op->mtime.tv_nsec,
                          op->attrs_len};

    put(b, v, sizeof(v));
    put_str(b, op->path);
    put_str(b, op->stage);
    put_side(b, &op->host);
    put(b, op->attrs, op->attrs_len);
}

static int sync_dir(int dir)
{
    csn_autofd int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

int csn_journal_save(int store, const char *name, const csn_oplist *l)
{
    csn_autobuf b;
    char hash[CSN_HASH_HEX], temp[64];

    csn_buf_init(&b, CSN_JOURNAL_BYTES_MAX);
    put_u64(&b, MAGIC);
    put_str(&b, l->token);
    put_u64(&b, l->final);
    put_u64(&b, l->count);
    for (size_t i = 0; i < l->count; i++)
        put_op(&b, &l->v[i]);
    if (b.err == 0) {
        csn_hash_bytes(b.data, b.len, hash);
        put(&b, hash, HEX);
    }
    if (b.err != 0)
        return b.err == ENOSPC ? -E2BIG : -b.err;
    snprintf(temp, sizeof(temp), "%s.new", name);
    csn_autofd int fd = openat(
        store, temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);
    int rc = fd < 0 ? -errno : csn_write_full(fd, b.data, b.len, NULL);
    if (rc == 0 && (fsync(fd) < 0 || renameat(store, temp, store, name) < 0))
        rc = -errno;
    if (rc == 0)
        return sync_dir(store);
    if (fd >= 0)
        unlinkat(store, temp, 0);
    return rc;
}

int csn_journal_remove(int store, const char *name)
{
    if (unlinkat(store, name, 0) < 0)
        return errno == ENOENT ? 0 : -errno;
    return sync_dir(store);
}

static const char *const all_lists[] = {CSN_JOURNAL_FINAL ".new", CSN_JOURNAL_FINAL,
                                        CSN_JOURNAL_STAGING ".new", CSN_JOURNAL_STAGING};
#define LISTS (sizeof(all_lists) / sizeof(all_lists[0]))

int csn_journal_remove_all(int store)
{
    /* A staging list of its own would say that nothing was committed. */
    if (renameat(store, CSN_JOURNAL_FINAL, store, CSN_JOURNAL_STAGING) < 0 && errno != ENOENT)
        return -errno;
    for (size_t i = 0; i < LISTS; i++) {
        if (unlinkat(store, all_lists[i], 0) < 0 && errno != ENOENT)
            return -errno;
    }
    return sync_dir(store);
}

bool csn_journal_any(int store)
{
    struct stat st;

    for (size_t i = 0; i < LISTS; i++) {
        if (fstatat(store, all_lists[i], &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT)
            return true;
    }
    return false;
}

/* ---- reading ---- */

static void get_side(csn_unpacker *in, csn_change_side *s)
{
    s->mode = (uint32_t)csn_get_u64(in);
    s->size = csn_get_u64(in);
    s->dev = csn_get_u64(in);
    s->ino = csn_get_u64(in);
    s->nlink = csn_get_u64(in);
    s->mtime.tv_sec = csn_get_i64(in);
    s->mtime.tv_nsec = csn_get_i64(in);
    s->ctime.tv_sec = csn_get_i64(in);
    s->ctime.tv_nsec = csn_get_i64(in);
}

static int get_op(csn_unpacker *in, csn_oplist *l)
{
    csn_op *op = csn_oplist_add(l, CSN_OP_OPEN, NULL);

    if (!op)
        return -ENOMEM;
    op->kind = (uint32_t)csn_get_u64(in);
    op->flags = (uint32_t)csn_get_u64(in);
    op->number = csn_get_u64(in);
    op->temp_ino = csn_get_u64(in);
    op->mode = (uint32_t)csn_get_u64(in);
    op->uid = (uint32_t)csn_get_u64(in);
    op->gid = (uint32_t)csn_get_u64(in);
    op->mtime.tv_sec = csn_get_i64(in);
    op->mtime.tv_nsec = csn_get_i64(in);
    op->attrs_len = csn_get_u64(in);
    op->path = csn_get_str(in, CSN_PATH_MAX, false);
    op->stage = csn_get_str(in, CSN_PATH_MAX, true);
    get_side(in, &op->host);
    op->attrs = csn_get_bytes(in, op->attrs_len);
    if (in->error != 0 || op->kind < CSN_OP_OPEN || op->kind > CSN_OP_FINISH)
        return -EBADMSG;
    return op->kind == CSN_OP_RENAME && !op->stage ? -EBADMSG : 0;
}

static int parse(const char *data, size_t len, csn_oplist *l)
{
    char hash[CSN_HASH_HEX];
    csn_unpacker in;

    if (len < HEX)
        return -EBADMSG;
    csn_hash_bytes(data, len - HEX, hash);
    if (memcmp(hash, data + len - HEX, HEX) != 0)
        return -EBADMSG;
    csn_unpacker_init(&in, data, len - HEX);
    if (csn_get_u64(&in) != MAGIC)
        return -EBADMSG;
    const char *token = csn_get_str(&in, CSN_COMMIT_TOKEN, false);
    l->final = csn_get_u64(&in) != 0;
    uint64_t count = csn_get_u64(&in);
    if (in.error != 0 || strchr(token, '/'))
        return -EBADMSG;
    snprintf(l->token, sizeof(l->token), "%s", token);
    for (uint64_t i = 0; i < count; i++) {
        int rc = get_op(&in, l);
        if (rc < 0)
            return rc;
    }
    return csn_unpacker_end(&in) == 0 ? 0 : -EBADMSG;
}

/* Into the arena, since the operations point into it. */
static int read_all(int fd, csn_arena *arena, char **ret, size_t *ret_len)
{
    struct stat st;
    size_t done = 0;

    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_size < 0 || st.st_size > CSN_JOURNAL_BYTES_MAX)
        return -EBADMSG;
    size_t len = (size_t)st.st_size;
    char *data = csn_arena_alloc(arena, len + 1);
    if (!data)
        return -ENOMEM;
    while (done < len) {
        ssize_t n = read(fd, data + done, len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EBADMSG;
        done += (size_t)n;
    }
    *ret = data;
    *ret_len = len;
    return 0;
}

int csn_journal_load(int store, const char *name, csn_oplist *ret)
{
    csn_oplist l = {.arena = csn_arena_new()};
    char *data = NULL;
    size_t len = 0;
    csn_autofd int fd =
        openat(store, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    int rc = fd < 0 ? -errno : l.arena ? read_all(fd, l.arena, &data, &len) : -ENOMEM;

    if (rc == 0)
        rc = parse(data, len, &l);
    if (rc == 0)
        *ret = l;
    else
        csn_oplist_release(&l);
    return rc;
}
