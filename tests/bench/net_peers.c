/* net_peers.c: other ways out of a network namespace, for bench_net to measure beside ours.
 *
 * slirp4netns and pasta carry packets between a tap device and sockets; srt has programs inside
 * speak to a proxy. Each reaches the very server that the others reach. What is not installed
 * or does not start is left out, by name. */
#include "bench/net_peers.h"

#include <errno.h>
#include <fcntl.h>
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

#include "unit/gateway_room.h"

#define TRIES 100 /* of 50 ms, until it carries something */

static void enter(int ns)
{
    if (ns >= 0 && setns(ns, CLONE_NEWNET) < 0)
        gw_die("setns");
}

/* CONNECT, and the head of the answer. */
static int ask_proxy(int fd, uint16_t target)
{
    char buf[1024];
    size_t len = 0;
    int n =
        snprintf(buf, sizeof(buf),
                 "CONNECT 127.0.0.1:%u HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n", target, target);

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
    int fd = gw_connect(w->address, w->port);
    if (w->ns >= 0)
        enter(world);
    if (fd >= 0 && tunnel && w->target && ask_proxy(fd, w->target) < 0) {
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

static void forget_name(const net_way *w)
{
    if (w->path[0] != '\0' && umount2(w->path, MNT_DETACH) == 0)
        unlink(w->path);
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

static int works(const net_way *w, int world)
{
    int good = carries(w, world);

    forget_name(w);
    if (!good) {
        kill(w->pid, SIGKILL);
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
        gw_die("a name for a network");
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

/* Only its proxy: the two relays by which its sandbox reaches that are left out. */
static net_way srt(const char *where, uint16_t port)
{
    static const char script[] =
        "import(process.argv[1] + '/dist/sandbox/http-proxy.js').then(m => "
        "m.createHttpProxyServer({filter: () => true}).listen(+process.argv[2], '127.0.0.1'))";
    net_way w = {.name = "srt's proxy", .ns = -1, .address = "127.0.0.1", .target = port};
    char text[8];

    close(gw_listen(&w.port)); /* one that is free */
    snprintf(text, sizeof(text), "%u", w.port);
    w.pid = run((const char *[]){"node", "-e", script, where, text, NULL});
    return w;
}

size_t net_peers_start(net_way *ret, size_t max, int world, uint16_t port)
{
    const char *where = getenv("CSN_BENCH_SRT");
    size_t n = 0;

    for (int which = 0; which < 3 && n < max; which++) {
        if (which == 2 && !where)
            continue;
        ret[n] = which == 0   ? slirp(world, port)
                 : which == 1 ? pasta(world, port)
                              : srt(where, port);
        n += works(&ret[n], world) ? 1 : 0;
    }
    return n;
}

void net_peers_end(const net_way *ways, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (ways[i].pid > 0) {
            kill(ways[i].pid, SIGKILL);
            waitpid(ways[i].pid, NULL, 0);
        }
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
        execlp("wrk", "wrk", "-t1", count, "-d2s", "-H", "Host: ok.test", url, NULL);
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
