/* bench_net.c: what the gateway costs, against a direct loopback connection and beside others.
 *
 * The whole way: a network built like a jail's (os/netin), a name looked up at the stub, a
 * connection redirected, judged, its requests followed, relayed. Rounds are interleaved and the
 * numbers are medians. Prints one stream's throughput, keep-alive requests a second (of a
 * client of our own, and of wrk if there is one), the time to set a connection up, and what ten
 * thousand connections leave behind. slirp4netns, pasta and srt do the same work in the same
 * rounds, as far as they are installed (net_peers.h). Exits 1 when a budget is missed or one of
 * those is ahead.
 *
 *   bench_net [ROUNDS [alone]]
 *   bench_net serve        prints PORT, the address inside, the network's path, and waits: for
 *                          wrk on 127.0.0.1:PORT, and with nsenter --net=PATH on ADDRESS:PORT
 */
#include <dirent.h>
#include <sys/epoll.h>
#include <sys/prctl.h>

#include "bench/net_peers.h"
#include "os/gateway_net.h"
#include "unit/gateway_world.h"

#define STREAM_BYTES   (1024ull * 1024u * 1024u)
#define TORN_MAX       (STREAM_BYTES / 1024u) /* of a stream: what a peer may lose of its end */
#define REQUESTS       30000u
#define CONNS          32u
#define SETUPS         2000u
#define CHURN          10000u
#define STREAM_BUDGET  0.45
#define REQUEST_BUDGET 0.5
#define SETUP_BUDGET   1.0 /* ms added */

static const char ANSWER[] =
    "HTTP/1.1 200 OK\r\nContent-Length: 120\r\n\r\n"
    "0123456789012345678901234567890123456789012345678901234567890123456789"
    "01234567890123456789012345678901234567890123456789";

static void die(const char *what)
{
    fprintf(stderr, "bench_net: %s: %m\n", what);
    exit(2);
}

/* ---- the server: a process with one epoll loop ------------------------------------------ */

/* Sends an endless stream to who says S, an answer for each request to all others. */
static void stream(int fd)
{
    static char block[256 * 1024];

    (void)fcntl(fd, F_SETFL, 0);
    for (uint64_t left = STREAM_BYTES; left > 0;) {
        ssize_t n = send(fd, block, left < sizeof(block) ? left : sizeof(block), MSG_NOSIGNAL);
        if (n <= 0)
            break;
        left -= (uint64_t)n;
    }
    close(fd);
}

static void answer(int fd)
{
    char buf[4096];
    ssize_t n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);

    if (n == 0 || (n < 0 && errno != EAGAIN))
        close(fd);
    else if (n > 0 && buf[0] == 1)
        stream(fd);
    else if (n > 0 && send(fd, ANSWER, sizeof(ANSWER) - 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        close(fd);
}

static void serve(int listener)
{
    int ep = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = listener}, got[64];

    (void)fcntl(listener, F_SETFL, O_NONBLOCK);
    epoll_ctl(ep, EPOLL_CTL_ADD, listener, &ev);
    for (;;) {
        int n = epoll_wait(ep, got, 64, -1);
        for (int i = 0; i < n; i++) {
            if (got[i].data.fd != listener) {
                answer(got[i].data.fd);
                continue;
            }
            int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), on = 1;
            if (fd < 0)
                continue;
            (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
            ev.data.fd = fd;
            epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
        }
    }
}

/* ---- the two ways ------------------------------------------------------------------------ */

static gw gateway;
static int jail = -1, world = -1; /* network namespaces */
static uint16_t port;
#define INSIDE "198.18.0.2" /* the first name that is looked up */
enum { DIRECT, GATEWAY };
static net_way ways[NET_WAYS_MAX] = {{.name = "direct", .ns = -1, .address = "127.0.0.1"},
                                     {.name = "gateway", .address = INSIDE}};
static size_t nways = 2;
static unsigned torn[NET_WAYS_MAX]; /* streams whose end was lost on that way */

static void enter(int ns)
{
    if (setns(ns, CLONE_NEWNET) < 0)
        die("setns");
}

