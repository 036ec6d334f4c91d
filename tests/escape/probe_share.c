/* probe_share.c: what reaches a process without any file: environment, descriptors, keys,
 * System V and POSIX ipc, terminals. Each with the helper that plants it outside. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mqueue.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

#define KEY_JOIN         1
#define KEY_SEARCH       10
#define KEYRING_SESSION  (-3)
#define KEYRING_USER     (-4)
#define KEYRING_USER_SES (-5)
#define FIRST_BEYOND     3
#define LAST_LOOKED_AT   4096

static int find_env(char **a)
{
    return getenv(a[0]) ? 0 : ENOENT;
}

/* WORD: in the environment or the command line of any process. The caller's argument is cut in
 * two by a comma, or we would find our own. */
static int find_in_procs(char **a)
{
    static const char *const files[] = {"environ", "cmdline"};
    char word[128], path[PATH_MAX], text[8192];
    DIR *proc = opendir("/proc");
    const struct dirent *e;
    int rc = ENOENT;

    if (!proc)
        return errno;
    const char *comma = strchr(a[0], ',');
    snprintf(word, sizeof(word), "%.*s%s", comma ? (int)(comma - a[0]) : 0, a[0],
             comma ? comma + 1 : a[0]);
    while ((e = readdir(proc)))
        for (int i = 0; i < 2; i++) {
            snprintf(path, sizeof(path), "/proc/%s/%s", e->d_name, files[i]);
            int fd = open(path, O_RDONLY);
            ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text));
            if (n > 0 && memmem(text, (size_t)n, word, strlen(word))) {
                detail("in %s", path);
                rc = 0;
            }
            if (fd >= 0)
                close(fd);
        }
    closedir(proc);
    return rc;
}

static int find_fds(char **a)
{
    (void)a;
    for (int fd = FIRST_BEYOND; fd < LAST_LOOKED_AT; fd++)
        if (fcntl(fd, F_GETFD) >= 0) {
            detail("descriptor %d", fd);
            return 0;
        }
    return EBADF;
}

/* Descriptors of the caller as our standard ones: a file of it could be opened again, for
 * writing too, and is chmodded by whoever holds it. One without a name is memory of our own.
 * The answer goes where nobody took it from: to a file. */
