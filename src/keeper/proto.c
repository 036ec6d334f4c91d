/* proto.c: bytes of the wire between the library and a keeper.
 *
 * Linked into both. Everything that is decoded here was written by the other side, which may be
 * taken over: lengths are checked before they are used, strings end where they say, counts have
 * ceilings, a sealed memfd is copied before it is looked at (its owner cannot change it under
 * us, and a short one cannot fault us). Numbers are in host order: both ends are on one
 * machine. The decoders are pure and fuzzed (fuzz_keeper_proto). */
#include "keeper/proto.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define SEALS    (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define NULL_STR UINT32_MAX /* the length that stands for NULL */

/* ---- encoding -------------------------------------------------------------------------- */

void csn_wire_out_init(csn_wire_out *o, void *buf, size_t size)
{
    *o = (csn_wire_out){.data = buf, .cap = size};
}

void csn_wire_out_release(csn_wire_out *o)
{
    if (o->owned)
        free(o->data);
    *o = (csn_wire_out){.error = EINVAL};
}

/* Makes room, or sets the error that sticks: callers put a whole body and look once at the end.
 * Most bodies fit the caller's buffer on the stack and never see the heap. */
static bool wire_room(csn_wire_out *o, size_t more)
{
    if (o->error != 0)
        return false;
    if (more <= o->cap - o->len)
        return true;
    if (more > CSN_KEEPER_BODY_MAX - o->len) {
        o->error = E2BIG;
        return false;
    }
    size_t cap = o->cap < 1024 ? 1024 : o->cap;
    while (cap < o->len + more)
        cap *= 2;
    uint8_t *grown = realloc(o->owned ? o->data : NULL, cap);
    if (!grown) {
        o->error = ENOMEM;
        return false;
    }
    if (!o->owned && o->len > 0)
        memcpy(grown, o->data, o->len);
    o->data = grown;
    o->cap = cap;
    o->owned = true;
    return true;
}

void csn_put_bytes(csn_wire_out *o, const void *data, size_t len)
{
    if (len == 0 || !wire_room(o, len))
        return;
    memcpy(o->data + o->len, data, len);
    o->len += len;
}

void csn_put_u32(csn_wire_out *o, uint32_t v)
{
    csn_put_bytes(o, &v, sizeof(v));
}

void csn_put_u64(csn_wire_out *o, uint64_t v)
{
    csn_put_bytes(o, &v, sizeof(v));
}

void csn_put_i64(csn_wire_out *o, int64_t v)
{
    csn_put_bytes(o, &v, sizeof(v));
}

void csn_put_str(csn_wire_out *o, const char *s)
{
    /* "" and NULL mean different things in a request (an empty argument, no cwd). */
    if (!s) {
        csn_put_u32(o, NULL_STR);
        return;
    }
    size_t len = strlen(s);
    if (len >= CSN_KEEPER_BODY_MAX) {
        o->error = o->error ? o->error : E2BIG;
        return;
    }
    csn_put_u32(o, (uint32_t)len);
    csn_put_bytes(o, s, len + 1);
}

/* ---- decoding -------------------------------------------------------------------------- */

void csn_wire_in_init(csn_wire_in *in, const void *data, size_t len)
{
    const uint8_t *p = data;

    *in = (csn_wire_in){.p = p, .end = p ? p + len : p};
}

const uint8_t *csn_get_bytes(csn_wire_in *in, size_t len)
{
    if (in->error != 0 || len > (size_t)(in->end - in->p)) {
        in->error = EPROTO;
        return NULL;
    }
    const uint8_t *at = in->p;
    in->p += len;
    return at;
}

uint32_t csn_get_u32(csn_wire_in *in)
{
    uint32_t v = 0;
    const uint8_t *at = csn_get_bytes(in, sizeof(v));

    if (at)
        memcpy(&v, at, sizeof(v));
    return v;
}

