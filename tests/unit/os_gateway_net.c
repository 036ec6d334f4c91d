/* os_gateway_net.c: the network of a jail with a gateway, in a namespace of the test's own.
 *
 * Each case makes user and network namespaces in a child, so it needs no rights and changes
 * nothing of the host. What packets do is what is asked: which socket a connection arrives at
 * and where it was going to. The text of the rules is compared only where nft is installed. */
#include "os/gateway_net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "child.h"
#include "os/netns.h"
#include "os/nft.h"

#define HUNG_MS      60000
#define SKIPPED      77
#define SKIPPED_HERE 78
#define ORIGINAL_DST 80 /* SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST */

/* A child has no test runner: it says on which line it stopped. */
#define EXPECT(what)                                                                           \
    do {                                                                                       \
        if (!(what)) {                                                                         \
            fprintf(stderr, "line %d: %s (errno %d)\n", __LINE__, #what, errno);               \
            return 1;                                                                          \
        }                                                                                      \
    } while (0)

typedef union address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
} address;

static address at(const char *text, uint16_t port)
{
    address a = {.four = {.sin_family = AF_INET, .sin_port = htons(port)}};

    if (inet_pton(AF_INET, text, &a.four.sin_addr) == 1)
        return a;
    a = (address){.six = {.sin6_family = AF_INET6, .sin6_port = htons(port)}};
    if (inet_pton(AF_INET6, text, &a.six.sin6_addr) != 1)
        abort();
    return a;
}

static socklen_t len_of(const address *a)
{
    return a->any.sa_family == AF_INET ? sizeof(a->four) : sizeof(a->six);
}

static bool same(const address *a, const address *b)
{
    if (a->any.sa_family != b->any.sa_family)
        return false;
    if (a->any.sa_family == AF_INET)
        return a->four.sin_port == b->four.sin_port &&
               a->four.sin_addr.s_addr == b->four.sin_addr.s_addr;
    return a->six.sin6_port == b->six.sin6_port &&
           memcmp(&a->six.sin6_addr, &b->six.sin6_addr, 16) == 0;
}

static int write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));

    if (fd >= 0)
        close(fd);
    return n < 0 ? -1 : 0;
}

/* Its own user namespace, in which it is root, and its own network. */
static int enter(void)
{
    int ns;
    char map[2][48];

    snprintf(map[0], sizeof(map[0]), "0 %u 1", geteuid());
    snprintf(map[1], sizeof(map[1]), "0 %u 1", getegid());
    if (unshare(CLONE_NEWUSER) < 0) {
        fprintf(stderr, "skipped: no user namespaces here: %s\n", strerrordesc_np(errno));
        return SKIPPED;
    }
    EXPECT(write_text("/proc/self/setgroups", "deny") == 0);
    EXPECT(write_text("/proc/self/uid_map", map[0]) == 0);
    EXPECT(write_text("/proc/self/gid_map", map[1]) == 0);
    EXPECT((ns = csn_netns_make()) >= 0);
    EXPECT(close(ns) == 0);
    return 0;
}

static int enter_with(const csn_gateway_net_order *order, csn_gateway_net *n)
{
    int rc = enter();

    if (rc != 0)
        return rc;
    rc = csn_gateway_net_build(order, n);
    if (csn_nft_unsupported(rc) && n->step == CSN_GATEWAY_NET_STEP_RULES) {
        fprintf(stderr, "skipped: this kernel lacks %s\n", csn_nft_step_name(n->detail));
        return SKIPPED;
    }
    if (rc < 0)
        fprintf(stderr, "step %u.%u: %s\n", n->step, n->detail, strerrordesc_np(-rc));
    return rc < 0 ? 1 : 0;
}

/* Both ways in which a connection can be led to the listener, one after the other. */
static bool translate;

static int enter_transparent(csn_gateway_net *n)
{
    return enter_with(
        &(csn_gateway_net_order){.mode = CSN_GATEWAY_NET_TRANSPARENT, .translate = translate},
        n);
}

static void run_child(int (*body)(void *ctx), void *ctx)
{
    csn_child_end end = csn_child_run(body, ctx, -1, HUNG_MS);

    assert_false(end.hung);
    if (end.exit_code == SKIPPED) {
        if (getenv("CSN_MUST_WORK"))
            fail_msg("%s", "the host has no namespaces or no nf_tables");
        skip();
    }
    assert_int_equal(end.exit_code, 0);
}

typedef int (*body_fn)(csn_gateway_net *n);