/* How many answers have begun in it. */
static size_t answers(const char *buf, size_t len)
{
    static const char mark[] = "HTTP/1.1 200";
    size_t n = 0;

    for (const char *p = buf; (p = memmem(p, len - (size_t)(p - buf), mark, sizeof(mark) - 1));
         p++)
        n++;
    return n;
}

/* ---- measuring --------------------------------------------------------------------------- */

static double seconds(uint64_t since)
{
    return (double)(csn_now_ns() - since) / 1e9;
}

static double measure_stream(int side)
{
    static char buf[256 * 1024];
    int fd = net_way_reach(&ways[side], world, true);
    uint64_t from = csn_now_ns(), got = 0;
    ssize_t n;

    if (fd < 0 || send(fd, "\1", 1, 0) != 1)
        die("stream");
    while ((n = recv(fd, buf, sizeof(buf), 0)) > 0)
        got += (uint64_t)n;
    close(fd);
    uint64_t least = side > GATEWAY ? STREAM_BYTES - TORN_MAX : STREAM_BYTES;
    if (got < least || got > STREAM_BYTES) {
        fprintf(stderr, "bench_net: %s: the stream is not whole\n", ways[side].name);
        exit(2);
    }
    torn[side] += got != STREAM_BYTES;
    return (double)got / seconds(from) / 1e6;
}

/* Requests one after another on each of CONNS connections. */
static double measure_requests(int side)
{
    int ep = epoll_create1(EPOLL_CLOEXEC), fds[CONNS];
    struct epoll_event got[64];
    size_t done = 0, sent = 0;
    uint64_t from = csn_now_ns();
    char buf[4096], ask[NET_ASK_MAX];
    size_t ask_len = net_way_ask(&ways[side], ask);

    for (size_t i = 0; i < CONNS; i++) {
        fds[i] = net_way_reach(&ways[side], world, false);
        struct epoll_event ev = {.events = EPOLLIN, .data.fd = fds[i]};
        if (fds[i] < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, fds[i], &ev) < 0 ||
            send(fds[i], ask, ask_len, 0) < 0)
            die("request");
        sent++;
    }
    while (done < sent) {
        int n = epoll_wait(ep, got, 64, GW_WAIT_MS);
        if (n == 0 || (n < 0 && errno != EINTR))
            die("no answer");
        for (int i = 0; i < n; i++) {
            ssize_t len = recv(got[i].data.fd, buf, sizeof(buf), 0);
            if (len <= 0)
                die("answer");
            size_t begun = answers(buf, (size_t)len);
            done += begun;
            if (begun && sent < REQUESTS && send(got[i].data.fd, ask, ask_len, 0) > 0)
                sent++;
        }
    }
    double rate = (double)done / seconds(from);
    for (size_t i = 0; i < CONNS; i++)
        close(fds[i]);
    close(ep);
    return rate;
}

static double measure_wrk(int side)
{
    return net_way_wrk(&ways[side], CONNS);
}

/* Milliseconds from connect to the first answer. */
static double measure_setup(int side, size_t count)
{
    uint64_t from = csn_now_ns();
    char buf[4096], ask[NET_ASK_MAX];
    size_t ask_len = net_way_ask(&ways[side], ask);

    for (size_t i = 0; i < count; i++) {
        int fd = net_way_reach(&ways[side], world, false);
        ssize_t n =
            fd >= 0 && send(fd, ask, ask_len, 0) > 0 ? recv(fd, buf, sizeof(buf), 0) : 0;
        if (n <= 0 || answers(buf, (size_t)n) != 1)
            die("set-up");
        struct linger now = {.l_onoff = 1};
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        close(fd);
    }
    return seconds(from) * 1000 / (double)count;
}

static double measure_setups(int side)
{
    return measure_setup(side, SETUPS);
}

/* Seconds of processor time that a process has used; less than the clock says it took, and the
 * same on a machine that is busy with other things. */
static double cpu_of(pid_t pid)
{
    char path[64], line[512];
    unsigned long user = 0, sys = 0;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    const char *after = f && fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
    if (after)
        (void)sscanf(after, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                     &sys);
    if (f)
        fclose(f);
    return (double)(user + sys) / (double)sysconf(_SC_CLK_TCK);
}

