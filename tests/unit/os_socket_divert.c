/* os_socket_divert.c: a process whose sockets are made by another, in another network.
 *
 * The one who asks is a child of the test; the one who makes them a child of that, in a network
 * of its own where the host allows it. Whether a socket is of that network the kernel tells
 * (SO_NETNS_COOKIE). */
#include "os/socket_divert.h"

#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "child.h"
#include "os/msg.h"

#define HUNG_MS      60000
#define SKIPPED      77
#define NETNS_COOKIE 71 /* SO_NETNS_COOKIE */

/* A child has no test runner: it says on which line it stopped. */
#define EXPECT(what)                                                                           \
    do {                                                                                       \
        if (!(what)) {                                                                         \
            fprintf(stderr, "line %d: %s (errno %d)\n", __LINE__, #what, errno);               \
            return 1;                                                                          \
        }                                                                                      \
    } while (0)

static uint64_t network_of(int fd)
{
    uint64_t cookie = 0;
    socklen_t len = sizeof(cookie);

    (void)getsockopt(fd, SOL_SOCKET, NETNS_COOKIE, &cookie, &len);
    return cookie;
}

typedef struct pair {
    int ours;
    pid_t maker;
    uint64_t here; /* the network of who asks */
} pair;

/* Ends by itself when nobody holds the other end. */
static int begin(pair *p)
{
    int fds[2];
    int own = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    EXPECT(own >= 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
    p->here = network_of(own);
    close(own);
    p->ours = fds[0];
    p->maker = fork();
    EXPECT(p->maker >= 0);
    if (p->maker == 0) {
        close(fds[0]);
        if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
            _exit(SKIPPED);
        _exit(csn_socket_divert_serve(fds[1]) == 0 ? 0 : 1);
    }
    close(fds[1]);
    EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) == 0);
    return 0;
}

static int divert(pair *p)
{
    int rc = begin(p);

    if (rc != 0)
        return rc;
    rc = csn_socket_divert_install(p->ours);
    if (rc == -EPIPE)
        return SKIPPED; /* it has ended already: no namespaces here */
    EXPECT(rc == 0);
    return 0;
}

static int ended(const pair *p, int want)
{
    int status = -1;

    EXPECT(waitpid(p->maker, &status, 0) == p->maker);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED)
        return SKIPPED;
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == want);
    return 0;
}

static void in_child(int (*body)(void *))
{
    csn_child_end e = csn_child_run(body, NULL, -1, HUNG_MS);

    if (e.exit_code == SKIPPED) {
        print_message("# SKIP no user namespaces for us here\n");
        skip();
    }
    assert_false(e.hung);
    assert_int_equal(e.signal, 0);
    assert_int_equal(e.exit_code, 0);
}

/* ---- */

static int foreign(void *ctx)
{
    pair p;
    int rc = divert(&p);

    (void)ctx;
    if (rc != 0)
        return rc;
    const int families[] = {AF_INET, AF_INET6}, types[] = {SOCK_STREAM, SOCK_DGRAM};
    for (int i = 0; i < 4; i++) {
        int fd = socket(families[i / 2], types[i % 2] | SOCK_CLOEXEC, 0);
        if (fd < 0 && errno == ENOSYS) { /* it could not make a network, and has ended */
            close(p.ours);
            return ended(&p, 0);
        }
        EXPECT(fd >= 0 && network_of(fd) != p.here && network_of(fd) != 0);
        int type = 0;
        socklen_t len = sizeof(type);
        EXPECT(getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == types[i % 2]);
        close(fd);
    }
    /* what it starts has no other sockets */
    pid_t pid = fork();
    if (pid == 0) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        _exit(fd >= 0 && network_of(fd) != p.here ? 0 : 1);
    }
    int status = 0;
    EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
    close(p.ours);
    return ended(&p, 0);
}

static void sockets_belong_to_the_other_network(void **state)
{
    (void)state;
    in_child(foreign);
}

static int flags(void *ctx)
{
    pair p;
    int rc = divert(&p);

    (void)ctx;
    if (rc != 0)
        return rc;
    int plain = socket(AF_INET, SOCK_STREAM, 0);
    if (plain < 0 && errno == ENOSYS)
        return ended(&p, 0);
    int all = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
    EXPECT(plain >= 0 && fcntl(plain, F_GETFD) == 0 &&
           (fcntl(plain, F_GETFL) & O_NONBLOCK) == 0);
    EXPECT(all >= 0 && fcntl(all, F_GETFD) == FD_CLOEXEC && (fcntl(all, F_GETFL) & O_NONBLOCK));
    EXPECT(socket(AF_INET, SOCK_STREAM, IPPROTO_UDP) < 0 && errno == EPROTONOSUPPORT);
    EXPECT(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) < 0 && errno == EPERM);
    EXPECT(socket(AF_INET, SOCK_SEQPACKET, 0) < 0 && errno == EPERM);
    return 0;
}