static int transparent_body(void *ctx)
{
    const body_fn *body = ctx;
    csn_gateway_net n;
    int rc = enter_transparent(&n);

    return rc != 0 ? rc : (*body)(&n);
}

static void in_transparent(body_fn body)
{
    translate = false;
    run_child(transparent_body, &body);
    translate = true;
    run_child(transparent_body, &body);
}

/* ---- TCP ---- */

/* Where a connection that arrived was going to. */
static int meant(int fd, address *ret)
{
    socklen_t len = sizeof(*ret);
    int family = 0;
    socklen_t flen = sizeof(family);

    *ret = (address){0};
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &flen) < 0)
        return -1;
    if (!translate)
        return getsockname(fd, &ret->any, &len);
    return getsockopt(fd, family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6, ORIGINAL_DST, ret,
                      &len);
}

/* A connection to `to` arrives at the listener, which learns where it was going to. */
static int arrives(int listener, const char *text, uint16_t port)
{
    address to = at(text, port), was = {0}, peer = {0};
    socklen_t plen = sizeof(peer);
    int fd = socket(to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    EXPECT(fd >= 0);
    EXPECT(connect(fd, &to.any, len_of(&to)) == 0);
    int got = accept(listener, NULL, NULL);
    EXPECT(got >= 0);
    EXPECT(meant(got, &was) == 0 && same(&was, &to));
    EXPECT(getpeername(fd, &peer.any, &plen) == 0);
    EXPECT(same(&peer, &to)); /* the program sees nothing of it */
    char c = 0;
    EXPECT(write(got, "x", 1) == 1 && read(fd, &c, 1) == 1 && c == 'x');
    EXPECT(write(fd, "y", 1) == 1 && read(got, &c, 1) == 1 && c == 'y');
    close(got);
    close(fd);
    return 0;
}

/* What a program's own side of such a connection is controlled by, whatever the host prefers.
 */
static int is_plain(int listener, const char *text)
{
    address to = at(text, 443);
    char name[16] = "";
    socklen_t len = sizeof(name) - 1;
    int fd = socket(to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    EXPECT(fd >= 0 && connect(fd, &to.any, len_of(&to)) == 0);
    EXPECT(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len) == 0);
    EXPECT(strcmp(name, "reno") == 0);
    close(accept(listener, NULL, NULL));
    close(fd);
    return 0;
}

static int tcp4_body(csn_gateway_net *n)
{

    int l = n->fds[CSN_GATEWAY_NET_TCP4];
    EXPECT(n->mode == CSN_GATEWAY_NET_TRANSPARENT && n->fds[CSN_GATEWAY_NET_LISTENER] == -1);
    EXPECT(arrives(l, "203.0.113.7", 443) == 0); /* a literal address */
    EXPECT(arrives(l, "198.18.3.4", 22) == 0);   /* one that stands for a name */
    EXPECT(arrives(l, "198.19.255.254", 8080) == 0);
    EXPECT(arrives(l, "10.0.0.1", 53) == 0);   /* a foreign resolver */
    EXPECT(arrives(l, "198.18.0.1", 80) == 0); /* the stub's address, not its port */
    EXPECT(arrives(l, "169.254.169.254", 80) == 0);
    EXPECT(is_plain(l, "203.0.113.7") == 0 && is_plain(l, "198.18.3.4") == 0);
    return 0;
}

static void tcp4_to_anywhere_arrives_at_the_listener(void **state)
{
    (void)state;
    in_transparent(tcp4_body);
}

static int tcp6_body(csn_gateway_net *n)
{

    int l = n->fds[CSN_GATEWAY_NET_TCP6];
    if (l < 0) {
        fprintf(stderr, "skipped: no IPv6 here\n");
        return SKIPPED;
    }
    EXPECT(arrives(l, "2001:db8::7", 443) == 0);
    EXPECT(arrives(l, "fd63:6169:7373::5", 22) == 0);
    EXPECT(arrives(l, "fd63:6169:7373::1", 80) == 0);
    EXPECT(arrives(l, "fd00::1", 53) == 0);
    EXPECT(is_plain(l, "2001:db8::7") == 0 && is_plain(l, "fd63:6169:7373::5") == 0);
    return 0;
}

static void tcp6_to_anywhere_arrives_at_the_listener(void **state)
{
    (void)state;
    in_transparent(tcp6_body);
}

static int many_body(csn_gateway_net *n)
{
    int fds[200];

    /* One source port for all of them: the kernel tells them apart where they are going. */
    for (unsigned i = 0; i < 200; i++) {
        char text[32];
        int one = 1;
        snprintf(text, sizeof(text), "198.18.4.%u", i + 1);
        address from = at("127.0.0.1", 40000), to = at(text, 443), was = {0};
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        EXPECT(setsockopt(fds[i], SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0);
        EXPECT(bind(fds[i], &from.any, len_of(&from)) == 0);
        EXPECT(connect(fds[i], &to.any, len_of(&to)) == 0);
        int got = accept(n->fds[CSN_GATEWAY_NET_TCP4], NULL, NULL);
        EXPECT(got >= 0);
        EXPECT(meant(got, &was) == 0 && same(&was, &to));
    }
    return 0;
}

static void one_source_port_reaches_many_addresses(void **state)
{
    (void)state;
    in_transparent(many_body);
}

/* ---- loopback ---- */

static int talk_on(const char *text)
{
    address a = at(text, 0), seen = {0};
    socklen_t len = sizeof(a), slen = sizeof(seen);
    int family = a.any.sa_family, l = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    EXPECT(l >= 0 && bind(l, &a.any, len_of(&a)) == 0 && listen(l, 1) == 0);
    EXPECT(getsockname(l, &a.any, &len) == 0);
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(connect(fd, &a.any, len_of(&a)) == 0);
    int got = accept(l, NULL, NULL);
    EXPECT(got >= 0 && write(fd, "hi", 2) == 2);
    char buf[4];
    EXPECT(read(got, buf, sizeof(buf)) == 2);
    int u = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    EXPECT(bind(u, &a.any, len_of(&a)) == 0);
    EXPECT(sendto(u, "hi", 2, 0, &a.any, len_of(&a)) == 2);
    EXPECT(recvfrom(u, buf, sizeof(buf), 0, &seen.any, &slen) == 2 && same(&seen, &a));
    close(u);
    close(got);
    close(fd);
    close(l);
    return 0;
}

static int loopback_body(csn_gateway_net *n)
{

    EXPECT(talk_on("127.0.0.1") == 0);
    EXPECT(talk_on("127.3.2.1") == 0);
    EXPECT(n->fds[CSN_GATEWAY_NET_TCP6] < 0 || talk_on("::1") == 0);
    address closed = at("127.0.0.1", 9);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(connect(fd, &closed.any, len_of(&closed)) == -1 && errno == ECONNREFUSED);
    return 0;
}

static void loopback_is_untouched(void **state)
{
    (void)state;
    in_transparent(loopback_body);
}

/* ---- the resolver, and everything else ---- */

static int ask_resolver(int udp, int tcp, const char *text)
{
    address to = at(text, CSN_NET_RESOLVER_PORT), from = {0}, back = {0};
    socklen_t len = sizeof(from), blen = sizeof(back);
    int fd = socket(to.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    char buf[8];

    EXPECT(fd >= 0);
    EXPECT(sendto(fd, "name?", 5, 0, &to.any, len_of(&to)) == 5);
    EXPECT(recvfrom(udp, buf, sizeof(buf), 0, &from.any, &len) == 5);
    EXPECT(sendto(udp, "yes", 3, 0, &from.any, len) == 3);
    EXPECT(recvfrom(fd, buf, sizeof(buf), 0, &back.any, &blen) == 3 && same(&back, &to));
    close(fd);
    fd = socket(to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(connect(fd, &to.any, len_of(&to)) == 0);
    int got = accept(tcp, NULL, NULL);
    EXPECT(got >= 0);
    close(got);
    close(fd);
    return 0;
}

static int resolver_body(csn_gateway_net *n)
{

    EXPECT(ask_resolver(n->fds[CSN_GATEWAY_NET_DNS_UDP4], n->fds[CSN_GATEWAY_NET_DNS_TCP4],
                        "198.18.0.1") == 0);
    if (n->fds[CSN_GATEWAY_NET_DNS_UDP6] >= 0)
        EXPECT(ask_resolver(n->fds[CSN_GATEWAY_NET_DNS_UDP6], n->fds[CSN_GATEWAY_NET_DNS_TCP6],
                            "fd63:6169:7373::1") == 0);
    return 0;
}

static void resolver_is_reachable(void **state)
{
    (void)state;
    in_transparent(resolver_body);
}

static int refused_udp(const char *text, uint16_t port)
{
    address to = at(text, port);
    int fd = socket(to.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    EXPECT(fd >= 0);
    EXPECT(sendto(fd, "x", 1, 0, &to.any, len_of(&to)) == -1);
    EXPECT(errno == EPERM || errno == EACCES);
    close(fd);
    return 0;
}

static int udp_body(csn_gateway_net *n)
{

    EXPECT(refused_udp("192.0.2.53", 53) == 0);
    EXPECT(refused_udp("203.0.113.7", 443) == 0); /* QUIC */
    EXPECT(refused_udp("198.18.0.9", 443) == 0);
    EXPECT(refused_udp("198.18.0.1", 443) == 0);
    EXPECT(refused_udp("224.0.0.251", 5353) == 0);
    if (n->fds[CSN_GATEWAY_NET_DNS_UDP6] >= 0) {
        EXPECT(refused_udp("2001:db8::53", 53) == 0);
        EXPECT(refused_udp("fd63:6169:7373::9", 443) == 0);
    }
    return 0;
}

static void udp_to_elsewhere_fails_at_once(void **state)
{
    (void)state;
    in_transparent(udp_body);
}

static int icmp_body(csn_gateway_net *n)
{
    static const uint8_t echo[8] = {8, 0, 0xf7, 0xff};

    (void)n;
    int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
    EXPECT(fd >= 0); /* root of this namespace; nobody in a jail is */
    static const char *const targets[] = {"203.0.113.7", "198.18.0.1", "198.18.9.9"};
    for (size_t i = 0; i < 3; i++) {
        address to = at(targets[i], 0);
        EXPECT(sendto(fd, echo, sizeof(echo), 0, &to.any, len_of(&to)) == -1);
        EXPECT(errno == EPERM || errno == EACCES);
    }
    return 0;
}

static void icmp_is_refused(void **state)
{
    (void)state;
    in_transparent(icmp_body);
}

/* Whoever held the sockets is gone: nothing hangs. */
static int dead_body(csn_gateway_net *n)
{
    char c;

    csn_gateway_net_close(n);
    /* nor is a server of the sandbox's own taken for the network */
    address any = at("0.0.0.0", 443);
    int own = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(own >= 0 && bind(own, &any.any, len_of(&any)) == 0 && listen(own, 1) == 0);
    address web = at("203.0.113.7", 443), dns = at("198.18.0.1", 53);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(connect(fd, &web.any, len_of(&web)) == -1 && errno == ECONNREFUSED);
    int u = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    EXPECT(connect(u, &dns.any, len_of(&dns)) == 0 && send(u, "x", 1, 0) == 1);
    EXPECT(recv(u, &c, 1, 0) == -1 && errno == ECONNREFUSED);
    return 0;
}

static void without_a_gateway_everything_is_refused_at_once(void **state)
{
    (void)state;
    in_transparent(dead_body);
}

/* ---- the other orders ---- */

static int proxy_body(void *ctx)
{
    csn_gateway_net n;
    int rc = enter_with(&(csn_gateway_net_order){.mode = CSN_GATEWAY_NET_PROXY,
                                                 .host_port_count = 2,
                                                 .host_ports = {5432, 6379}},
                        &n);

    (void)ctx;
    if (rc != 0)
        return rc;
    EXPECT(n.mode == CSN_GATEWAY_NET_PROXY && n.lacking == 0);
    for (int i = 0; i < CSN_GATEWAY_NET_LISTENER; i++)
        EXPECT(n.fds[i] == -1);
    EXPECT(csn_port_probe(n.proxy_port) == 0);
    EXPECT(csn_port_probe(5432) == 0 && csn_port_probe(6379) == 0);
    EXPECT(csn_port_probe(5433) == -ECONNREFUSED);
    address out = at("203.0.113.7", 443);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(connect(fd, &out.any, len_of(&out)) == -1 && errno == ENETUNREACH);
    return 0;
}

static void a_proxy_needs_no_rules_and_no_routes(void **state)
{
    (void)state;
    run_child(proxy_body, NULL);
}

/* As a kernel without the module: no such netlink. */
static int no_netfilter(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 16),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 32),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 12, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPROTONOSUPPORT),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog prog = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) < 0)
        return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
}

