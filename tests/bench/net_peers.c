/* net_peers.c: other ways out of a network namespace, for bench_net to measure beside ours.
 *
 * slirp4netns and pasta carry packets between a tap device and sockets; srt has programs inside
 * speak to a proxy, by two relays. Each reaches the very server that the others reach. What is
 * not installed or does not start is left out, by name. */
#include "bench/net_peers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base64.h"
#include "os/msg.h"
#include "unit/gateway_fixture.h"

#define TRIES 100 /* of 50 ms, until it carries something */

static void enter(int ns)
{
    if (ns >= 0 && setns(ns, CLONE_NEWNET) < 0)
        gwt_die("setns");
}

size_t net_way_ask(const net_way *w, char ret[NET_ASK_MAX])
{
    char whole[64] = "";

    if (w->target && !w->tunnel)
        snprintf(whole, sizeof(whole), "http://" NET_NAME ":%u", w->target);
    return (size_t)snprintf(ret, NET_ASK_MAX,
                            "GET %s/ HTTP/1.1\r\nHost: " NET_NAME "\r\n%s\r\n", whole,
                            whole[0] ? w->auth : "");
}

/* CONNECT, and the head of the answer. */
static int ask_proxy(int fd, const net_way *w)
{
    char buf[1024];
    size_t len = 0;
    int n = snprintf(buf, sizeof(buf),
                     "CONNECT " NET_NAME ":%u HTTP/1.1\r\nHost: " NET_NAME ":%u\r\n%s\r\n",
                     w->target, w->target, w->auth);

    if (send(fd, buf, (size_t)n, MSG_NOSIGNAL) != n)
        return -1;
    while (len < sizeof(buf) - 1) {
        ssize_t got = recv(fd, buf + len, 1, 0);
        if (got <= 0)
            return -1;
        buf[++len] = '\0';
        if (len > 4 && strcmp(buf + len - 4, "\r\n\r\n") == 0)
            return strstr(buf, " 200 ") ? 0 : -1;
    }
    return -1;
}

int net_way_reach(const net_way *w, int world, bool tunnel)
{
    enter(w->ns);
    int fd = gwt_connect(w->address, w->port);
    if (w->ns >= 0)
        enter(world);
    if (fd >= 0 && (tunnel || w->tunnel) && w->target && ask_proxy(fd, w) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static pid_t run(const char *const *argv)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(null, 1);
    dup2(null, 2);
    execvp(argv[0], (char *const *)(uintptr_t)argv);
    _exit(127);
}

static int new_network(int world)
{
    int ns = unshare(CLONE_NEWNET) == 0 ? open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC) : -1;

    enter(world);
    return ns;
}

static void forget_name(net_way *w)
{
    if (w->path[0] != '\0' && umount2(w->path, MNT_DETACH) == 0)
        (void)remove(w->path);
    w->path[0] = '\0';
}

/* Who has others to end is not killed but told. */
static void end(net_way *w)
{
    if (w->link > 0)
        close(w->link);
    else if (w->pid > 0)
        kill(w->pid, SIGKILL);
    for (int i = 0; w->pid > 0 && waitpid(w->pid, NULL, WNOHANG) == 0; i++) {
        if (i == TRIES)
            kill(w->pid, SIGKILL);
        (void)poll(NULL, 0, 50);
    }
    forget_name(w);
}

static int carries(const net_way *w, int world)
{
    for (int i = 0; i < TRIES && waitpid(w->pid, NULL, WNOHANG) == 0; i++) {
        int fd = net_way_reach(w, world, true);
        if (fd >= 0) {
            close(fd);
            return 1;
        }
        (void)poll(NULL, 0, 50);
    }
    return 0;
}

static int works(net_way *w, int world)
{
    int good = carries(w, world);

    if (w->link == 0)
        forget_name(w);
    if (!good) {
        end(w);
        printf("%s: not here, or it does not start: left out\n", w->name);
    }
    return good;
}

static net_way slirp(int world, uint16_t port)
{
    net_way w = {.name = "slirp4netns", .address = "10.0.2.2", .port = port};
    char path[64];

    w.ns = new_network(world);
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), w.ns);
    w.pid = run((const char *[]){"slirp4netns", "--configure", "--mtu=65520", "--disable-dns",
                                 "--netns-type=path", path, "tap0", NULL});
    return w;
}

