/* calls_ipc.c: how programs on one machine talk: sockets, pipes, queues, shared memory. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <mqueue.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"

#define PAGE 4096

/* ---- unix sockets ---- */

static int echo_once(int listener, const struct sockaddr *to, socklen_t len, int type)
{
    char buf[4] = "";
    int client = socket(to->sa_family, type | SOCK_CLOEXEC, 0);

    TRY(client >= 0 && listen(listener, 5) == 0 && connect(client, to, len) == 0);
    int served = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    TRY(served >= 0 && send(client, "hi", 2, MSG_NOSIGNAL) == 2 &&
        recv(served, buf, 4, 0) == 2);
    TRY(shutdown(client, SHUT_RDWR) == 0);
    close(client);
    close(served);
    return strcmp(buf, "hi") != 0;
}

static int unix_named(const char *path, socklen_t len, int type)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int s = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

    memcpy(a.sun_path, path, len);
    len += offsetof(struct sockaddr_un, sun_path);
    TRY(s >= 0 && bind(s, (struct sockaddr *)&a, len) == 0);
    return echo_once(s, (struct sockaddr *)&a, len, type);
}

static int unix_path(void)
{
    return unix_named("sock", 5, SOCK_STREAM) || unix_named("/tmp/seq", 9, SOCK_SEQPACKET);
}

static int unix_abstract(void)
{
    return unix_named("\0one", 4, SOCK_STREAM) || unix_named("\0two", 4, SOCK_SEQPACKET);
}

static int pass_descriptor(void)
{
    int pair[2], got;
    char byte = 'x', control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = {0};
    struct iovec io = {&byte, 1};
    struct msghdr m = {.msg_iov = &io,
                       .msg_iovlen = 1,
                       .msg_control = control,
                       .msg_controllen = sizeof(control)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    struct ucred peer;
    socklen_t len = sizeof(peer);

    TRY(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    *c = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(c), &pair[0], sizeof(int));
    TRY(sendmsg(pair[0], &m, 0) == 1 && recvmsg(pair[1], &m, MSG_CMSG_CLOEXEC) == 1);
    memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(int));
    TRY(fcntl(got, F_GETFD) >= 0);
    TRY(getsockopt(pair[1], SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == getuid());
    return 0;
}

/* ---- internet sockets, on loopback ---- */

static int loopback(int family, int type, struct sockaddr_storage *a, socklen_t *len)
{
    struct sockaddr_in *four = (struct sockaddr_in *)a;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)a;
    int one = 1, s = socket(family, type | SOCK_CLOEXEC, 0);

    memset(a, 0, sizeof(*a));
    a->ss_family = (sa_family_t)family;
    if (family == AF_INET)
        four->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else
        six->sin6_addr = in6addr_loopback;
    *len = family == AF_INET ? sizeof(*four) : sizeof(*six);
    if (s < 0 || setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
        bind(s, (struct sockaddr *)a, *len) < 0 ||
        getsockname(s, (struct sockaddr *)a, len) < 0)
        return -1;
    return s;
}

static int tcp(int family)
{
    struct sockaddr_storage a;
    socklen_t len;
    int one = 1, s = loopback(family, SOCK_STREAM, &a, &len);

    TRY(s >= 0 && setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0);
    TRY(setsockopt(s, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one)) == 0);
    return echo_once(s, (struct sockaddr *)&a, len, SOCK_STREAM);
}

static int udp(int family)
{
    struct sockaddr_storage a;
    socklen_t len;
    char buf[4] = "";
    int s = loopback(family, SOCK_DGRAM, &a, &len);
    int c = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    TRY(s >= 0 && c >= 0 && sendto(c, "hi", 2, 0, (struct sockaddr *)&a, len) == 2);
    TRY(recv(s, buf, sizeof(buf), 0) == 2 && strcmp(buf, "hi") == 0);
    return 0;
}

static int tcp4(void)
{
    return tcp(AF_INET);
}

static int tcp6(void)
{
    return tcp(AF_INET6);
}

static int udp4(void)
{
    return udp(AF_INET);
}

static int udp6(void)
{
    return udp(AF_INET6);
}

static int interfaces(void)
{
    struct ifaddrs *list;
    bool four = false, six = false;

    TRY(getifaddrs(&list) == 0);
    for (struct ifaddrs *i = list; i; i = i->ifa_next) {
        TRY(strcmp(i->ifa_name, "lo") == 0);
        four = four || (i->ifa_addr && i->ifa_addr->sa_family == AF_INET);
        six = six || (i->ifa_addr && i->ifa_addr->sa_family == AF_INET6);
    }
    freeifaddrs(list);
    TRY(four && six);
    return 0;
}

static int names(void)
{
    struct addrinfo *list, hint = {.ai_socktype = SOCK_STREAM};

    TRY(getaddrinfo("localhost", "http", &hint, &list) == 0 && list);
    freeaddrinfo(list);
    TRY(getservbyname("https", "tcp") && getprotobyname("udp"));
    return 0;
}

/* ---- pipes and descriptors that wait ---- */