uint64_t csn_get_u64(csn_wire_in *in)
{
    uint64_t v = 0;
    const uint8_t *at = csn_get_bytes(in, sizeof(v));

    if (at)
        memcpy(&v, at, sizeof(v));
    return v;
}

int64_t csn_get_i64(csn_wire_in *in)
{
    return (int64_t)csn_get_u64(in);
}

const char *csn_get_str(csn_wire_in *in, size_t max, bool may_be_null)
{
    uint32_t len = csn_get_u32(in);

    if (in->error == 0 && len == NULL_STR && may_be_null)
        return NULL;
    if (len > max) {
        in->error = EPROTO;
        return NULL;
    }
    /* The NUL is part of what was sent, so that strings can be used where they lie; one inside
     * would make the string another one for exec than it was for us. */
    const char *s = (const char *)csn_get_bytes(in, (size_t)len + 1);
    if (s && (s[len] != '\0' || memchr(s, '\0', len))) {
        in->error = EPROTO;
        return NULL;
    }
    return s;
}

int csn_wire_in_end(const csn_wire_in *in)
{
    return in->error != 0 || in->p != in->end ? -EPROTO : 0;
}

/* ---- messages -------------------------------------------------------------------------- */

int csn_sealed_memfd(const char *name, const void *data, size_t len)
{
    csn_autofd int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    const char *p = data;

    if (fd < 0)
        return -errno;
    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        p += n;
        len -= (size_t)n;
    }
    if (fcntl(fd, F_ADD_SEALS, SEALS) < 0)
        return -errno;
    return csn_steal_fd(&fd);
}

/* Never blocks in the kernel: a peer that does not read could hold us there for ever. */
static int send_waiting(int sock, const struct msghdr *mh, uint64_t deadline_ns)
{
    for (;;) {
        ssize_t n = sendmsg(sock, mh, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n >= 0)
            return 0;
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN || deadline_ns == 1)
            return -errno;
        int ms = csn_deadline_poll_ms(deadline_ns);
        if (ms == 0)
            return -ETIMEDOUT;
        struct pollfd pf = {.fd = sock, .events = POLLOUT};
        if (poll(&pf, 1, ms) < 0 && errno != EINTR)
            return -errno;
    }
}

int csn_msg_send(int sock, uint16_t type, const void *body, size_t len, const int *fds,
                 size_t nfds, uint64_t deadline_ns)
{
    csn_msg_head head = {CSN_KEEPER_MAGIC, CSN_KEEPER_VERSION, type, 0, (uint32_t)len};
    int all[CSN_KEEPER_FDS_MAX];
    csn_autofd int memfd = -1;

    if (len > CSN_KEEPER_BODY_MAX || nfds >= CSN_KEEPER_FDS_MAX)
        return -E2BIG;
    if (nfds > 0)
        memcpy(all, fds, nfds * sizeof(all[0]));
    if (len + sizeof(head) > CSN_KEEPER_MSG_MAX) {
        memfd = csn_sealed_memfd("caisson-msg", body, len);
        if (memfd < 0)
            return memfd;
        all[nfds++] = memfd;
        head.flags |= CSN_MSG_BODY_FD;
    }
    union {
        char bytes[CMSG_SPACE(sizeof(int) * CSN_KEEPER_FDS_MAX)];
        struct cmsghdr align;
    } ctl;
    struct iovec iov[2] = {{&head, sizeof(head)},
                           {(void *)(uintptr_t)body, memfd < 0 ? len : 0}};
    struct msghdr mh = {.msg_iov = iov, .msg_iovlen = iov[1].iov_len > 0 ? 2 : 1};
    if (nfds > 0) { /* padding of the control message goes out too: no stack bytes in it */
        memset(&ctl, 0, sizeof(ctl));
        mh.msg_control = ctl.bytes;
        mh.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
        struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
        memcpy(CMSG_DATA(c), all, sizeof(int) * nfds);
    }
    return send_waiting(sock, &mh, deadline_ns);
}

