/* bench_net.c: what the gateway costs, against a direct loopback connection.
 *
 * The whole way: a network built like a jail's (os/netin), a name looked up at the stub, a
 * connection redirected, judged, its requests followed, relayed. Rounds are interleaved and the
 * numbers are medians. Prints one stream's throughput, keep-alive requests a second, the time
 * to set a connection up, and what ten thousand connections leave behind. Exits 1 when a budget
 * is missed.
 *
 *   bench_net [ROUNDS]
 *   bench_net serve        prints PORT, the address inside, the network's path, and waits: for
 *                          wrk on 127.0.0.1:PORT, and with nsenter --net=PATH on ADDRESS:PORT
 */
#include <dirent.h>
#include <sys/epoll.h>

#include "os/netin.h"
#include "unit/gateway_world.h"

#define STREAM_BYTES   (1024ull * 1024u * 1024u)
#define REQUESTS       30000u
#define CONNS          32u
#define SETUPS         2000u
#define CHURN          10000u
#define STREAM_BUDGET  0.45
#define REQUEST_BUDGET 0.5
#define SETUP_BUDGET   1.0 /* ms added */

static const char REQUEST[] = "GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n";
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

static void enter(int ns)
{
    if (setns(ns, CLONE_NEWNET) < 0)
        die("setns");
}

/* Connects directly (0) or from inside (1). */
static int reach(int side)
{
    if (side == 0)
        return gw_connect("127.0.0.1", port);
    enter(jail);
    int fd = gw_connect(INSIDE, port);
    enter(world);
    return fd;
}

/* ---- measuring --------------------------------------------------------------------------- */

static double seconds(uint64_t since)
{
    return (double)(csn_now_ns() - since) / 1e9;
}

static double measure_stream(int side)
{
    static char buf[256 * 1024];
    int fd = reach(side);
    uint64_t from = csn_now_ns(), got = 0;
    ssize_t n;

    if (fd < 0 || send(fd, "\1", 1, 0) != 1)
        die("stream");
    while ((n = recv(fd, buf, sizeof(buf), 0)) > 0)
        got += (uint64_t)n;
    close(fd);
    if (got != STREAM_BYTES)
        die("the stream is not whole");
    return (double)got / seconds(from) / 1e6;
}

/* Requests one after another on each of CONNS connections. */
static double measure_requests(int side)
{
    int ep = epoll_create1(EPOLL_CLOEXEC), fds[CONNS];
    struct epoll_event got[64];
    size_t done = 0, sent = 0;
    uint64_t from = csn_now_ns();
    char buf[4096];

    for (size_t i = 0; i < CONNS; i++) {
        fds[i] = reach(side);
        struct epoll_event ev = {.events = EPOLLIN, .data.fd = fds[i]};
        if (fds[i] < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, fds[i], &ev) < 0 ||
            send(fds[i], REQUEST, sizeof(REQUEST) - 1, 0) < 0)
            die("request");
        sent++;
    }
    while (done < sent) {
        int n = epoll_wait(ep, got, 64, GW_WAIT_MS);
        if (n == 0 || (n < 0 && errno != EINTR))
            die("no answer");
        for (int i = 0; i < n; i++) {
            if (recv(got[i].data.fd, buf, sizeof(buf), 0) <= 0)
                die("answer");
            done++;
            if (sent < REQUESTS && send(got[i].data.fd, REQUEST, sizeof(REQUEST) - 1, 0) > 0)
                sent++;
        }
    }
    double rate = (double)done / seconds(from);
    for (size_t i = 0; i < CONNS; i++)
        close(fds[i]);
    close(ep);
    return rate;
}

