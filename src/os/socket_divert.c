/* socket_divert.c: socket() of one command, answered by a process in another network.
 *
 * The keeper's child calls csn_sockets_divert before it execs; csn_sockets_serve is the whole
 * life of a second program (keeper/main.c), started by the library for that one command. The
 * command is hostile. It reaches the serving side by three numbers, the arguments of socket(),
 * which come by value: there is nothing to change after they were looked at. What must hold: no
 * way to make an internet socket that is not asked about, on any ABI of the host; who serves
 * does nothing but make ordinary sockets, without rights, as often as asked; when it has ended
 * every further call fails (ENOSYS), and none falls back on the jail's own network.
 *
 * No kernel header: the keeper is built against musl alone. */
#include "os/socket_divert.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/msg.h"

/* ---- the filter ---- */

struct insn {
    uint16_t code;
    uint8_t jt, jf;
    uint32_t k;
};
struct program {
    uint16_t len;
    const struct insn *insns;
};

#define LISTENER 1u /* the one message there is, and its descriptor */

#define SET_MODE_FILTER    1u
#define FLAG_SPEC_ALLOW    (1u << 2)
#define FLAG_NEW_LISTENER  (1u << 3)
#define FLAG_WAIT_KILLABLE (1u << 5) /* since 5.19: signals do not make a call ask twice */
#define RET_ALLOW          0x7fff0000u
#define RET_ASK            0x7fc00000u
#define RET_ERROR(e)       (0x00050000u | (e))

#define AT_CALL   0u
#define AT_ABI    4u
#define AT_FAMILY 16u /* low half of the first argument; the kernel looks at no more */

#if defined(__x86_64__)
#define ABI       0xc000003eu
#define ABI_32    0x40000003u
#define SOCKET_32 359u
#elif defined(__aarch64__)
#define ABI       0xc00000b7u
#define ABI_32    0x40000028u
#define SOCKET_32 281u
#else /* not known: refused */
#define ABI       0u
#define ABI_32    0u
#define SOCKET_32 0u
#endif
#define SOCKETCALL_32 102u        /* its arguments are behind a pointer */
#define X32           0x40000000u /* no bit of any call's number but of x32's */

#define LOAD(at)                                                                               \
    {                                                                                          \
        0x20, 0, 0, (at)                                                                       \
    }
#define IS(v, yes, no)                                                                         \
    {                                                                                          \
        0x15, (yes), (no), (v)                                                                 \
    }
#define HAS(v, yes, no)                                                                        \
    {                                                                                          \
        0x45, (yes), (no), (v)                                                                 \
    }
#define RETURN(v)                                                                              \
    {                                                                                          \
        0x06, 0, 0, (v)                                                                        \
    }

/* The wall of the jail (seccomp_policy.h) stands before this one and refuses more: where both
 * speak, the refusal holds. */
static const struct insn insns[] = {
    LOAD(AT_ABI),
    IS(ABI, 0, 4),
    LOAD(AT_CALL),
    HAS(X32, 13, 0),
    IS(SYS_socket, 5, 0),
    RETURN(RET_ALLOW),
    IS(ABI_32, 0, 10),
    LOAD(AT_CALL),
    IS(SOCKETCALL_32, 8, 0),
    IS(SOCKET_32, 0, 6),
    LOAD(AT_FAMILY),
    IS(AF_INET, 3, 0),
    IS(AF_INET6, 2, 0),
    IS(AF_UNIX, 2, 0),
    IS(AF_NETLINK, 1, 3),
    RETURN(RET_ASK),
    RETURN(RET_ALLOW),
    RETURN(RET_ERROR(ENOSYS)),
    RETURN(RET_ERROR(EAFNOSUPPORT)),
};