/* Microseconds of processor time a request costs each party: the program, the server, us. The
 * least of several rounds: what others do to the caches only ever adds. */
static void measure_cpu(pid_t server)
{
    pid_t who[3] = {getpid(), server, gateway.pid};
    double least[2][3] = {{1e9, 1e9, 1e9}, {1e9, 1e9, 1e9}};

    for (int round = 0; round < 16; round++) {
        double before[3], *min = least[round % 2];
        for (int i = 0; i < 3; i++)
            before[i] = cpu_of(who[i]);
        (void)measure_requests(round % 2);
        for (int i = 0; i < 3; i++) {
            double cost = (cpu_of(who[i]) - before[i]) * 1e6 / REQUESTS;
            min[i] = cost < min[i] ? cost : min[i];
        }
    }
    for (int side = 0; side < 2; side++)
        printf("a request  %-8s program %.1f us  server %.1f us  gateway %.1f us\n",
               side == 0 ? "direct" : "gateway", least[side][0], least[side][1],
               least[side][2]);
}

static long memory_kb(pid_t pid)
{
    char path[64], line[128];
    long kb = -1;

    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "VmRSS: %ld", &kb) == 1)
            break;
    if (f)
        fclose(f);
    return kb;
}

static int descriptors(pid_t pid)
{
    char path[64];
    int n = 0;

    snprintf(path, sizeof(path), "/proc/%d/fd", pid);
    DIR *d = opendir(path);
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
    qsort(v, n, sizeof(*v), by_value);
    return v[n / 2];
}

