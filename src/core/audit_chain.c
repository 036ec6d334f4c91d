/* audit_chain.c: the hash chain between the lines of an audit log, and its head file.
 *
 * A line is one JSON object whose last field is "sha256": the hash of all its bytes without
 * that field. "prev" is the hash of the line before, "seq" counts from 1. The hash covers the
 * text itself, so no other spelling of a line passes. The head file holds the number of lines,
 * the bytes, the last hash and the number of operations in flight; it is created before the
 * log, so a log without head was tampered with. Files are opened relative to an open directory
 * without following symlinks, which could point at another file of this user. */
#include "core/audit_chain.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_read.h"
#include "core/audit_in_flight.h"

#define TAIL     ",\"sha256\":\""
#define TAIL_LEN (sizeof(TAIL) - 1 + 64 + 2) /* including the hash and `"}` */

/* The log x.jsonl has the head x.head; a log with any other name y has the head y.head. */
int csn_audit_place_set(csn_audit_place *p, int dir, const char *file)
{
    size_t len = strlen(file);
    size_t stem = len > 6 && strcmp(file + len - 6, ".jsonl") == 0 ? len - 6 : len;

    if (len == 0 || len + 6 >= sizeof(p->log))
        return ENAMETOOLONG;
    *p = (csn_audit_place){.dir = dir};
    memcpy(p->log, file, len + 1);
    snprintf(p->head, sizeof(p->head), "%.*s.head", (int)stem, file);
    return 0;
}

void csn_audit_place_close(csn_audit_place *p)
{
    if (p->dir >= 0)
        close(p->dir);
    p->dir = -1;
}

int csn_audit_open_at(const csn_audit_place *p, const char *name, int flags)
{
    struct stat st;

    /* O_NONBLOCK: a fifo in place of the log must not block. O_NOATIME (only the owner may use
     * it): a read after each write would update the inode as well. */
    flags |= O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    int fd = openat(p->dir, name, flags | O_NOATIME, 0600);
    if (fd < 0 && errno == EPERM)
        fd = openat(p->dir, name, flags, 0600);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fd;
    close(fd);
    return -EINVAL;
}

/* Refuses every text that csn_audit_head_write cannot have written. */
int csn_audit_head_read(int fd, csn_audit_head *ret)
{
    char text[CSN_AUDIT_HEAD_MAX];
    CSN_CLEANUP(csn_jval_freep) csn_jval *v = NULL;
    csn_audit_head h = {.lines = UINT64_MAX, .bytes = UINT64_MAX};
    const char *hash = NULL;
    ssize_t n = pread(fd, text, sizeof(text), 0);

    if (n < 0)
        return errno;
    csn_status st = csn_json_parse(text, (size_t)n, "head", &v, NULL);
    if (st == CSN_NOMEM)
        return ENOMEM;
    if (st < 0 || csn_jget_u64(v, "lines", &h.lines, NULL) < 0 ||
        csn_jget_u64(v, "bytes", &h.bytes, NULL) < 0 ||
        csn_jget_u64(v, "open", &h.open, NULL) < 0 || /* heads of old logs lack it */
        csn_jget_str(v, "sha256", &hash, NULL) < 0)
        return EBADMSG;
    if (h.lines == UINT64_MAX || h.bytes == UINT64_MAX || !hash ||
        (strlen(hash) != CSN_HASH_HEX - 1 && (hash[0] || h.lines != 0)))
        return EBADMSG;
    memcpy(h.hash, hash, strlen(hash) + 1);
    *ret = h;
    return 0;
}

bool csn_audit_head_is(int fd, const csn_audit_head_text *t)
{
    char text[CSN_AUDIT_HEAD_MAX];

    return t->len > 0 && pread(fd, text, sizeof(text), 0) == (ssize_t)t->len &&
           memcmp(text, t->text, t->len) == 0;
}

static char *put_number(char *to, uint64_t n)
{
    char digits[20];
    size_t at = sizeof(digits);

    do
        digits[--at] = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    return mempcpy(to, digits + at, sizeof(digits) - at);
}

/* Writes with one pwrite: an interrupted writer leaves the old head or the new one. The text
 * always has the same length, so no old bytes remain behind it, and writing it needs no space
 * on a full disk. Every line of the log pays for this function: it does without printf. */