/* Milliseconds from connect to the first answer. */
static double measure_setup(int side, size_t count)
{
    uint64_t from = csn_now_ns();
    char buf[4096];

    for (size_t i = 0; i < count; i++) {
        int fd = reach(side);
        if (fd < 0 || send(fd, REQUEST, sizeof(REQUEST) - 1, 0) < 0 ||
            recv(fd, buf, sizeof(buf), 0) <= 0)
            die("set-up");
        struct linger now = {.l_onoff = 1};
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        close(fd);
    }
    return seconds(from) * 1000 / (double)count;
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
    struct sockaddr_in to = gw_addr("198.18.0.1", 53);
    uint8_t answer[512];

    enter(jail);
    int fd = gw_patient(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    enter(world);
    if (sendto(fd, q, sizeof(q) - 1, 0, (void *)&to, sizeof(to)) < 0 ||
        recv(fd, answer, sizeof(answer), 0) < 0)
        die("the stub");
    close(fd);
}

static pid_t start(void)
{
    static const char *const allow[] = {"ok.test", "127.0.0.1", NULL};
    csn_gate_setup s = {.rules.allow = (const char **)(uintptr_t)allow};
    csn_netin_order order = {.mode = CSN_NETIN_TRANSPARENT};
    int fds[CSN_NETIN_SOCKETS], n = 0;
    csn_netin net;
    const char *refused = world_enter("127.0.0.1 ok.test\n");

    if (refused)
        die(refused);
    int listener = gw_listen(&port);
    pid_t server = fork();
    if (server == 0)
        serve(listener);
    close(listener);
    world = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (unshare(CLONE_NEWNET) < 0 || !world_loopback_up() || csn_netin_build(&order, &net) < 0)
        die("the network of a jail");
    jail = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    enter(world);
    for (unsigned i = 0; i < CSN_NETIN_LISTENER; i++)
        if (net.fds[i] >= 0) {
            fds[n++] = net.fds[i];
            s.flags |= 1u << i;
        }
    gw_spawn(&gateway, gw_program());
    if (!gw_setup(&gateway, &s, fds, (size_t)n))
        die(gateway.failed);
    csn_netin_close(&net);
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

static int compare(size_t rounds)
{
    double v[2][3][64];
    double m[2][3];

    for (size_t r = 0; r < rounds; r++)
        for (size_t i = 0; i < 2; i++) {
            size_t side = (i + r) % 2;
            v[side][0][r] = measure_stream((int)side);
            v[side][1][r] = measure_requests((int)side);
            v[side][2][r] = measure_setup((int)side, SETUPS);
        }
    for (size_t side = 0; side < 2; side++)
        for (size_t k = 0; k < 3; k++)
            m[side][k] = median(v[side][k], rounds);
    printf("stream     direct %8.0f MB/s  gateway %8.0f MB/s  ratio %.2f\n", m[0][0], m[1][0],
           m[1][0] / m[0][0]);
    printf("requests   direct %8.0f /s    gateway %8.0f /s    ratio %.2f\n", m[0][1], m[1][1],
           m[1][1] / m[0][1]);
    printf("set-up     direct %8.3f ms    gateway %8.3f ms    added %.3f ms\n", m[0][2],
           m[1][2], m[1][2] - m[0][2]);
    return judge("stream", m[1][0] / m[0][0], STREAM_BUDGET, true) +
           judge("requests", m[1][1] / m[0][1], REQUEST_BUDGET, true) +
           judge("set-up", m[1][2] - m[0][2], SETUP_BUDGET, false);
}

int main(int argc, char **argv)
{
    size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 5;
    pid_t server = start();
    int missed = 0;

    if (argc > 1 && strcmp(argv[1], "serve") == 0) {
        printf("%u %s /proc/%d/fd/%d %d\n", port, INSIDE, getpid(), jail, gateway.pid);
        fflush(stdout);
        pause();
    }
    missed = compare(rounds < 1 ? 1 : rounds > 64 ? 64 : rounds);
    measure_cpu(server);
    (void)poll(NULL, 0, 200); /* the last ones are ending */
    long kb = memory_kb(gateway.pid);
    int fds = descriptors(gateway.pid);
    (void)measure_setup(1, CHURN);
    (void)poll(NULL, 0, 200);
    printf("10 000 connections: memory %ld -> %ld kB, descriptors %d -> %d\n", kb,
           memory_kb(gateway.pid), fds, descriptors(gateway.pid));
    missed += judge("descriptors", descriptors(gateway.pid) - fds, 0, false);
    kill(server, SIGKILL);
    (void)gw_end(&gateway);
    return missed > 0 ? 1 : 0;
}