static int lacking_body(void *ctx)
{
    csn_gateway_net n;
    int rc = enter();

    (void)ctx;
    if (rc != 0)
        return rc;
    EXPECT(no_netfilter() == 0);
    EXPECT(csn_gateway_net_build(&(csn_gateway_net_order){.mode = CSN_GATEWAY_NET_TRANSPARENT},
                                 &n) == -EPROTONOSUPPORT);
    EXPECT(n.step == CSN_GATEWAY_NET_STEP_RULES && n.detail == CSN_NFT_SOCKET);
    EXPECT(csn_gateway_net_build(&(csn_gateway_net_order){.mode = CSN_GATEWAY_NET_EITHER},
                                 &n) == 0);
    EXPECT(n.mode == CSN_GATEWAY_NET_PROXY && n.lacking == EPROTONOSUPPORT);
    EXPECT(n.fds[CSN_GATEWAY_NET_LISTENER] >= 0 && csn_port_probe(n.proxy_port) == 0);
    return 0;
}

static void without_nf_tables_only_either_falls_back_to_a_proxy(void **state)
{
    (void)state;
    run_child(lacking_body, NULL);
}

static int no_six_body(void *ctx)
{
    csn_gateway_net n;
    int rc = enter();

    (void)ctx;
    if (rc != 0)
        return rc;
    if (write_text("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1") != 0 && errno != ENOENT) {
        fprintf(stderr, "skipped: IPv6 cannot be switched off here\n");
        return SKIPPED_HERE;
    }
    translate = true;
    EXPECT(csn_gateway_net_build(
               &(csn_gateway_net_order){.mode = CSN_GATEWAY_NET_EITHER, .translate = true},
               &n) == 0);
    EXPECT(n.mode == CSN_GATEWAY_NET_TRANSPARENT || n.lacking != 0);
    EXPECT(n.fds[CSN_GATEWAY_NET_DNS_UDP6] == -1 && n.fds[CSN_GATEWAY_NET_DNS_TCP6] == -1);
    EXPECT(n.fds[CSN_GATEWAY_NET_TCP6] == -1);
    if (n.mode == CSN_GATEWAY_NET_TRANSPARENT)
        EXPECT(arrives(n.fds[CSN_GATEWAY_NET_TCP4], "203.0.113.7", 443) == 0);
    address to = at("2001:db8::7", 443);
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(fd < 0 || connect(fd, &to.any, len_of(&to)) == -1); /* and at once */
    return 0;
}