/* A version that is not ours is refused, not guessed at: library and keeper come together. */
int csn_msg_check(const void *packet, size_t n, size_t nfds, csn_msg_head *ret)
{
    if (n < sizeof(*ret))
        return -EPROTO;
    memcpy(ret, packet, sizeof(*ret));
    if (ret->magic != CSN_KEEPER_MAGIC || ret->version != CSN_KEEPER_VERSION)
        return -EPROTO;
    if ((ret->flags & ~CSN_MSG_BODY_FD) != 0)
        return -EPROTO;
    if (ret->flags & CSN_MSG_BODY_FD)
        return nfds > 0 && n == sizeof(*ret) && ret->length <= CSN_KEEPER_BODY_MAX ? 0
                                                                                   : -EPROTO;
    return ret->length == n - sizeof(*ret) ? 0 : -EPROTO;
}

/* Copies the body out of the last descriptor, which must be a memfd sealed for good. */
static int body_from_fd(csn_msg *m, size_t len)
{
    csn_autofd int fd = m->fds[--m->nfds];
    struct stat st;
    size_t got = 0;

    if ((fcntl(fd, F_GET_SEALS) & SEALS) != SEALS || fstat(fd, &st) < 0 ||
        (uint64_t)st.st_size != len)
        return -EPROTO;
    m->heap = malloc(len + 1);
    if (!m->heap)
        return -ENOMEM;
    while (got < len) {
        ssize_t n = pread(fd, (char *)m->heap + got, len - got, (off_t)got);
        if (n <= 0)
            return -EPROTO;
        got += (size_t)n;
    }
    m->body = m->heap;
    m->len = len;
    return 0;
}

/* Takes every descriptor that arrived, also those nobody announced: what is not kept here would
 * stay open in this process without anybody knowing its number. */
static void collect_fds(struct msghdr *mh, csn_msg *m)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
            if (m->nfds < CSN_KEEPER_FDS_MAX)
                m->fds[m->nfds++] = fd;
            else
                close(fd);
        }
    }
}