static void flags_and_errors_are_those_of_the_call(void **state)
{
    (void)state;
    in_child(flags);
}

static int families(void *ctx)
{
    pair p;
    int rc = divert(&p);
    int two[2];

    (void)ctx;
    if (rc != 0)
        return rc;
    int local = socket(AF_UNIX, SOCK_STREAM, 0), routes = socket(AF_NETLINK, SOCK_RAW, 0);
    EXPECT(local >= 0 && network_of(local) == p.here);
    EXPECT(routes >= 0 && network_of(routes) == p.here);
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, two) == 0);
    /* PACKET, ALG, VSOCK, SMC: some would make internet sockets of their own */
    const int others[] = {17, 38, 40, 43, 0, -1, 1 << 16 | AF_INET};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        EXPECT(socket(others[i], SOCK_STREAM, 0) < 0 && errno == EAFNOSUPPORT);
    return 0;
}

static void other_families_are_local_or_refused(void **state)
{
    (void)state;
    in_child(families);
}

#if defined(__x86_64__)
/* The 32-bit interface of the same kernel; ENOSYS where it is built without. */
static long call32(long nr, long a, long b, long c)
{
    long ret;

    __asm__ volatile("int $0x80"
                     : "=a"(ret)
                     : "a"(nr), "b"(a), "c"(b), "d"(c)
                     : "memory", "r8", "r9", "r10", "r11");
    return (int)ret;
}

static int abis(void *ctx)
{
    pair p;
    int rc = divert(&p);

    (void)ctx;
    if (rc != 0)
        return rc;
    long fd = call32(359, AF_INET, SOCK_STREAM, 0);
    EXPECT(fd == -ENOSYS || (fd >= 0 && network_of((int)fd) != p.here));
    EXPECT(call32(102, 1, 0, 0) == -ENOSYS); /* socketcall */
    EXPECT(syscall(0x40000000L | SYS_socket, AF_INET, SOCK_STREAM, 0) < 0 && errno == ENOSYS);
    return 0;
}

static void other_abis_cannot_make_sockets(void **state)
{
    (void)state;
    in_child(abis);
}
#endif

static int orphaned(void *ctx)
{
    pair p;
    int rc = divert(&p);

    (void)ctx;
    if (rc != 0)
        return rc;
    int before = socket(AF_INET, SOCK_STREAM, 0);
    if (before < 0 && errno == ENOSYS)
        return ended(&p, 0);
    close(p.ours);
    rc = ended(&p, 0);
    if (rc != 0)
        return rc;
    EXPECT(socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == ENOSYS);
    EXPECT(socket(AF_INET6, SOCK_DGRAM, 0) < 0 && errno == ENOSYS);
    EXPECT(socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
    return 0;
}

static void without_a_supervisor_socket_fails(void **state)
{
    (void)state;
    in_child(orphaned);
}

static int refused(void *ctx)
{
    int fds[2];

    (void)ctx;
    EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
    close(fds[1]);
    EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) == 0);
    EXPECT(csn_socket_divert_install(fds[0]) == -EPIPE);
    return 0;
}

static void install_fails_when_the_supervisor_is_gone(void **state)
{
    (void)state;
    in_child(refused);
}

static int nonsense(void *ctx)
{
    const char bytes[] = "not a message";
    pair p;
    int rc = begin(&p);

    (void)ctx;
    if (rc != 0)
        return rc;
    (void)send(p.ours, bytes, sizeof(bytes), MSG_NOSIGNAL);
    return ended(&p, 1);
}

static int twice(void *ctx)
{
    pair p;
    int rc = begin(&p);

    (void)ctx;
    if (rc != 0)
        return rc;
    for (int i = 0; i < 2; i++) {
        int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        (void)csn_msg_send(p.ours, 1, NULL, 0, &fd, 1, 1);
        close(fd);
    }
    return ended(&p, 1);
}

static void supervisor_ends_on_a_malformed_message(void **state)
{
    (void)state;
    in_child(nonsense);
    in_child(twice);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sockets_belong_to_the_other_network),
        cmocka_unit_test(flags_and_errors_are_those_of_the_call),
        cmocka_unit_test(other_families_are_local_or_refused),
#if defined(__x86_64__)
        cmocka_unit_test(other_abis_cannot_make_sockets),
#endif
        cmocka_unit_test(without_a_supervisor_socket_fails),
        cmocka_unit_test(install_fails_when_the_supervisor_is_gone),
        cmocka_unit_test(supervisor_ends_on_a_malformed_message),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