int csn_audit_head_write(int fd, const csn_audit_head *h, csn_audit_head_text *ret)
{
    char *p = put_number(stpcpy(ret->text, "{\"lines\":"), h->lines);

    p = put_number(stpcpy(p, ",\"bytes\":"), h->bytes);
    p = stpcpy(stpcpy(stpcpy(p, ",\"sha256\":\""), h->hash), "\"");
    p = stpcpy(put_number(stpcpy(p, ",\"open\":"), h->open), "}");
    memset(p, ' ', (size_t)(ret->text + CSN_AUDIT_HEAD_SIZE - p));
    ret->text[CSN_AUDIT_HEAD_SIZE - 1] = '\n';
    ssize_t put = pwrite(fd, ret->text, CSN_AUDIT_HEAD_SIZE, 0);
    ret->len = put == CSN_AUDIT_HEAD_SIZE ? CSN_AUDIT_HEAD_SIZE : 0;
    if (put < 0)
        return errno;
    return ret->len ? 0 : EIO;
}

void csn_audit_head_ends(csn_audit_head *h, const csn_audit_line_info *line)
{
    uint64_t ended = line->gap + line->effect;

    h->open -= ended < h->open ? ended : h->open;
}

int csn_audit_line_seal(csn_buf *line, char ret_hash[CSN_HASH_HEX])
{
    csn_hash_bytes(line->data, line->len, ret_hash);
    line->len--; /* drop the closing brace; the seal ends with one */
    return csn_buf_printf(line, TAIL "%s\"}\n", ret_hash);
}

/* Recomputes the hash of a line from its own bytes. */
static bool hash_holds(const char *line, size_t len, char ret_hash[CSN_HASH_HEX])
{
    csn_hash h;

    if (len <= TAIL_LEN || memcmp(line + len - TAIL_LEN, TAIL, sizeof(TAIL) - 1) != 0 ||
        memcmp(line + len - 2, "\"}", 2) != 0)
        return false;
    csn_hash_init(&h);
    csn_hash_add(&h, line, len - TAIL_LEN);
    csn_hash_add(&h, "}", 1);
    csn_hash_hex(&h, ret_hash);
    return memcmp(line + len - 66, ret_hash, 64) == 0;
}

/* Checks the form first, then the hash, then the links, so that the reason is the nearest
 * cause. */
static const char *why_bad(const csn_jval *v, const char *line, size_t len, const char *sandbox,
                           csn_audit_head *after)
{
    char hash[CSN_HASH_HEX];
    const char *prev = NULL, *id = NULL;
    uint64_t seq = 0;

    if (!csn_jval_is_object(v))
        return "the line is not one JSON object";
    if (!hash_holds(line, len, hash))
        return "the line was changed: its hash does not fit";
    if (csn_jget_u64(v, "seq", &seq, NULL) < 0 || csn_jget_str(v, "prev", &prev, NULL) < 0 ||
        csn_jget_str(v, "sandbox", &id, NULL) < 0 || !prev || !id)
        return "the line lacks seq, prev or sandbox";
    if (sandbox && strcmp(id, sandbox) != 0)
        return "the line is another sandbox's";
    if (seq != after->lines + 1)
        return "lines are missing, doubled or out of order: seq does not follow";
    if (strcmp(prev, after->hash) != 0)
        return "the line before was changed or replaced: prev does not fit";
    after->lines++;
    after->bytes += len + 1;
    memcpy(after->hash, hash, sizeof(hash));
    return NULL;
}

static csn_audit_line_info line_info(const csn_jval *v)
{
    csn_audit_line_info info = {.effect = false};
    const char *op = NULL;

    if (csn_jget_str(v, "op", &op, NULL) < 0 || !op)
        return info;
    info.effect = csn_audit_has_effect(op);
    if (strcmp(op, CSN_AUDIT_GAP) == 0)
        (void)csn_jget_u64(v, "count", &info.gap, NULL);
    return info;
}

int csn_audit_line_check(const char *line, size_t len, const char *sandbox,
                         csn_audit_head *after, csn_audit_line_info *ret_info,
                         const char **ret_reason)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *v = NULL;

    if (csn_json_parse(line, len, "line", &v, NULL) == CSN_NOMEM)
        return ENOMEM;
    *ret_reason = why_bad(v, line, len, sandbox, after);
    if (!*ret_reason)
        *ret_info = line_info(v);
    return 0;
}