static void without_ipv6_there_is_an_ipv4_network(void **state)
{
    csn_child_end end = csn_child_run(no_six_body, NULL, -1, HUNG_MS);

    (void)state;
    if (end.exit_code == SKIPPED_HERE || end.exit_code == SKIPPED)
        skip();
    assert_int_equal(end.exit_code, 0);
}

static int no_right_body(void *ctx)
{
    csn_gateway_net n;
    int rc = enter();

    (void)ctx;
    if (rc != 0)
        return rc;
    EXPECT(unshare(CLONE_NEWUSER) == 0); /* as commands: root of nothing that matters */
    EXPECT(csn_gateway_net_build(&(csn_gateway_net_order){.mode = CSN_GATEWAY_NET_EITHER},
                                 &n) == -EPERM);
    for (int i = 0; i < CSN_GATEWAY_NET_SOCKETS; i++)
        EXPECT(n.fds[i] == -1);
    return 0;
}

static void missing_permission_does_not_fall_back_to_a_proxy(void **state)
{
    (void)state;
    run_child(no_right_body, NULL);
}

static int busy_body(void *ctx)
{
    csn_gateway_net n;
    csn_gateway_net_order o = {
        .mode = CSN_GATEWAY_NET_EITHER, .host_port_count = 2, .host_ports = {7000, 7000}};
    int rc = enter();

    (void)ctx;
    if (rc != 0)
        return rc;
    int before = dup(0);
    close(before);
    rc = csn_gateway_net_build(&o, &n);
    EXPECT(rc < 0);
    EXPECT(rc == -EADDRINUSE ? n.step == CSN_GATEWAY_NET_STEP_HOST_PORTS && n.detail == 7000
                             : true);
    int after = dup(0);
    EXPECT(after == before); /* nothing is left open */
    return 0;
}