static int find_stdio(char **a)
{
    int answer = open(a[0], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    const char *text = "held as-ordered\n";
    struct stat st;

    for (int fd = 0; fd < FIRST_BEYOND; fd++)
        if (fstat(fd, &st) == 0 && st.st_nlink > 0 &&
            (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
            text = "ESCAPED stdio\n";
    if (answer < 0 || write(answer, text, strlen(text)) < 0)
        return errno;
    return SAID;
}

/* ---- keys ---- */

static int find_key(char **a)
{
    static const int rings[] = {KEYRING_SESSION, KEYRING_USER, KEYRING_USER_SES};
    int rc = ENOKEY;

    for (size_t i = 0; rc != 0 && i < sizeof(rings) / sizeof(rings[0]); i++)
        rc = syscall(SYS_keyctl, KEY_SEARCH, rings[i], "user", a[0], 0) < 0 ? errno : 0;
    return rc;
}

/* Helper: NAME COMMAND...: a new session with a key in it, then the command */
static int with_key(char **a)
{
    if (syscall(SYS_keyctl, KEY_JOIN, NULL, 0, 0, 0) < 0 ||
        syscall(SYS_add_key, "user", a[0], "secret", 6, KEYRING_SESSION) < 0)
        return errno;
    execvp(a[1], a + 1);
    return errno;
}

/* ---- System V and POSIX ipc ---- */

static key_t key_of(const char *text)
{
    return (key_t)strtol(text, NULL, 0);
}

static int find_shm(char **a)
{
    int id = shmget(key_of(a[0]), 0, 0);

    if (id < 0)
        return errno;
    return shmat(id, NULL, SHM_RDONLY) == (void *)-1 ? errno : 0;
}

/* ID: by number, without the key */
static int attach_shm(char **a)
{
    return shmat(number(a[0]), NULL, SHM_RDONLY) == (void *)-1 ? errno : 0;
}

static int find_sem(char **a)
{
    return semget(key_of(a[0]), 0, 0) < 0 ? errno : 0;
}

static int find_msg(char **a)
{
    return msgget(key_of(a[0]), 0) < 0 ? errno : 0;
}

static int find_mq(char **a)
{
    return mq_open(a[0], O_RDONLY) < 0 ? errno : 0;
}

/* Helper: KEY NAME: one of each kind; prints the number of the shared memory */
static int make_ipc(char **a)
{
    key_t key = key_of(a[0]);
    int id = shmget(key, 4096, IPC_CREAT | 0666);

    if (id < 0 || semget(key, 1, IPC_CREAT | 0666) < 0 || msgget(key, IPC_CREAT | 0666) < 0)
        return errno;
    mode_t old = umask(0);
    mqd_t mq = mq_open(a[1], O_CREAT | O_RDWR, 0666, NULL);
    umask(old);
    if (mq < 0)
        return errno;
    printf("%d\n", id);
    return SAID;
}

static int drop_ipc(char **a)
{
    key_t key = key_of(a[0]);

    (void)shmctl(shmget(key, 0, 0), IPC_RMID, NULL);
    (void)semctl(semget(key, 0, 0), 0, IPC_RMID);
    (void)msgctl(msgget(key, 0), IPC_RMID, NULL);
    (void)mq_unlink(a[1]);
    return SAID;
}

/* ---- terminals ---- */

static int open_tty(char **a)
{
    (void)a;
    int fd = open("/dev/tty", O_RDWR);

    return fd < 0 ? errno : 0;
}

/* Types a character into a terminal: /dev/tty, or what our standard descriptors are. */
static int type_into(unsigned long request)
{
    char c = request == TIOCSTI ? 'x' : 6; /* TIOCLINUX 6: asks for a shift state */
    int rc = ENOTTY, fd = open("/dev/tty", O_RDWR);

    for (int i = 0; rc != 0 && i < FIRST_BEYOND; i++)
        rc = ioctl(i, request, &c) < 0 ? errno : 0;
    if (rc != 0 && fd >= 0)
        rc = ioctl(fd, request, &c) < 0 ? errno : 0;
    return rc;
}

static int try_tiocsti(char **a)
{
    (void)a;
    return type_into(TIOCSTI);
}

/* Garbage in the upper half of the request: the kernel does not look there. */
static int try_tiocsti_high(char **a)
{
    char c = 'x';
    int rc = ENOTTY;

    (void)a;
    for (int i = 0; rc != 0 && i < FIRST_BEYOND; i++)
        rc = syscall(SYS_ioctl, i, 0x100000000ul | TIOCSTI, &c) < 0 ? errno : 0;
    return rc;
}

static int try_tiocsetd(char **a)
{
    int discipline = 0, rc = ENOTTY; /* 0: the one it has */

    (void)a;
    for (int i = 0; rc != 0 && i < FIRST_BEYOND; i++)
        rc = ioctl(i, TIOCSETD, &discipline) < 0 ? errno : 0;
    return rc;
}

/* Helper: COMMAND... with a terminal of its own as the controlling one; its output is ours. */
static int with_tty(char **a)
{
    char buf[1024];
    int master = -1, status = 0;
    ssize_t n;
    pid_t pid = forkpty(&master, NULL, NULL, NULL);

    if (pid < 0)
        return errno;
    if (pid == 0) {
        execvp(a[0], a);
        _exit(127);
    }
    while ((n = read(master, buf, sizeof(buf))) > 0)
        (void)!write(1, buf, (size_t)n);
    (void)waitpid(pid, &status, 0);
    return SAID;
}

const attempt share_attempts[] = {{"env", 1, find_env},
                                  {"word-in-procs", 1, find_in_procs},
                                  {"fds", 0, find_fds},
                                  {"stdio", 1, find_stdio},
                                  {"key", 1, find_key},
                                  {"with-key", 2, with_key},
                                  {"shm", 1, find_shm},
                                  {"shm-id", 1, attach_shm},
                                  {"sem", 1, find_sem},
                                  {"msg", 1, find_msg},
                                  {"mq", 1, find_mq},
                                  {"make-ipc", 2, make_ipc},
                                  {"drop-ipc", 2, drop_ipc},
                                  {"tty", 0, open_tty},
                                  {"tiocsti", 0, try_tiocsti},
                                  {"tiocsti-high", 0, try_tiocsti_high},
                                  {"tiocsetd", 0, try_tiocsetd},
                                  {"with-tty", 1, with_tty},
                                  {NULL, 0, NULL}};