/* A name for a network that who may not look at us can open: pasta gives its rights away first.
 */
static void name_network(int ns, char path[64])
{
    char from[64];

    snprintf(path, 64, "/tmp/caisson-bench-net-XXXXXX");
    int fd = mkstemp(path);
    snprintf(from, sizeof(from), "/proc/self/fd/%d", ns);
    if (fd < 0 || mount(from, path, NULL, MS_BIND, NULL) < 0)
        gwt_die("a name for a network");
    close(fd);
}

/* pasta copies the addresses of an interface and takes its gateway for the host. */
static void make_link(void)
{
    static const char *const lines[] = {
        "link add bench0 type veth peer name bench1", "addr add 10.77.0.1/24 dev bench0",
        "link set bench0 up", "link set bench1 up", "route add default via 10.77.0.254"};

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        char command[128];
        snprintf(command, sizeof(command), "PATH=$PATH:/usr/sbin:/sbin exec ip %s", lines[i]);
        pid_t pid = run((const char *[]){"sh", "-c", command, NULL});
        waitpid(pid, NULL, 0);
    }
}

static net_way pasta(int world, uint16_t port)
{
    net_way w = {.name = "pasta", .address = "10.77.0.254", .port = port};
    char *path = w.path;

    make_link();
    w.ns = new_network(world);
    name_network(w.ns, path);
    w.pid = run((const char *[]){"pasta", "-f", "--no-netns-quit", "--config-net", "-4", "-m",
                                 "65520", "-t", "none", "-u", "none", "-T", "none", "-U",
                                 "none", "--netns", path, NULL});
    return w;
}

/* ---- srt --------------------------------------------------------------------------------- */

/* The program itself, not a link to it: what belongs to it lies beside. */
static bool find_srt(char ret[PATH_MAX])
{
    const char *named = getenv("CSN_BENCH_SRT"), *path = getenv("PATH");

    if (named)
        return realpath(named, ret);
    for (; path && *path; path += *path == ':') {
        char file[PATH_MAX];
        int len = (int)strcspn(path, ":");
        snprintf(file, sizeof(file), "%.*s/srt", len, path);
        if (access(file, X_OK) == 0)
            return realpath(file, ret);
        path += len;
    }
    return false;
}

/* A directory that leaves nothing behind, with the settings in it. */
static bool make_room(char path[64])
{
    static const char settings[] =
        "{\"network\": {\"allowedDomains\": [\"" NET_NAME
        "\", \"127.0.0.1\"], \"deniedDomains\": []},"
        " \"filesystem\": {\"denyRead\": [], \"allowWrite\": [], \"denyWrite\": []}}";
    char file[80];

    snprintf(path, 64, "/tmp/caisson-bench-net-XXXXXX");
    if (!mkdtemp(path) || mount("none", path, "tmpfs", 0, NULL) < 0)
        gwt_die("a room for srt");
    snprintf(file, sizeof(file), "%s/settings", path);
    FILE *f = fopen(file, "we");
    bool good = f && fputs(settings, f) >= 0;
    return f && fclose(f) == 0 && good;
}

int net_peers_inside(void)
{
    const char *proxy = getenv("HTTP_PROXY");
    int ns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    char byte;

    if (!proxy || csn_msg_send(1, 1, proxy, strlen(proxy), &ns, 1, 0) < 0)
        return 1;
    (void)!read(1, &byte, 1);
    return 0;
}

/* Of http://USER:WORD@HOST:PORT the user and the word, as a proxy wants to be told. */
static void set_auth(net_way *w, const char *proxy)
{
    char plain[256], code[sizeof(plain) * 4 / 3 + 8];
    const char *at = strrchr(proxy, '@'), *p = proxy + strlen("http://");
    size_t n = 0;

    for (; at && p < at && n < sizeof(plain); p++) {
        unsigned byte = (unsigned char)*p;
        if (*p == '%' && sscanf(p + 1, "%2x", &byte) == 1)
            p += 2;
        plain[n++] = (char)byte;
    }
    csn_base64_encode(plain, n, code);
    if (at)
        snprintf(w->auth, sizeof(w->auth), "Proxy-Authorization: Basic %s\r\n", code);
}

/* srt as it is: this program runs in it for as long as the link is open, and sends out its
 * network and what it was told of the proxy. The link is its standard output; a shell whose
 * input is a socket would think that it was called from afar. */