static void failed_build_leaves_nothing_open(void **state)
{
    (void)state;
    run_child(busy_body, NULL);
}

static int fresh_body(void *ctx)
{
    int four = csn_gateway_net_tcp_socket(4), type = 0;
    socklen_t len = sizeof(type);

    (void)ctx;
    EXPECT(four >= 0 && (fcntl(four, F_GETFL) & O_NONBLOCK) != 0);
    EXPECT((fcntl(four, F_GETFD) & FD_CLOEXEC) != 0);
    EXPECT(getsockopt(four, SOL_SOCKET, SO_DOMAIN, &type, &len) == 0 && type == AF_INET);
    EXPECT(csn_gateway_net_tcp_socket(5) == -EINVAL &&
           csn_gateway_net_tcp_socket(0) == -EINVAL);
    return 0;
}

static void tcp_socket_has_the_requested_family(void **state)
{
    (void)state;
    run_child(fresh_body, NULL);
}

static int lines_missing(const char *text, const char *const *lines, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strstr(text, lines[i])) {
            fprintf(stderr, "missing: %s\nin: %s\n", lines[i], text);
            return 1;
        }
    return 0;
}

static int text_body(void *ctx)
{
    static const char *const both[] = {
        "ip daddr 127.0.0.0/8 accept",
        "ip daddr 198.18.0.1 tcp dport 53 accept",
        "type filter hook output priority filter; policy drop;",
        "ip saddr 198.18.0.1 udp sport 53 accept",
        "reject with icmpx admin-prohibited",
    };
    static const char *const taken[] = {
        "type filter hook prerouting priority mangle; policy accept;\n\t\ttcp flags",
        "meta nfproto ipv4 meta l4proto tcp tproxy ip to 198.18.0.1:1 accept",
        "meta nfproto ipv6 meta l4proto tcp tproxy ip6 to [fd63:6169:7373::1]:1 accept",
        "meta l4proto tcp reject with tcp reset",
        "meta l4proto tcp accept",
    };
    static const char *const translated[] = {
        "type nat hook output priority",
        "meta nfproto ipv4 meta l4proto tcp dnat ip to 198.18.0.1:1",
        "meta nfproto ipv6 meta l4proto tcp dnat ip6 to [fd63:6169:7373::1]:1",
        "meta l4proto tcp ip daddr 198.18.0.0/15 accept",
    };
    static char text[16384];
    csn_gateway_net n;
    int rc = enter_transparent(&n);

    (void)ctx;
    if (rc != 0)
        return rc;
    int out[2], end = 0;
    EXPECT(pipe(out) == 0);
    pid_t pid = fork();
    EXPECT(pid >= 0);
    if (pid == 0) {
        dup2(out[1], 1);
        execl("/usr/sbin/nft", "nft", "list", "ruleset", (char *)NULL);
        _exit(SKIPPED);
    }
    close(out[1]);
    size_t got = 0;
    for (ssize_t more; (more = read(out[0], text + got, sizeof(text) - 1 - got)) > 0;)
        got += (size_t)more;
    EXPECT(waitpid(pid, &end, 0) == pid);
    if (WIFEXITED(end) && WEXITSTATUS(end) == SKIPPED) {
        fprintf(stderr, "skipped: nft is not installed\n");
        return SKIPPED;
    }
    EXPECT(end == 0 && got > 0);
    if (!translate && !strstr(text, "tproxy"))
        return SKIPPED; /* this kernel has none */
    int missing = lines_missing(text, both, sizeof(both) / sizeof(both[0]));
    if (translate)
        return missing +
               lines_missing(text, translated, sizeof(translated) / sizeof(translated[0]));
    return missing + lines_missing(text, taken, sizeof(taken) / sizeof(taken[0]));
}

