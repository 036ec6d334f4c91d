/* calls_process.c: processes, threads, terminals, memory, limits, and debuggers' tools. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <utmp.h>

#include "calls.h"

#define THREADS 100
#define PAGE    4096

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

extern char **environ;

static int ended_well(pid_t pid)
{
    int status;

    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* ---- starting programs ---- */

static int starting(void)
{
    char *const argv[] = {(char *)"true", NULL};
    pid_t pid;

    TRY(posix_spawnp(&pid, "true", NULL, NULL, argv, environ) == 0 && ended_well(pid));
    pid = vfork();
    if (pid == 0) {
        execlp("true", "true", NULL);
        _exit(9);
    }
    TRY(ended_well(pid));
    return 0;
}

static int from_memory(void)
{
    char *const argv[] = {(char *)"true", NULL};
    char buf[65536];
    ssize_t n;
    int in = open("/bin/true", O_RDONLY | O_CLOEXEC), fd = memfd_create("true", MFD_CLOEXEC);

    TRY(in >= 0 && fd >= 0);
    while ((n = read(in, buf, sizeof(buf))) > 0)
        TRY(write(fd, buf, (size_t)n) == n);
    pid_t pid = fork();
    if (pid == 0) {
        fexecve(fd, argv, environ);
        _exit(9);
    }
    TRY(ended_well(pid));
    return 0;
}

static void *meet(void *barrier)
{
    pthread_barrier_wait(barrier);
    return barrier;
}

static int many_threads(void)
{
    pthread_t t[THREADS];
    pthread_barrier_t b;

    TRY(pthread_barrier_init(&b, NULL, THREADS) == 0);
    for (size_t i = 0; i < THREADS; i++)
        TRY(pthread_create(&t[i], NULL, meet, &b) == 0);
    for (size_t i = 0; i < THREADS; i++)
        TRY(pthread_join(t[i], NULL) == 0);
    return 0;
}

static int pid_descriptors(void)
{
    siginfo_t info;
    pid_t pid = fork();

    if (pid == 0) {
        pause();
        _exit(0);
    }
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    TRY(fd >= 0 && syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0) == 0);
    TRY(waitid(P_PIDFD, (id_t)fd, &info, WEXITED) == 0 && info.si_status == SIGTERM);
    return 0;
}

static int groups_and_sessions(void)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(setsid() != getpid() || getpgrp() != getpid() || getsid(0) != getpid());
    TRY(ended_well(pid));
    pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    TRY(setpgid(pid, pid) == 0 && kill(-pid, SIGKILL) == 0 && waitpid(-pid, NULL, 0) == pid);
    TRY(prctl(PR_SET_CHILD_SUBREAPER, 1L) == 0 && prctl(PR_SET_NAME, "works") == 0);
    TRY(prctl(PR_SET_PDEATHSIG, (long)SIGTERM) == 0 && prctl(PR_SET_DUMPABLE, 1L) == 0);
    return 0;
}

/* ---- terminals ---- */