int csn_msg_recv(int sock, void *buf, size_t size, csn_msg *ret)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int) * CSN_KEEPER_FDS_MAX)];
        struct cmsghdr align;
    } ctl;
    struct iovec iov = {buf, size};
    struct msghdr mh = {.msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = ctl.bytes,
                        .msg_controllen = sizeof(ctl.bytes)};
    csn_msg m = {0};
    csn_msg_head head;
    ssize_t n;

    /* ECONNRESET: it closed with our message unread. The kernel says so once, before what the
     * other side sent last: that may be the very answer we wait for, so it is read again. */
    int resets = 0;
    do
        n = recvmsg(sock, &mh, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    while (n < 0 && (errno == EINTR || (errno == ECONNRESET && resets++ == 0)));
    if (n < 0)
        return errno == ECONNRESET ? 0 : -errno;
    collect_fds(&mh, &m);
    if (n == 0 && m.nfds == 0)
        return 0;
    int rc = (mh.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
                 ? -EPROTO
                 : csn_msg_check(buf, (size_t)n, m.nfds, &head);
    if (rc == 0) {
        m.type = head.type;
        m.body = (const uint8_t *)buf + sizeof(head);
        m.len = head.length;
        if (head.flags & CSN_MSG_BODY_FD)
            rc = body_from_fd(&m, head.length);
    }
    if (rc < 0) {
        csn_msg_release(&m);
        return rc;
    }
    *ret = m;
    return 1;
}

void csn_msg_release(csn_msg *m)
{
    for (size_t i = 0; i < m->nfds; i++)
        if (m->fds[i] >= 0)
            close(m->fds[i]);
    free(m->heap);
    *m = (csn_msg){0};
}

int csn_msg_take_fd(csn_msg *m, size_t i)
{
    return i < m->nfds ? csn_steal_fd(&m->fds[i]) : -1;
}

/* ---- bodies ---------------------------------------------------------------------------- */

static void put_strv(csn_wire_out *o, const char *const *v)
{
    size_t n = 0;

    while (v && v[n])
        n++;
    if (n > CSN_ARGV_COUNT_MAX) {
        o->error = o->error ? o->error : E2BIG;
        return;
    }
    csn_put_u32(o, (uint32_t)n);
    for (size_t i = 0; i < n; i++)
        csn_put_str(o, v[i]);
}

void csn_put_spawn(csn_wire_out *o, const csn_spawn_body *s)
{
    csn_put_u32(o, s->flags);
    csn_put_u32(o, s->rows);
    csn_put_u32(o, s->cols);
    csn_put_u64(o, s->memory_max);
    csn_put_u64(o, s->file_max);
    csn_put_u64(o, s->nofile_max);
    csn_put_u64(o, s->ring_max);
    csn_put_u64(o, s->deadline_ns);
    csn_put_str(o, s->cwd);
    csn_put_str(o, s->command);
    put_strv(o, s->argv);
    put_strv(o, s->env);
}

/* Steps over a list without keeping it; how many strings it has. */
static size_t skip_strv(csn_wire_in *in)
{
    uint32_t n = csn_get_u32(in);

    if (n > CSN_ARGV_COUNT_MAX)
        in->error = EPROTO;
    for (uint32_t i = 0; i < n && in->error == 0; i++)
        (void)csn_get_str(in, CSN_KEEPER_BODY_MAX, false);
    return n;
}

/* Fills v[0..n-1] and the NULL after it. */
static void fill_strv(csn_wire_in *in, const char **v)
{
    uint32_t n = csn_get_u32(in);

    for (uint32_t i = 0; i < n; i++)
        v[i] = csn_get_str(in, CSN_KEEPER_BODY_MAX, false);
    v[n] = NULL;
}

int csn_get_spawn(const void *body, size_t len, csn_spawn_body *ret)
{
    csn_spawn_body s = {0};
    csn_wire_in in;

    csn_wire_in_init(&in, body, len);
    s.flags = csn_get_u32(&in);
    s.rows = csn_get_u32(&in);
    s.cols = csn_get_u32(&in);
    s.memory_max = csn_get_u64(&in);
    s.file_max = csn_get_u64(&in);
    s.nofile_max = csn_get_u64(&in);
    s.ring_max = csn_get_u64(&in);
    s.deadline_ns = csn_get_u64(&in);
    s.cwd = csn_get_str(&in, CSN_PATH_MAX, true);
    s.command = csn_get_str(&in, CSN_COMMAND_TEXT_MAX, true);
    /* Twice over the lists: first to check and count, then to fill one block of the right size.
     */
    csn_wire_in lists = in;
    size_t argc = skip_strv(&in);
    size_t envc = skip_strv(&in);
    int rc = csn_wire_in_end(&in);
    if (rc < 0)
        return rc;
    if ((s.flags & ~CSN_SPAWN_ALL) != 0 || s.rows > UINT16_MAX || s.cols > UINT16_MAX)
        return -EPROTO;
    /* One spare slot before argv[0]: a script without #! is run as /bin/sh FILE ARGS. */
    const char **v = malloc((argc + envc + 3) * sizeof(*v));
    if (!v)
        return -ENOMEM;
    v[0] = NULL;
    s.heap = v;
    s.argv = v + 1;
    s.env = v + argc + 2;
    fill_strv(&lists, s.argv);
    fill_strv(&lists, s.env);
    *ret = s;
    return 0;
}

void csn_spawn_body_release(csn_spawn_body *s)
{
    free((void *)(uintptr_t)s->heap);
    *s = (csn_spawn_body){0};
}

size_t csn_spawn_fd_count(uint32_t flags)
{
    return (size_t)__builtin_popcount(flags & CSN_SPAWN_FDS);
}

void csn_put_exit(csn_wire_out *o, const csn_exit_body *b)
{
    csn_put_u32(o, b->stage);
    csn_put_u32(o, b->errnum);
    csn_put_u32(o, b->status);
    csn_put_u32(o, b->killed);
    csn_put_u64(o, b->cpu_ns);
    csn_put_u64(o, b->peak_memory);
}

int csn_get_exit(const void *body, size_t len, csn_exit_body *ret)
{
    csn_exit_body b;
    csn_wire_in in;

    csn_wire_in_init(&in, body, len);
    b.stage = csn_get_u32(&in);
    b.errnum = csn_get_u32(&in);
    b.status = csn_get_u32(&in);
    b.killed = csn_get_u32(&in);
    b.cpu_ns = csn_get_u64(&in);
    b.peak_memory = csn_get_u64(&in);
    if (csn_wire_in_end(&in) < 0 || b.stage > CSN_STAGE_INTERP)
        return -EPROTO;
    *ret = b;
    return 0;
}

void csn_put_proc(csn_wire_out *o, const csn_proc_body *b)
{
    csn_put_i64(o, b->pid);
    csn_put_u32(o, b->running);
    csn_put_u32(o, b->status);
    csn_put_u32(o, b->pty);
    csn_put_u64(o, b->out_total);
    csn_put_u64(o, b->err_total);
    csn_put_i64(o, b->started_ms);
    csn_put_str(o, b->command);
}

int csn_get_proc(csn_wire_in *in, csn_proc_body *ret)
{
    csn_proc_body b;

    b.pid = csn_get_i64(in);
    b.running = csn_get_u32(in);
    b.status = csn_get_u32(in);
    b.pty = csn_get_u32(in);
    b.out_total = csn_get_u64(in);
    b.err_total = csn_get_u64(in);
    b.started_ms = csn_get_i64(in);
    b.command = csn_get_str(in, CSN_COMMAND_TEXT_MAX, false);
    if (in->error != 0)
        return -EPROTO;
    *ret = b;
    return 0;
}

void csn_put_ask(csn_wire_out *o, const csn_ask_body *b)
{
    csn_put_i64(o, b->pid);
    csn_put_u64(o, b->a);
    csn_put_u64(o, b->b);
    csn_put_u64(o, b->c);
}

int csn_get_ask(const void *body, size_t len, csn_ask_body *ret)
{
    csn_ask_body b;
    csn_wire_in in;

    csn_wire_in_init(&in, body, len);
    b.pid = csn_get_i64(&in);
    b.a = csn_get_u64(&in);
    b.b = csn_get_u64(&in);
    b.c = csn_get_u64(&in);
    if (csn_wire_in_end(&in) < 0)
        return -EPROTO;
    *ret = b;
    return 0;
}

void csn_put_log(csn_wire_out *o, const csn_log_body *b)
{
    csn_put_u64(o, b->offset);
    csn_put_u64(o, b->dropped);
    csn_put_u64(o, b->total);
    csn_put_u32(o, b->end);
    csn_put_u32(o, b->len);
    csn_put_bytes(o, b->data, b->len);
}

int csn_get_log(const void *body, size_t len, csn_log_body *ret)
{
    csn_log_body b;
    csn_wire_in in;

    csn_wire_in_init(&in, body, len);
    b.offset = csn_get_u64(&in);
    b.dropped = csn_get_u64(&in);
    b.total = csn_get_u64(&in);
    b.end = csn_get_u32(&in);
    b.len = csn_get_u32(&in);
    b.data = csn_get_bytes(&in, b.len);
    if (csn_wire_in_end(&in) < 0 || b.len > CSN_LOG_CHUNK_MAX || b.offset > b.total ||
        b.len > b.total - b.offset)
        return -EPROTO;
    *ret = b;
    return 0;
}