static void nft_lists_the_intended_rules(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        translate = i > 0;
        csn_child_end end = csn_child_run(text_body, NULL, -1, HUNG_MS);
        if (end.exit_code == SKIPPED)
            skip();
        assert_int_equal(end.exit_code, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tcp4_to_anywhere_arrives_at_the_listener),
        cmocka_unit_test(tcp6_to_anywhere_arrives_at_the_listener),
        cmocka_unit_test(one_source_port_reaches_many_addresses),
        cmocka_unit_test(loopback_is_untouched),
        cmocka_unit_test(resolver_is_reachable),
        cmocka_unit_test(udp_to_elsewhere_fails_at_once),
        cmocka_unit_test(icmp_is_refused),
        cmocka_unit_test(without_a_gateway_everything_is_refused_at_once),
        cmocka_unit_test(a_proxy_needs_no_rules_and_no_routes),
        cmocka_unit_test(without_nf_tables_only_either_falls_back_to_a_proxy),
        cmocka_unit_test(without_ipv6_there_is_an_ipv4_network),
        cmocka_unit_test(missing_permission_does_not_fall_back_to_a_proxy),
        cmocka_unit_test(failed_build_leaves_nothing_open),
        cmocka_unit_test(tcp_socket_has_the_requested_family),
        cmocka_unit_test(nft_lists_the_intended_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