static pid_t run_srt(const char *command, const char *room, int out)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    pid_t pid = n > 0 ? fork() : -1;

    if (pid != 0)
        return pid;
    self[n] = '\0';
    int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(out, 1);
    dup2(null, 2);
    if (chdir(room) == 0 && setenv("TMPDIR", room, 1) == 0)
        execl(command, "srt", "--settings", "settings", self, NET_INSIDE, NULL);
    _exit(127);
}

static net_way srt(const char *command, uint16_t port)
{
    net_way w = {.name = "srt", .ns = -1, .address = "127.0.0.1", .port = 3128, .target = port};
    uint8_t packet[2048];
    char proxy[1024];
    csn_msg m = {0};
    int pair[2];

    if (!make_room(w.path) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        gwt_die("a room for srt");
    w.link = pair[0];
    w.pid = run_srt(command, w.path, pair[1]);
    close(pair[1]);
    if (csn_msg_await(w.link, csn_deadline_in(GW_WAIT_MS), packet, sizeof(packet), &m) == 1) {
        w.ns = csn_msg_take_fd(&m, 0);
        snprintf(proxy, sizeof(proxy), "%.*s", (int)m.len, (const char *)m.body);
        set_auth(&w, proxy);
        csn_msg_release(&m);
    }
    return w;
}

/* Only its proxy, which is asked for nothing but to carry. */
static net_way srt_proxy(const char *command, uint16_t port)
{
    static const char script[] =
        "import(require('path').dirname(process.argv[1]) + '/sandbox/http-proxy.js').then(m => "
        "m.createHttpProxyServer({filter: () => true}).listen(+process.argv[2], '127.0.0.1'))";
    net_way w = {.name = "srt's proxy", .ns = -1, .address = "127.0.0.1", .target = port};
    char text[8];

    close(gwt_listen(&w.port)); /* one that is free */
    snprintf(text, sizeof(text), "%u", w.port);
    w.pid = run((const char *[]){"node", "-e", script, command, text, NULL});
    return w;
}

static size_t start_srt(net_way *ret, size_t max, int world, uint16_t port)
{
    char command[PATH_MAX];
    size_t n = 0;

    if (!find_srt(command)) {
        printf("srt: not on PATH, nor is it $CSN_BENCH_SRT: left out\n");
        return 0;
    }
    if (max < 3)
        return 0;
    ret[n] = srt(command, port);
    if (works(&ret[n], world)) {
        ret[1] = ret[0];
        ret[1].name = "srt CONNECT";
        ret[1].tunnel = true;
        ret[1].pid = ret[1].link = 0;
        ret[1].path[0] = '\0';
        n = 2;
    }
    ret[n] = srt_proxy(command, port);
    return n + (works(&ret[n], world) ? 1 : 0);
}

size_t net_peers_start(net_way *ret, size_t max, int world, uint16_t port)
{
    size_t n = 0;

    for (int which = 0; which < 2 && n < max; which++) {
        ret[n] = which == 0 ? slirp(world, port) : pasta(world, port);
        n += works(&ret[n], world) ? 1 : 0;
    }
    return n + start_srt(ret + n, max - n, world, port);
}

void net_peers_end(net_way *ways, size_t n)
{
    for (size_t i = 0; i < n; i++)
        end(&ways[i]);
}

double net_way_wrk(const net_way *w, unsigned connections)
{
    char count[16], url[64], line[256];
    double rate = 0;
    int out[2];

    if (w->target || pipe2(out, O_CLOEXEC) < 0)
        return 0;
    snprintf(count, sizeof(count), "-c%u", connections);
    snprintf(url, sizeof(url), "http://%s:%u/", w->address, w->port);
    pid_t pid = fork();
    if (pid == 0) {
        enter(w->ns);
        dup2(out[1], 1);
        execlp("wrk", "wrk", "-t1", count, "-d2s", "-H", "Host: " NET_NAME, url, NULL);
        _exit(127);
    }
    close(out[1]);
    FILE *f = fdopen(out[0], "r");
    while (f && fgets(line, sizeof(line), f))
        (void)sscanf(line, "Requests/sec: %lf", &rate);
    if (f)
        fclose(f);
    waitpid(pid, NULL, 0);
    return rate;
}