int csn_sockets_divert(int to)
{
    const struct program p = {sizeof(insns) / sizeof(insns[0]), insns};
    const unsigned flags = FLAG_NEW_LISTENER | FLAG_SPEC_ALLOW;

    if (ABI == 0)
        return -ENOTSUP;
    int fd = (int)syscall(SYS_seccomp, SET_MODE_FILTER, (long)(flags | FLAG_WAIT_KILLABLE), &p);
    if (fd < 0 && errno == EINVAL)
        fd = (int)syscall(SYS_seccomp, SET_MODE_FILTER, (long)flags, &p);
    if (fd < 0)
        return -errno;
    int rc = csn_msg_send(to, LISTENER, NULL, 0, &fd, 1, 1);
    (void)syscall(SYS_close, fd);
    return rc;
}

/* ---- answers ---- */

struct question {
    uint64_t id;
    uint32_t pid, flags;
    int32_t call;
    uint32_t abi;
    uint64_t at, args[6];
};
struct refusal {
    uint64_t id;
    int64_t value;
    int32_t error;
    uint32_t flags;
};
struct gift {
    uint64_t id;
    uint32_t flags, fd, as, as_flags;
};
_Static_assert(sizeof(struct question) == 80 && sizeof(struct refusal) == 24 &&
                   sizeof(struct gift) == 24,
               "the kernel's structures");
#define TAKE      0xc0502100ul
#define REFUSE    0xc0182101ul
#define GIVE      0x40182103ul
#define GIFT_ENDS (1u << 1) /* the call returns with it, in one step; since 5.14 */

/* What the walls let through is stream and datagram; the same again costs nothing. */
static int make(const struct question *q)
{
    int family = (int)q->args[0], type = (int)q->args[1];
    int kind = type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (family != AF_INET && family != AF_INET6)
        return -EAFNOSUPPORT;
    if (kind != SOCK_STREAM && kind != SOCK_DGRAM)
        return -EPERM;
    int fd = socket(family, type | SOCK_CLOEXEC, (int)q->args[2]);
    return fd < 0 ? -errno : fd;
}

/* The one who asked may be gone, or was interrupted and asks again: neither is our affair. */
static void answer(int listener)
{
    struct question q = {0};

    if (syscall(SYS_ioctl, listener, TAKE, &q) < 0)
        return;
    csn_autofd int fd = make(&q);
    const struct gift gift = {.id = q.id,
                              .flags = GIFT_ENDS,
                              .fd = (uint32_t)fd,
                              .as_flags = q.args[1] & SOCK_CLOEXEC ? O_CLOEXEC : 0};
    int error = -fd;
    if (fd >= 0) {
        if (syscall(SYS_ioctl, listener, GIVE, &gift) >= 0)
            return;
        error = errno == EINVAL ? ENOSYS : errno; /* EMFILE: its own limit */
    }
    const struct refusal no = {.id = q.id, .error = -error};
    (void)syscall(SYS_ioctl, listener, REFUSE, &no);
}

/* 1: *ret is the listener, 0: everybody hung up. */
static int receive(int from, int *ret)
{
    uint8_t buf[64];
    csn_msg m;
    int rc = csn_msg_recv(from, buf, sizeof(buf), &m);

    if (rc <= 0)
        return rc;
    if (m.type != LISTENER || m.nfds != 1 || *ret >= 0)
        rc = -EPROTO;
    else
        *ret = csn_msg_take_fd(&m, 0);
    csn_msg_release(&m);
    return rc;
}

int csn_sockets_serve(int from)
{
    csn_autofd int listener = -1;

    for (;;) {
        struct pollfd pf[2] = {{.fd = from, .events = POLLIN},
                               {.fd = listener, .events = POLLIN}};
        if (poll(pf, 2, -1) < 0 && errno != EINTR)
            return -errno;
        if (pf[0].revents != 0) {
            int rc = receive(from, &listener);
            if (rc <= 0 && rc != -EAGAIN)
                return rc;
        }
        if (pf[1].revents & POLLIN)
            answer(listener);
        else if (pf[1].revents != 0) /* nobody is left who could ask */
            close(csn_steal_fd(&listener));
    }
}
