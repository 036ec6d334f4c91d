/* socket_divert.c: answers socket() of one command with sockets of another network namespace.
 *
 * The keeper's child installs the filter before it execs; a second process (keeper/main.c) that
 * the library starts for that command runs only csn_socket_divert_serve. The command is
 * hostile. It reaches the supervisor only by the three arguments of socket(), which are passed
 * by value and cannot change after the check. Invariants: on every ABI of the host, each
 * internet socket is made by notification; the supervisor only makes ordinary, unprivileged
 * sockets; after its end every further call fails with ENOSYS instead of using the jail's own
 * network.
 *
 * No kernel header: the keeper is built with musl alone. */
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
#include "os/seccomp.h"

/* ---- the filter ---- */

#define MSG_LISTENER 1u /* the only message; its descriptor is the seccomp listener */

#define SET_MODE_FILTER    1u
#define FLAG_SPEC_ALLOW    (1u << 2)
#define FLAG_NEW_LISTENER  (1u << 3)
#define FLAG_WAIT_KILLABLE (1u << 5) /* since 5.19: signals do not restart the call */
#define RET_ALLOW          0x7fff0000u
#define RET_USER_NOTIF     0x7fc00000u
#define RET_ERRNO(e)       (0x00050000u | (e))

#define AT_CALL   0u
#define AT_ABI    4u
#define AT_FAMILY 16u /* low half of the first argument; the kernel ignores the rest */

#if defined(__x86_64__)
#define ABI       0xc000003eu
#define ABI_32    0x40000003u
#define SOCKET_32 359u
#elif defined(__aarch64__)
#define ABI       0xc00000b7u
#define ABI_32    0x40000028u
#define SOCKET_32 281u
#else /* unsupported */
#define ABI       0u
#define ABI_32    0u
#define SOCKET_32 0u
#endif
#define SOCKETCALL_32 102u        /* arguments behind a pointer */
#define X32           0x40000000u /* set in the numbers of x32 calls only */

/* clang-format off */
#define LOAD(at)        {0x20, 0, 0, (at)}
#define IS(v, yes, no)  {0x15, (yes), (no), (v)}
#define HAS(v, yes, no) {0x45, (yes), (no), (v)}
#define RETURN(v)       {0x06, 0, 0, (v)}
/* clang-format on */

/* The jail's own filter (seccomp_policy.h) was installed before and refuses more; of two
 * answers the kernel takes the refusal. */
static const csn_seccomp_insn insns[] = {
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
    RETURN(RET_USER_NOTIF),
    RETURN(RET_ALLOW),
    RETURN(RET_ERRNO(ENOSYS)),
    RETURN(RET_ERRNO(EAFNOSUPPORT)),
};

int csn_socket_divert_install(int to)
{
    const csn_seccomp_program p = {sizeof(insns) / sizeof(insns[0]), insns};
    const unsigned flags = FLAG_NEW_LISTENER | FLAG_SPEC_ALLOW;

    if (ABI == 0)
        return -ENOTSUP;
    int fd = (int)syscall(SYS_seccomp, SET_MODE_FILTER, (long)(flags | FLAG_WAIT_KILLABLE), &p);
    if (fd < 0 && errno == EINVAL)
        fd = (int)syscall(SYS_seccomp, SET_MODE_FILTER, (long)flags, &p);
    if (fd < 0)
        return -errno;
    int rc = csn_msg_send(to, MSG_LISTENER, NULL, 0, &fd, 1, 1);
    (void)syscall(SYS_close, fd);
    return rc;
}

/* ---- the supervisor ---- */

struct notif {
    uint64_t id;
    uint32_t pid, flags;
    int32_t nr;
    uint32_t arch;
    uint64_t ip, args[6];
};
struct notif_resp {
    uint64_t id;
    int64_t value;
    int32_t error;
    uint32_t flags;
};
struct notif_addfd {
    uint64_t id;
    uint32_t flags, srcfd, newfd, newfd_flags;
};
_Static_assert(sizeof(struct notif) == 80 && sizeof(struct notif_resp) == 24 &&
                   sizeof(struct notif_addfd) == 24,
               "the kernel's structures");
#define NOTIF_RECV  0xc0502100ul
#define NOTIF_SEND  0xc0182101ul
#define NOTIF_ADDFD 0x40182103ul
#define ADDFD_SEND  (1u << 1) /* also ends the call; since 5.14 */

/* Repeats the checks of the jail's filter. */
static int make_socket(const struct notif *q)
{
    int family = (int)q->args[0], type = (int)q->args[1];
    int base = type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (family != AF_INET && family != AF_INET6)
        return -EAFNOSUPPORT;
    if (base != SOCK_STREAM && base != SOCK_DGRAM)
        return -EPERM;
    int fd = socket(family, type | SOCK_CLOEXEC, (int)q->args[2]);
    return fd < 0 ? -errno : fd;
}

/* Errors of the last ioctl are ignored: the caller may be gone or interrupted. */
static void answer(int listener)
{
    struct notif q = {0};

    if (syscall(SYS_ioctl, listener, NOTIF_RECV, &q) < 0)
        return;
    csn_autofd int fd = make_socket(&q);
    const struct notif_addfd addfd = {.id = q.id,
                                      .flags = ADDFD_SEND,
                                      .srcfd = (uint32_t)fd,
                                      .newfd_flags = q.args[1] & SOCK_CLOEXEC ? O_CLOEXEC : 0};
    int error = -fd;
    if (fd >= 0) {
        if (syscall(SYS_ioctl, listener, NOTIF_ADDFD, &addfd) >= 0)
            return;
        error = errno == EINVAL ? ENOSYS : errno; /* EMFILE: the caller's own limit */
    }
    const struct notif_resp resp = {.id = q.id, .error = -error};
    (void)syscall(SYS_ioctl, listener, NOTIF_SEND, &resp);
}

/* 1: *ret is the listener, 0: all peers hung up. */
static int receive_listener(int from, int *ret)
{
    uint8_t buf[64];
    csn_msg m;
    int rc = csn_msg_recv(from, buf, sizeof(buf), &m);

    if (rc <= 0)
        return rc;
    if (m.type != MSG_LISTENER || m.nfds != 1 || *ret >= 0)
        rc = -EPROTO;
    else
        *ret = csn_msg_take_fd(&m, 0);
    csn_msg_release(&m);
    return rc;
}

int csn_socket_divert_serve(int from)
{
    csn_autofd int listener = -1;

    for (;;) {
        struct pollfd pf[2] = {{.fd = from, .events = POLLIN},
                               {.fd = listener, .events = POLLIN}};
        if (poll(pf, 2, -1) < 0 && errno != EINTR)
            return -errno;
        if (pf[0].revents != 0) {
            int rc = receive_listener(from, &listener);
            if (rc <= 0 && rc != -EAGAIN)
                return rc;
        }
        if (pf[1].revents & POLLIN)
            answer(listener);
        else if (pf[1].revents != 0) /* the last process of the command has ended */
            close(csn_steal_fd(&listener));
    }
}
