/* originals.c: writes and reads the record of one path. */
#include "layers/originals.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "layers/commit_internal.h"
#include "layers/entry.h"
#include "layers/originals_internal.h"
#include "os/atomic.h"
#include "os/tree.h"

#define MAGIC   "CSNORIG"
#define VERSION 1u
#define KNOWN   (1u << 0)
#define CONTENT (1u << 1)
#define TRIES   8 /* while the host writes the file */

typedef struct header {
    char magic[8];
    uint32_t version, flags, mode, reserved;
    uint64_t dev, ino, nlink, size;
    int64_t mtime_s, mtime_ns, ctime_s, ctime_ns;
    uint64_t content; /* bytes that follow */
} header;

_Static_assert(sizeof(header) == 96, "a format on disk");

void csn_original_name(const char *path, char ret[CSN_HASH_HEX])
{
    csn_hash_bytes(path, strlen(path), ret);
}

bool csn_original_has(int dir, const char *name)
{
    return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- writing ---- */

static header header_of(const csn_change_side *s, unsigned flags, size_t content)
{
    return (header){.magic = MAGIC,
                    .version = VERSION,
                    .flags = flags,
                    .mode = s->mode,
                    .dev = s->dev,
                    .ino = s->ino,
                    .nlink = s->nlink,
                    .size = s->size,
                    .mtime_s = s->mtime.tv_sec,
                    .mtime_ns = s->mtime.tv_nsec,
                    .ctime_s = s->ctime.tv_sec,
                    .ctime_ns = s->ctime.tv_nsec,
                    .content = content};
}

static int write_record(int dir, const char *name, const header *h, const void *content,
                        bool fresh)
{
    csn_temp t;
    int rc = csn_temp_create(&t, dir, 0600);

    if (rc == 0)
        rc = csn_write_full(t.fd, h, sizeof(*h), NULL);
    if (rc == 0 && h->content > 0)
        rc = csn_write_full(t.fd, content, h->content, NULL);
    if (rc == 0)
        rc = csn_temp_publish(&t, dir, name, fresh ? CSN_TEMP_EXCL : 0);
    csn_temp_drop(&t, dir);
    return rc == -EEXIST ? 0 : rc; /* another process was first */
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* A file system that keeps whole seconds rounds a later time down. */
static bool is_before(struct timespec t, struct timespec limit)
{
    if (t.tv_nsec == 0)
        return t.tv_sec + 2 < limit.tv_sec;
    return t.tv_sec < limit.tv_sec || (t.tv_sec == limit.tv_sec && t.tv_nsec < limit.tv_nsec);
}

/* The content of a regular file whose state is *s. 1: it has been read; 0: it is not kept;
 * -EAGAIN: the file is another one, or was written to. */
static int read_content(int base_dir, const char *last, const csn_change_side *s, csn_buf *ret)
{
    const csn_entry_tree t = {base_dir, false};
    csn_change_side now = {0};

    if (!S_ISREG(s->mode) || s->size > CSN_ORIGINAL_MAX)
        return 0;
    csn_autofd int at = csn_entry_open(&t, base_dir, last, O_PATH);
    csn_autofd int fd = at < 0 ? at : csn_entry_reopen(&t, at, O_RDONLY);
    if (fd < 0)
        return fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM ? fd : 0;
    int rc = csn_content_read(fd, CSN_ORIGINAL_MAX, ret);
    if (rc == -EFBIG)
        return -EAGAIN;
    if (rc == 0)
        rc = csn_side_read(base_dir, last, &now);
    if (rc < 0)
        return rc;
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    bool same = st.st_ino == s->ino && now.ino == s->ino && now.dev == s->dev &&
                now.size == s->size && ret->len == s->size && same_time(now.ctime, s->ctime);
    return same ? 1 : -EAGAIN;
}

/* A write in the same tick of the clock as the last one does not change the times. If that is
 * still possible, the record gets none, and comparisons must use the content. */
int csn_original_save(int dir, const char *record, int base_dir, const char *last,
                      const struct timespec *limit, bool fresh)
{
    int rc = -EAGAIN;

    for (int i = 0; rc == -EAGAIN && i < TRIES; i++) {
        csn_autobuf content;
        csn_change_side s;
        struct timespec now;
        csn_buf_init(&content, 0);
        if (clock_gettime(CLOCK_REALTIME_COARSE, &now) < 0)
            return -errno;
        rc = csn_side_read(base_dir, last, &s);
        if (rc < 0)
            return rc;
        if (limit && !S_ISREG(s.mode))
            return -ENOENT;
        if (limit && !is_before(s.ctime, *limit))
            break;
        rc = read_content(base_dir, last, &s, &content);
        if (rc < 0)
            continue;
        if (rc > 0 && !is_before(s.ctime, now))
            s.ctime = s.mtime = (struct timespec){0};
        header h = header_of(&s, KNOWN | (rc ? CONTENT : 0), rc ? content.len : 0);
        return write_record(dir, record, &h, content.data, fresh);
    }
    if (rc < 0 && rc != -EAGAIN)
        return rc;
    header unknown = header_of(&(csn_change_side){0}, 0, 0);
    return write_record(dir, record, &unknown, NULL, fresh);
}

/* ---- single paths ---- */

static bool is_gone(int rc)
{
    return rc == -ENOENT || rc == -ENOTDIR || rc == -ELOOP || rc == -ESTALE;
}

int csn_original_take(int dir, int base, const char *path)
{
    csn_commit_dir parent = CSN_COMMIT_DIR(base);
    char record[CSN_HASH_HEX];
    csn_change_side s;
    const char *last;

    csn_original_name(path, record);
    if (csn_original_has(dir, record))
        return 0;
    int at = csn_commit_dir_above(&parent, path, &last);
    int rc = at < 0 ? at : csn_side_read(at, last, &s);
    if (rc == 0 && S_ISREG(s.mode))
        rc = csn_original_save(dir, record, at, last, NULL, true);
    csn_commit_dir_release(&parent);
    return is_gone(rc) ? 0 : rc;
}

bool csn_original_is_current(const csn_original *o, const csn_change_side *now)
{
    const csn_change_side *was = &o->side;

    if (was->mode != 0 && was->mtime.tv_sec == 0 && was->mtime.tv_nsec == 0)
        return was->mode == now->mode && was->ino == now->ino && was->size == now->size;
    return csn_side_same(was, now);
}

int csn_original_replace(int dir, int base, const char *path)
{
    csn_commit_dir parent = CSN_COMMIT_DIR(base);
    const header absent = header_of(&(csn_change_side){0}, KNOWN, 0);
    char record[CSN_HASH_HEX];
    const char *last;

    csn_original_name(path, record);
    int at = csn_commit_dir_above(&parent, path, &last);
    int rc = is_gone(at) ? write_record(dir, record, &absent, NULL, false) : at;
    if (at >= 0)
        rc = csn_original_save(dir, record, at, last, NULL, false);
    csn_commit_dir_release(&parent);
    return rc;
}

int csn_originals_clear(int dir)
{
    csn_autofd int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? -errno : csn_tree_empty(fd);
}

/* ---- reading ---- */

static ssize_t read_full(int fd, void *buf, size_t len)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = read(fd, (char *)buf + done, len - done);
        if (n == 0)
            break;
        if (n > 0)
            done += (size_t)n;
        else if (errno != EINTR)
            return -errno;
    }
    return (ssize_t)done;
}

