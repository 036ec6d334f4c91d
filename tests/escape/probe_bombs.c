/* probe_bombs.c: takes all there is of something, up to a number that is harmless outside; and
 * processes that do not want to end. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

#define MB (1ul << 20)

/* N processes at once: they stay until all are made or one cannot be. */
static int fork_bomb(char **a)
{
    long want = strtol(a[0], NULL, 10), made = 0;
    int rc = 0;

    if (setpgid(0, 0) < 0)
        return errno;
    for (; rc == 0 && made < want; made++) {
        pid_t pid = fork();
        if (pid == 0)
            for (;;)
                pause();
        rc = pid < 0 ? errno : 0;
    }
    detail("%ld", made);
    signal(SIGTERM, SIG_IGN);
    (void)kill(0, SIGTERM);
    while (wait(NULL) > 0)
        ;
    return rc;
}

static int memory_bomb(char **a)
{
    size_t want = strtoul(a[0], NULL, 10);

    for (size_t i = 0; i < want; i++) {
        char *p = mmap(NULL, MB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            return errno;
        memset(p, (int)i + 1, MB);
    }
    return 0;
}

/* N MB: as many processes, each with so much; the first to be stopped answers for all. */
static int many_bomb(char **a)
{
    int status = 0, rc = 0;
    long made = 0;
    int go[2];

    if (pipe(go) < 0)
        return errno;
    for (long want = strtol(a[0], NULL, 10); made < want && rc == 0; made++) {
        pid_t pid = fork();
        if (pid == 0) {
            char c;
            close(go[1]);
            int failed = memory_bomb(a + 1);
            (void)!read(go[0], &c, 1); /* until all have theirs, or somebody died */
            _exit(failed);
        }
        rc = pid < 0 ? errno : 0;
        usleep(20000); /* one after the other: all of it is held at the end */
    }
    usleep(500000);
    close(go[1]);
    while (wait(&status) > 0)
        if (status != 0)
            rc = ENOMEM;
    return rc;
}

/* Memory that is nobody's: a file without a name. */
static int memfd_bomb(char **a)
{
    size_t want = strtoul(a[0], NULL, 10);
    int fd = memfd_create("bomb", 0);
    static char block[MB];

    if (fd < 0)
        return errno;
    memset(block, 1, sizeof(block));
    for (size_t i = 0; i < want; i++)
        if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block))
            return errno;
    return 0;
}

/* DIR MB */
static int disk_bomb(char **a)
{
    static char block[MB];
    char path[PATH_MAX];
    int rc = 0;

    snprintf(path, sizeof(path), "%s/disk-bomb", a[0]);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0)
        return errno;
    for (long i = strtol(a[1], NULL, 10); rc == 0 && i > 0; i--) {
        ssize_t n = write(fd, block, sizeof(block));
        rc = n < 0 ? errno : n < (ssize_t)sizeof(block) ? ENOSPC : 0;
    }
    close(fd);
    (void)unlink(path);
    return rc;
}

/* DIR N: empty files take no space, and still something */
static int inode_bomb(char **a)
{
    long want = strtol(a[1], NULL, 10), made = 0;
    char path[PATH_MAX];
    int rc = 0;

    for (; rc == 0 && made < want; made++) {
        snprintf(path, sizeof(path), "%s/inode-%ld", a[0], made);
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
        rc = fd < 0 ? errno : 0;
        if (fd >= 0)
            close(fd);
    }
    while (--made >= 0) {
        snprintf(path, sizeof(path), "%s/inode-%ld", a[0], made);
        (void)unlink(path);
    }
    return rc;
}

/* N descriptors, with the limit raised as far as it goes */
static int fd_bomb(char **a)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) < 0)
        return errno;
    r.rlim_cur = r.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &r);
    for (long i = strtol(a[0], NULL, 10); i > 0; i--)
        if (dup(0) < 0)
            return errno;
    return 0;
}

static int raise_limits(char **a)
{
    struct rlimit r;

    (void)a;
    if (getrlimit(RLIMIT_NPROC, &r) < 0 || r.rlim_max == RLIM_INFINITY)
        return 0;
    r.rlim_cur = r.rlim_max = r.rlim_max + 1;
    return setrlimit(RLIMIT_NPROC, &r) < 0 ? errno : 0;
}

/* Helper: MB of output */
static int flood(char **a)
{
    static char block[MB];

    memset(block, 'x', sizeof(block));
    for (long i = strtol(a[0], NULL, 10); i > 0; i--)
        for (size_t done = 0; done < sizeof(block);) {
            ssize_t n = write(1, block + done, sizeof(block) - done);
            if (n <= 0)
                return SAID;
            done += (size_t)n;
        }
    return SAID;
}

/* ---- processes that stay ---- */

static void stay(void)
{
    for (;;)
        pause();
}

static void ignore_all(void)
{
    for (int s = 1; s < 32; s++)
        signal(s, SIG_IGN);
}

static void stop_self(void)
{
    (void)kill(getpid(), SIGSTOP);
}

static void new_session(void)
{
    (void)setsid();
    ignore_all();
    if (fork() > 0)
        _exit(0);
}

static void hide(void)
{
    (void)prctl(PR_SET_NAME, "kworker/0:0", 0L, 0L, 0L);
    (void)prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L);
    (void)setsid();
}

/* The tag of the keeper is a resource limit: this takes it off. */
static void untag(void)
{
    struct rlimit r = {RLIM_INFINITY, RLIM_INFINITY};

    (void)setrlimit(RLIMIT_RTTIME, &r);
    new_session();
}

/* Starts one process of each kind; the file is made when all of them run. */
static int start_kinds(void (*const *kinds)(void), size_t count, char **a)
{
    int go[2];
    char c;

    if (pipe(go) < 0)
        return errno;
    for (size_t i = 0; i < count; i++) {
        if (fork() > 0)
            continue;
        (void)!write(go[1], "x", 1);
        close(0), close(1), close(2), close(go[0]), close(go[1]);
        kinds[i]();
        stay();
    }
    for (size_t i = 0; i < count; i++)
        (void)!read(go[0], &c, 1);
    int fd = open(a[1], O_WRONLY | O_CREAT, 0644);
    if (fd >= 0)
        close(fd);
    if (a[2])
        stay();
    return SAID;
}

/* Helpers: WORD FILE [stay]: processes that have WORD in their command line, and FILE when they
 * run. With `stay` the first one remains too. */
static int linger(char **a)
{
    static void (*const kinds[])(void) = {stay, ignore_all, stop_self, new_session, hide};

    return start_kinds(kinds, sizeof(kinds) / sizeof(kinds[0]), a);
}

static int linger_untagged(char **a)
{
    static void (*const kinds[])(void) = {untag};

    return start_kinds(kinds, 1, a);
}

const attempt bomb_attempts[] = {{"fork-bomb", 1, fork_bomb},
                                 {"memory-bomb", 1, memory_bomb},
                                 {"memfd-bomb", 1, memfd_bomb},
                                 {"many-bomb", 2, many_bomb},
                                 {"disk-bomb", 2, disk_bomb},
                                 {"inode-bomb", 2, inode_bomb},
                                 {"fd-bomb", 1, fd_bomb},
                                 {"raise-limits", 0, raise_limits},
                                 {"flood", 1, flood},
                                 {"linger", 2, linger},
                                 {"linger-untagged", 2, linger_untagged},
                                 {NULL, 0, NULL}};