static int pipes(void)
{
    int p[2];
    char buf[2];

    TRY(pipe2(p, O_CLOEXEC | O_NONBLOCK) == 0 && fcntl(p[1], F_SETPIPE_SZ, 1 << 20) == 1 << 20);
    TRY(read(p[0], buf, 1) < 0 && errno == EAGAIN && write(p[1], "x", 1) == 1);
    TRY(read(p[0], buf, 2) == 1);
    TRY(mkfifo("fifo", 0600) == 0 && open("fifo", O_RDWR | O_CLOEXEC) >= 0);
    return 0;
}

static int memory_file(void)
{
    int fd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    TRY(fd >= 0 && ftruncate(fd, PAGE) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
    TRY(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED);
    return 0;
}

static int waiting(void)
{
    const struct itimerspec soon = {.it_value = {.tv_nsec = 1000000}};
    struct epoll_event ev = {.events = EPOLLIN}, got[4];
    sigset_t set;
    uint64_t n = 1;
    int ep = epoll_create1(EPOLL_CLOEXEC), event = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    TRY(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    int sig = signalfd(-1, &set, SFD_CLOEXEC);
    TRY(ep >= 0 && event >= 0 && timer >= 0 && sig >= 0);
    TRY(write(event, &n, sizeof(n)) == sizeof(n) && kill(getpid(), SIGUSR1) == 0);
    TRY(timerfd_settime(timer, 0, &soon, NULL) == 0 && read(timer, &n, sizeof(n)) == sizeof(n));
    TRY(epoll_ctl(ep, EPOLL_CTL_ADD, event, &ev) == 0 &&
        epoll_ctl(ep, EPOLL_CTL_ADD, sig, &ev) == 0);
    TRY(epoll_wait(ep, got, 4, 10000) == 2);
    return 0;
}

/* ---- queues, semaphores, shared memory ---- */

static int posix_queue(void)
{
    struct mq_attr attr = {.mq_maxmsg = 4, .mq_msgsize = 16};
    char buf[16];
    mqd_t q = mq_open("/works", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600, &attr);

    TRY(q != (mqd_t)-1 && mq_send(q, "x", 1, 0) == 0);
    TRY(mq_receive(q, buf, sizeof(buf), NULL) == 1 && mq_unlink("/works") == 0);
    return 0;
}

static int posix_memory(void)
{
    int fd = shm_open("/works", O_RDWR | O_CREAT | O_EXCL, 0600);
    sem_t *s = sem_open("/works", O_CREAT | O_EXCL, 0600, 1);

    TRY(fd >= 0 && ftruncate(fd, PAGE) == 0);
    TRY(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED);
    TRY(s != SEM_FAILED && sem_wait(s) == 0 && sem_post(s) == 0);
    TRY(shm_unlink("/works") == 0 && sem_unlink("/works") == 0);
    return 0;
}

static int system_v(void)
{
    struct {
        long type;
        char text[4];
    } msg = {1, "hi"};
    struct sembuf up = {.sem_op = 1};
    int shm = shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0600);
    int sem = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);
    int q = msgget(IPC_PRIVATE, IPC_CREAT | 0600);

    TRY(shm >= 0 && sem >= 0 && q >= 0 && semop(sem, &up, 1) == 0);
    void *p = shmat(shm, NULL, 0);
    TRY(p != (void *)-1 && shmdt(p) == 0 && shmctl(shm, IPC_RMID, NULL) == 0);
    TRY(msgsnd(q, &msg, 4, 0) == 0 && msgrcv(q, &msg, 4, 1, 0) == 4);
    TRY(msgctl(q, IPC_RMID, NULL) == 0 && semctl(sem, 0, IPC_RMID) == 0);
    return 0;
}

static int shared_mutex(void)
{
    pthread_mutexattr_t attr;
    int status;
    pthread_mutex_t *m =
        mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    TRY(m != MAP_FAILED && pthread_mutexattr_init(&attr) == 0);
    TRY(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) == 0);
    TRY(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST) == 0);
    TRY(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT) == 0);
    TRY(pthread_mutex_init(m, &attr) == 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(pthread_mutex_lock(m)); /* and ends with it */
    TRY(waitpid(pid, &status, 0) == pid && status == 0 && pthread_mutex_lock(m) == EOWNERDEAD);
    return 0;
}

const use ipc_uses[] = {{"unix sockets with a path", unix_path},
                        {"abstract unix sockets", unix_abstract},
                        {"socketpair, a descriptor passed, the peer's user", pass_descriptor},
                        {"TCP over IPv4", tcp4},
                        {"TCP over IPv6", tcp6},
                        {"UDP over IPv4", udp4},
                        {"UDP over IPv6", udp6},
                        {"the list of interfaces", interfaces},
                        {"names of hosts, services and protocols", names},
                        {"pipes, their size, fifos", pipes},
                        {"memfd", memory_file},
                        {"epoll, eventfd, timerfd, signalfd", waiting},
                        {"POSIX message queues", posix_queue},
                        {"shm_open and named semaphores", posix_memory},
                        {"System V memory, semaphores, messages", system_v},
                        {"a mutex shared by processes", shared_mutex},
                        {NULL, NULL}};