/* The content alone: readers of it begin at offset 0. */
static int content_fd(int fd, size_t len)
{
    csn_autofd int copy = memfd_create("csn-original", MFD_CLOEXEC);
    csn_autofree char *buf = malloc(len + 1);

    if (copy < 0)
        return -errno;
    if (!buf)
        return -ENOMEM;
    ssize_t n = read_full(fd, buf, len + 1);
    if (n < 0)
        return (int)n;
    if ((size_t)n != len)
        return -EBADMSG;
    int rc = csn_write_full(copy, buf, len, NULL);
    if (rc == 0 && lseek(copy, 0, SEEK_SET) < 0)
        rc = -errno;
    return rc < 0 ? rc : csn_steal_fd(&copy);
}

static bool is_valid(const header *h)
{
    return memcmp(h->magic, MAGIC, sizeof(h->magic)) == 0 && h->version == VERSION &&
           h->content <= CSN_ORIGINAL_MAX && (h->flags & ~(KNOWN | CONTENT)) == 0 &&
           (!(h->flags & CONTENT) || h->content == h->size);
}

int csn_original_find(int dir, const char *path, csn_original *ret)
{
    char record[CSN_HASH_HEX];
    header h;

    csn_original_name(path, record);
    csn_autofd int fd = openat(dir, record, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT && errno != ELOOP)
        return -errno;
    *ret = (csn_original){.content = -1};
    ssize_t n = fd < 0 ? 0 : read_full(fd, &h, sizeof(h));
    if (n < 0)
        return (int)n;
    if (n != (ssize_t)sizeof(h) || !is_valid(&h) || !(h.flags & KNOWN))
        return 0;
    int content = h.flags & CONTENT ? content_fd(fd, h.content) : -1;
    if (content == -EBADMSG)
        return 0;
    if (content < 0 && (h.flags & CONTENT))
        return content;
    ret->known = true;
    ret->content = content;
    ret->side = (csn_change_side){.mode = h.mode,
                                  .size = h.size,
                                  .dev = h.dev,
                                  .ino = h.ino,
                                  .nlink = h.nlink,
                                  .mtime = {h.mtime_s, h.mtime_ns},
                                  .ctime = {h.ctime_s, h.ctime_ns}};
    return 0;
}