/* The stub gives the first name the address INSIDE. */
static void look_up(void)
{
    static const uint8_t q[] = "\1\1\1\0\0\1\0\0\0\0\0\0\2ok\4test\0\0\1\0\1";
    struct sockaddr_in to = gwt_addr("198.18.0.1", 53);
    uint8_t answer[512];

    enter(jail);
    int fd = gwt_patient(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    enter(world);
    if (sendto(fd, q, sizeof(q) - 1, 0, (void *)&to, sizeof(to)) < 0 ||
        recv(fd, answer, sizeof(answer), 0) < 0)
        die("the stub");
    close(fd);
}

static pid_t start(void)
{
    static const char *const allow[] = {NET_NAME, "127.0.0.1", NULL};
    csn_gateway_setup_msg s = {.rules.allow = (const char **)(uintptr_t)allow};
    csn_gateway_net_order order = {.mode = CSN_GATEWAY_NET_TRANSPARENT};
    int fds[CSN_GATEWAY_NET_SOCKETS], n = 0;
    csn_gateway_net net;
    const char *refused = world_enter("127.0.0.1 " NET_NAME " localhost\n");

    if (refused)
        die(refused);
    int listener = gwt_listen(&port);
    pid_t server = fork();
    if (server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve(listener);
    }
    close(listener);
    world = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (unshare(CLONE_NEWNET) < 0 || !world_loopback_up() ||
        csn_gateway_net_build(&order, &net) < 0)
        die("the network of a jail");
    jail = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    enter(world);
    for (unsigned i = 0; i < CSN_GATEWAY_NET_LISTENER; i++)
        if (net.fds[i] >= 0) {
            fds[n++] = net.fds[i];
            s.flags |= 1u << i;
        }
    gwt_spawn(&gateway, gwt_program());
    if (!gwt_setup(&gateway, &s, fds, (size_t)n))
        die(gateway.failed);
    csn_gateway_net_close(&net);
    look_up();
    return server;
}

static int judge(const char *what, double value, double budget, bool above)
{
    bool good = above ? value >= budget : value <= budget;

    if (!good)
        printf("%s: %.2f misses the budget of %.2f\n", what, value, budget);
    return good ? 0 : 1;
}

enum { STREAM, REQUESTS_OWN, REQUESTS_WRK, SETUP, KINDS };
static const struct {
    const char *name, *unit;
    double (*measure)(int side);
    bool less; /* is better */
} kinds[KINDS] = {[STREAM] = {"stream", "MB/s", measure_stream, false},
                  [REQUESTS_OWN] = {"requests", "/s", measure_requests, false},
                  [REQUESTS_WRK] = {"wrk", "/s", measure_wrk, false},
                  [SETUP] = {"set-up", "ms", measure_setups, true}};

/* How many of the others were ahead of the gateway. */
static int print_kind(size_t kind, const double *m)
{
    int ahead = 0;

    if (m[GATEWAY] <= 0) {
        printf("%-9s not measured: it is not installed\n", kinds[kind].name);
        return 0;
    }
    for (size_t w = 0; w < nways; w++) {
        bool behind = kinds[kind].less ? m[w] < m[GATEWAY] : m[w] > m[GATEWAY];
        if (m[w] <= 0) {
            printf("%-9s %-12s %10s        %s\n", kinds[kind].name, ways[w].name, "-",
                   ways[w].target ? "it cannot go by a proxy" : "it got no answer");
            continue;
        }
        printf("%-9s %-12s %10.3f %-5s  %.2f of direct\n", kinds[kind].name, ways[w].name, m[w],
               kinds[kind].unit, m[w] / m[DIRECT]);
        if (kind == STREAM && torn[w])
            printf("stream: %s lost the end of %u\n", ways[w].name, torn[w]);
        if (w > GATEWAY && behind) {
            printf("%s: %s is ahead of the gateway\n", kinds[kind].name, ways[w].name);
            ahead++;
        }
    }
    return ahead;
}

static int compare(size_t rounds)
{
    static double v[NET_WAYS_MAX][KINDS][64];
    double m[KINDS][NET_WAYS_MAX];
    int missed = 0;

    for (size_t r = 0; r < rounds; r++)
        for (size_t i = 0; i < nways; i++) {
            size_t side = (i + r) % nways;
            for (size_t k = 0; k < KINDS; k++)
                v[side][k][r] = kinds[k].measure((int)side);
        }
    for (size_t k = 0; k < KINDS; k++) {
        for (size_t w = 0; w < nways; w++)
            m[k][w] = median(v[w][k], rounds);
        missed += print_kind(k, m[k]);
    }
    printf("added to a connection: %.3f ms\n", m[SETUP][GATEWAY] - m[SETUP][DIRECT]);
    if (m[REQUESTS_WRK][DIRECT] > 0)
        missed += judge("wrk", m[REQUESTS_WRK][GATEWAY] / m[REQUESTS_WRK][DIRECT],
                        REQUEST_BUDGET, true);
    return missed +
           judge("stream", m[STREAM][GATEWAY] / m[STREAM][DIRECT], STREAM_BUDGET, true) +
           judge("requests", m[REQUESTS_OWN][GATEWAY] / m[REQUESTS_OWN][DIRECT], REQUEST_BUDGET,
                 true) +
           judge("set-up", m[SETUP][GATEWAY] - m[SETUP][DIRECT], SETUP_BUDGET, false);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], NET_INSIDE) == 0)
        return net_peers_inside();
    size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 5;
    pid_t server = start();
    int missed = 0;

    if (argc > 1 && strcmp(argv[1], "serve") == 0) {
        printf("%u %s /proc/%d/fd/%d %d\n", port, INSIDE, getpid(), jail, gateway.pid);
        fflush(stdout);
        pause();
    }
    ways[DIRECT].port = ways[GATEWAY].port = port;
    ways[GATEWAY].ns = jail;
    if (argc < 3)
        nways += net_peers_start(ways + nways, NET_WAYS_MAX - nways, world, port);
    missed = compare(rounds < 1 ? 1 : rounds > 64 ? 64 : rounds);
    measure_cpu(server);
    (void)poll(NULL, 0, 200); /* the last ones are ending */
    long kb = memory_kb(gateway.pid);
    int fds = descriptors(gateway.pid);
    (void)measure_setup(1, CHURN);
    (void)poll(NULL, 0, 200);
    printf("10 000 connections: memory %ld -> %ld kB, descriptors %d -> %d\n", kb,
           memory_kb(gateway.pid), fds, descriptors(gateway.pid));
    net_peers_end(ways, nways);
    missed += judge("descriptors", descriptors(gateway.pid) - fds, 0, false);
    kill(server, SIGKILL);
    (void)gwt_end(&gateway);
    return missed > 0 ? 1 : 0;
}