static int terminal(void)
{
    int m, s;
    struct winsize size = {.ws_row = 40, .ws_col = 100}, got;
    struct termios t;
    char name[64];

    TRY(openpty(&m, &s, name, NULL, &size) == 0 && ttyname(s) && isatty(s));
    TRY(ioctl(s, TIOCGWINSZ, &got) == 0 && got.ws_col == 100);
    TRY(tcgetattr(s, &t) == 0);
    cfmakeraw(&t);
    TRY(tcsetattr(s, TCSANOW, &t) == 0 && open(name, O_RDWR | O_NOCTTY | O_CLOEXEC) >= 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(login_tty(s) < 0 || open("/dev/tty", O_RDWR | O_CLOEXEC) < 0 ||
              tcsetpgrp(0, getpgrp()) < 0 || tcgetpgrp(0) != getpgrp());
    TRY(ended_well(pid));
    return 0;
}

/* ---- debuggers ---- */

static int tracing(void)
{
    static volatile long watched = 41;
    struct user_regs_struct regs;
    struct iovec set = {&regs, sizeof(regs)};
    long mine = 0;
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        watched = 42;
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
            _exit(9);
        raise(SIGSTOP);
        _exit(0);
    }
    TRY(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
    TRY(ptrace(PTRACE_GETREGSET, pid, (void *)1L, &set) == 0);
    struct iovec here = {&mine, sizeof(mine)}, there = {(void *)&watched, sizeof(mine)};
    TRY(process_vm_readv(pid, &here, 1, &there, 1, 0) == sizeof(mine) && mine == 42);
    TRY(ptrace(PTRACE_POKEDATA, pid, (void *)&watched, (void *)43L) == 0);
    TRY(ptrace(PTRACE_CONT, pid, NULL, NULL) == 0 && ended_well(pid));
    return 0;
}

static int attaching(void)
{
    int status;
    char path[64];
    pid_t pid = fork();

    if (pid == 0) {
        pause();
        _exit(0);
    }
    TRY(ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0 &&
        ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) == 0);
    TRY(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
    TRY(ptrace(PTRACE_DETACH, pid, NULL, NULL) == 0);
    snprintf(path, sizeof(path), "/proc/%d/mem", pid);
    TRY(open(path, O_RDONLY | O_CLOEXEC) >= 0); /* written with ptrace */
    TRY(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
    TRY(personality(0xffffffff) >= 0 && personality(ADDR_NO_RANDOMIZE) >= 0);
    return 0;
}

/* ---- memory, time, limits ---- */

/* A just-in-time compiler: written, then executable. */
static int generated_code(void)
{
#if defined(__x86_64__)
    static const uint8_t code[] = {0xb8, 42, 0, 0, 0, 0xc3};
#elif defined(__aarch64__)
    static const uint8_t code[] = {0x40, 0x05, 0x80, 0x52, 0xc0, 0x03, 0x5f, 0xd6};
#endif
    union {
        void *p;
        int (*call)(void);
    } f = {mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)};

    TRY(f.p != MAP_FAILED);
    memcpy(f.p, code, sizeof(code));
    TRY(mprotect(f.p, PAGE, PROT_READ | PROT_EXEC) == 0);
    __builtin___clear_cache((char *)f.p, (char *)f.p + sizeof(code));
    TRY(f.call() == 42);
    return 0;
}

static int memory(void)
{
    void *p = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    TRY(p != MAP_FAILED && madvise(p, 4 << 20, MADV_DONTNEED) == 0);
    TRY(mlock(p, 4 << 20) == 0);
    (void)madvise(p, 4 << 20, MADV_HUGEPAGE);
    p = mremap(p, 4 << 20, 8 << 20, MREMAP_MAYMOVE);
    TRY(p != MAP_FAILED && munmap(p, 8 << 20) == 0);
    TRY(syscall(SYS_membarrier, 0 /* MEMBARRIER_CMD_QUERY */, 0, 0) >= 0);
    return 0;
}

static int limits(void)
{
    struct rlimit r;
    cpu_set_t cpus;

    TRY(getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur >= 1024);
    r.rlim_cur = 512;
    TRY(setrlimit(RLIMIT_NOFILE, &r) == 0);
    r.rlim_cur = r.rlim_max;
    TRY(setrlimit(RLIMIT_NOFILE, &r) == 0 && getrlimit(RLIMIT_STACK, &r) == 0);
    TRY(getrlimit(RLIMIT_NPROC, &r) == 0 && r.rlim_cur >= 512);
    errno = 0; /* whoever runs us may be nice already, and nobody can be less so again */
    int niceness = getpriority(PRIO_PROCESS, 0);
    TRY(errno == 0 && setpriority(PRIO_PROCESS, 0, niceness + 1) == 0);
    TRY(nice(1) == (niceness < 18 ? niceness + 2 : 19));
    TRY(sched_getaffinity(0, sizeof(cpus), &cpus) == 0);
    TRY(sched_setaffinity(0, sizeof(cpus), &cpus) == 0);
    TRY(sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0}) == 0);
    TRY(sysconf(_SC_NPROCESSORS_ONLN) >= 1 && sysconf(_SC_PHYS_PAGES) > 0);
    return 0;
}

static volatile sig_atomic_t fired;

static void on_signal(int sig)
{
    fired = sig;
}

static int timers(void)
{
    const struct itimerspec soon = {.it_value = {.tv_nsec = 1000000}};
    struct sigevent how = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    struct timespec t;
    timer_t timer;
    char random[16];

    TRY(signal(SIGRTMIN, on_signal) != SIG_ERR &&
        timer_create(CLOCK_REALTIME, &how, &timer) == 0);
    TRY(timer_settime(timer, 0, &soon, NULL) == 0);
    while (!fired)
        (void)poll(NULL, 0, 10);
    TRY(clock_gettime(CLOCK_BOOTTIME, &t) == 0 &&
        clock_getres(CLOCK_PROCESS_CPUTIME_ID, &t) == 0);
    TRY(getrandom(random, sizeof(random), 0) == sizeof(random));
    return 0;
}

static int alternate_stack(void)
{
    static char room[1 << 16];
    stack_t s = {.ss_sp = room, .ss_size = sizeof(room)};
    struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};

    fired = 0;
    TRY(sigaltstack(&s, NULL) == 0 && sigaction(SIGUSR1, &a, NULL) == 0);
    TRY(raise(SIGUSR1) == 0 && fired == SIGUSR1);
    return 0;
}

/* Asking is allowed; a program asks before it decides what it can do. */
static int questions(void)
{
    gid_t groups[64];

    TRY(getuid() == geteuid() && getuid() != 0 && getgroups(64, groups) >= 0);
    TRY(setuid(getuid()) == 0 && setgid(getgid()) == 0 && setresuid(-1u, getuid(), -1u) == 0);
    TRY(prctl(PR_GET_NO_NEW_PRIVS, 0L, 0L, 0L, 0L) == 1 && prctl(PR_GET_SECCOMP) >= 0);
    TRY(prctl(PR_CAPBSET_READ, 0L) >= 0 && prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) == 0);
    TRY(sched_getcpu() >= 0);
    return 0;
}

const use process_uses[] = {{"posix_spawn and vfork", starting},
                            {"a program out of a memfd", from_memory},
                            {"100 threads that meet", many_threads},
                            {"descriptors of processes", pid_descriptors},
                            {"groups, sessions, subreapers", groups_and_sessions},
                            {"a pseudo-terminal that controls", terminal},
                            {"ptrace of a child, its memory and registers", tracing},
                            {"ptrace of a process that runs", attaching},
                            {"code made at run time", generated_code},
                            {"mlock, madvise, mremap, membarrier", memory},
                            {"limits, priorities and processors", limits},
                            {"timers, clocks and randomness", timers},
                            {"signals on a stack of their own", alternate_stack},
                            {"questions about oneself", questions},
                            {NULL, NULL}};
