/* keeper_record.c: writes and reads the file that names the keeper of a detached sandbox, and
 * tests whether that keeper lives.
 *
 * Only the user can write to the directory, so the file is trusted; it is nevertheless read
 * with bounds, because a crash or a full disk may have left a part of it. */
#include "runtime/keeper_record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json_read.h"
#include "base/json_write.h"
#include "base/strv.h"
#include "base/utf8.h"
#include "keeper/protocol.h"
#include "os/atomic.h"
#include "os/statedir.h"

#define TEXT_MAX (1u << 20)

void csn_keeper_record_release(csn_keeper_record *r)
{
    csn_strv_free(CSN_STEAL(r->dirs));
}

/* The keeper holds the lock through a descriptor that is open for reading: with one for writing
 * the file system could not be remounted read-only. */
int csn_keeper_record_create(int dir)
{
    csn_autofd int made = openat(dir, CSN_STATE_KEEPER,
                                 O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    csn_autofd int fd =
        made < 0 ? -1 : openat(dir, CSN_STATE_KEEPER, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0)
        return -errno;
    /* A file system without locks: the pid decides, see csn_keeper_record_life. */
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return -EBUSY;
    return csn_steal_fd(&fd);
}

/* ---- format ---- */

static void put_process(csn_json *j, const char *key, const csn_process_id *p)
{
    csn_json_key(j, key);
    csn_json_object(j);
    csn_json_kint(j, "pid", p->pid);
    csn_json_kuint(j, "start", p->start);
    csn_json_object_end(j);
}

static void put_dirs(csn_json *j, const char *const *dirs)
{
    csn_json_key(j, "dirs");
    csn_json_array(j);
    for (size_t i = 0; dirs && dirs[i]; i++) {
        if (!csn_utf8_valid(dirs[i], strlen(dirs[i])) && j->err == 0)
            j->err = EILSEQ;
        csn_json_str(j, dirs[i]);
    }
    csn_json_array_end(j);
}

static int encode(const csn_keeper_record *r, csn_buf *text)
{
    csn_json j;

    csn_json_begin(&j, text);
    csn_json_object(&j);
    csn_json_kstr(&j, "version", r->version);
    csn_json_kuint(&j, "protocol", r->protocol);
    csn_json_kint(&j, "pid", r->keeper.pid);
    csn_json_kuint(&j, "start", r->keeper.start);
    csn_json_kstr(&j, "boot", r->host.boot);
    csn_json_kstr(&j, "host", r->host.name);
    csn_json_kuint(&j, "pid_ns", r->host.pid_ns);
    csn_json_kuint(&j, "mount_ns", csn_host_mount_ns()); /* for people */
    put_process(&j, "holder", &r->holder);
    put_process(&j, "gateway", &r->gateway);
    csn_json_kint(&j, "sock_dev", (int64_t)r->sock_dev); /* the reader takes no more */
    csn_json_kint(&j, "sock_ino", (int64_t)r->sock_ino);
    put_dirs(&j, (const char *const *)r->dirs);
    csn_json_object_end(&j);
    return csn_json_end(&j);
}

int csn_keeper_record_write(int dir, const csn_keeper_record *r)
{
    csn_autofd int fd = openat(dir, CSN_STATE_KEEPER, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    csn_autobuf text;

    csn_buf_init(&text, TEXT_MAX);
    if (fd < 0)
        return -errno;
    int e = encode(r, &text);
    return e != 0 ? -e : csn_write_full(fd, text.data, text.len, NULL);
}

static bool get_text(const csn_jval *v, const char *key, char *ret, size_t size)
{
    const char *s = NULL;

    if (csn_jget_str(v, key, &s, NULL) < 0 || !s || strlen(s) >= size)
        return false;
    memcpy(ret, s, strlen(s) + 1);
    return true;
}

static bool get_number(const csn_jval *v, const char *key, uint64_t *ret)
{
    int64_t n = 0;

    if (csn_jget_i64(v, key, &n, NULL) < 0)
        return false;
    *ret = (uint64_t)n;
    return true;
}

static bool get_process(const csn_jval *v, csn_process_id *ret)
{
    return csn_jget_i64(v, "pid", &ret->pid, NULL) == CSN_OK &&
           get_number(v, "start", &ret->start);
}

static int get_dirs(const csn_jval *dirs, char ***ret)
{
    for (size_t i = 0; dirs && i < csn_jval_count(dirs); i++) {
        const char *s = csn_jval_string(csn_jval_at(dirs, i));
        if (!s)
            return -EBADMSG;
        if (csn_strv_push(ret, s) != 0)
            return -ENOMEM;
    }
    return 0;
}

/* Members that a later version adds are ignored, so that it can still be named and ended. 0,
 * -EBADMSG or -ENOMEM. */
static int decode(const csn_jval *v, csn_keeper_record *r)
{
    const csn_jval *holder = csn_jval_get(v, "holder"), *gateway = csn_jval_get(v, "gateway");
    bool good =
        get_process(v, &r->keeper) && holder && get_process(holder, &r->holder) &&
        (!gateway || get_process(gateway, &r->gateway)) &&
        get_text(v, "version", r->version, sizeof(r->version)) &&
        get_text(v, "boot", r->host.boot, sizeof(r->host.boot)) &&
        get_text(v, "host", r->host.name, sizeof(r->host.name)) &&
        get_number(v, "protocol", &r->protocol) && get_number(v, "pid_ns", &r->host.pid_ns) &&
        get_number(v, "sock_dev", &r->sock_dev) && get_number(v, "sock_ino", &r->sock_ino);

    return good ? get_dirs(csn_jval_get(v, "dirs"), &r->dirs) : -EBADMSG;
}

int csn_keeper_record_read(int dir, csn_keeper_record *ret)
{
    csn_autofd int fd = openat(dir, CSN_STATE_KEEPER, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    csn_keeper_record r = {0};
    char chunk[4096];
    csn_autobuf text;
    ssize_t n;

    csn_buf_init(&text, TEXT_MAX);
    if (fd < 0)
        return -errno;
    while ((n = read(fd, chunk, sizeof(chunk))) > 0)
        if (csn_buf_append(&text, chunk, (size_t)n) != 0)
            return -ENOMEM;
    if (n < 0)
        return -errno;
    csn_status st =
        csn_json_parse(text.data ? text.data : "", text.len, CSN_STATE_KEEPER, &root, NULL);
    int rc = st == CSN_NOMEM ? -ENOMEM : st < 0 ? -EBADMSG : decode(root, &r);
    if (rc < 0) {
        csn_keeper_record_release(&r);
        r = (csn_keeper_record){0};
    }
    if (rc == -ENOMEM)
        return rc;
    r.here_error = csn_host_identify(&r.here);
    *ret = r;
    return 0;
}

/* ---- life ---- */

int csn_keeper_record_is_near(const csn_keeper_record *r)
{
    if (r->here_error < 0)
        return r->here_error;
    return r->keeper.pid > 0 && strcmp(r->here.boot, r->host.boot) == 0 &&
           r->here.pid_ns == r->host.pid_ns;
}

int csn_keeper_record_open_gateway(const csn_keeper_record *r)
{
    int fd = csn_keeper_record_is_near(r) == 1 ? csn_pid_open(&r->gateway, NULL) : -1;

    return fd < 0 ? -1 : fd;
}

/* Where the pid of the record is valid it decides; elsewhere, and while the sandbox is being
 * made, the lock does. */
static bool has_ended(const csn_keeper_record *r, int fd, int *ret_pidfd, bool *ret_stopped)
{
    if (csn_keeper_record_is_near(r) != 1)
        return flock(fd, LOCK_SH | LOCK_NB) == 0;
    int pidfd = csn_pid_open(&r->keeper, ret_stopped);
    *ret_pidfd = pidfd < 0 ? -1 : pidfd;
    return pidfd == -ESRCH;
}

csn_keeper_life csn_keeper_record_find(int dir, const csn_keeper_record *r, int *ret_pidfd,
                                       bool *ret_stopped)
{
    csn_autofd int fd = openat(dir, CSN_STATE_KEEPER, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    *ret_pidfd = -1;
    *ret_stopped = false;
    if (r->version[0] && r->here_error == 0 && strcmp(r->here.boot, r->host.boot) != 0)
        return strcmp(r->here.name, r->host.name) == 0 ? CSN_KEEPER_OTHER_BOOT
                                                       : CSN_KEEPER_OTHER_HOST;
    if (fd < 0 && errno != ENOENT)
        return CSN_KEEPER_LIVES;
    if (fd < 0 || has_ended(r, fd, ret_pidfd, ret_stopped))
        return CSN_KEEPER_ENDED;
    if (!r->version[0])
        return CSN_KEEPER_STARTING;
    return r->protocol != CSN_KEEPER_VERSION ? CSN_KEEPER_OTHER_VERSION : CSN_KEEPER_LIVES;
}

csn_keeper_life csn_keeper_record_life(int dir, const csn_keeper_record *r)
{
    csn_autofd int pidfd = -1;
    bool stopped;

    return csn_keeper_record_find(dir, r, &pidfd, &stopped);
}
