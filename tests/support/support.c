/* support.c: the host side of tests.
 *
 * Called by the conformance, fault and race programs. Nothing here is under test, so what fails
 * here ends the program with a message: a test that could not be prepared must never look like
 * one that passed. */
#include "support/support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS 60000 /* "at once" on a machine that is busy with other things */

/* Read by a sanitizer that is linked in: crashes are its to report, with a trace; cmocka's
 * handler only says that there was one. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "handle_segv=2:handle_abort=2:handle_sigbus=2:handle_sigfpe=2:handle_sigill=2";
}

static void die(const char *what, const char *on)
{
    fprintf(stderr, "Bail out! %s '%s': %s\n", what, on, strerrordesc_np(errno));
    exit(99);
}

char *csn_test_format(const char *fmt, ...)
{
    va_list ap;
    char *s = NULL;

    va_start(ap, fmt);
    if (vasprintf(&s, fmt, ap) < 0)
        die("format", fmt);
    va_end(ap);
    return s;
}

char *csn_test_join(const char *dir, const char *name)
{
    return csn_test_format("%s/%s", dir, name);
}

char *csn_test_tmpdir(void)
{
    const char *top = getenv("TMPDIR");
    char *path = csn_test_join(top && *top == '/' ? top : "/tmp", "caisson-t-XXXXXX");

    if (!mkdtemp(path))
        die("mkdtemp", path);
    return path;
}

void csn_test_mkdir(const char *path)
{
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        die("mkdir", path);
}

static int unlock_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)ftw;
    if (type == FTW_DNR || (type == FTW_D && (st->st_mode & 0700) != 0700))
        (void)chmod(path, 0700);
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    (void)remove(path);
    return 0;
}

void csn_test_remove(const char *path)
{
    if (nftw(path, unlock_one, 16, FTW_PHYS) == 0)
        (void)nftw(path, remove_one, 16, FTW_PHYS | FTW_DEPTH);
}

void csn_test_put(const char *path, const void *data, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (fd < 0)
        die("create", path);
    for (size_t done = 0; done < len;) {
        ssize_t n = write(fd, (const char *)data + done, len - done);
        if (n < 0)
            die("write", path);
        done += (size_t)n;
    }
    close(fd);
}

char *csn_test_get(const char *path, size_t *ret_len)
{
    size_t len = 0, cap = 4096;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return NULL;
    char *data = malloc(cap + 1);
    for (;;) {
        ssize_t n = data ? read(fd, data + len, cap - len) : -1;
        if (n < 0) {
            free(data);
            close(fd);
            return NULL;
        }
        if (n == 0)
            break;
        len += (size_t)n;
        if (len == cap) {
            cap *= 2;
            char *more = realloc(data, cap + 1);
            if (!more)
                die("read", path);
            data = more;
        }
    }
    close(fd);
    data[len] = '\0';
    if (ret_len)
        *ret_len = len;
    return data;
}

bool csn_test_exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

uint32_t csn_test_mode(const char *path)
{
    struct stat st;

    if (lstat(path, &st) < 0)
        die("stat", path);
    return st.st_mode;
}

int64_t csn_test_now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void csn_test_nap(unsigned ms)
{
    (void)poll(NULL, 0, (int)ms);
}

/* The state letter and parent of /proc/PID/stat; the name in it may hold any byte, so the
 * fields are counted from the last parenthesis. */
static bool proc_stat(pid_t pid, char *ret_state, pid_t *ret_parent)
{
    char path[64], *data, *p;
    bool ok = false;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    data = csn_test_get(path, NULL);
    p = data ? strrchr(data, ')') : NULL;
    if (p) {
        int parent = 0;
        ok = sscanf(p + 1, " %c %d", ret_state, &parent) == 2;
        *ret_parent = parent;
    }
    free(data);
    return ok;
}

bool csn_test_alive(pid_t pid)
{
    char state = 0;
    pid_t parent = 0;

    return proc_stat(pid, &state, &parent) && state != 'Z' && state != 'X';
}

/* From "NSpid:\t123\t4": the last, when there is more than one. */
static pid_t innermost(const char *status)
{
    const char *p = strstr(status, "\nNSpid:");
    long pid = 0;
    int n = 0;

    for (p = p ? p + 7 : ""; *p == '\t'; n++)
        pid = strtol(p + 1, (char **)&p, 10);
    return n > 1 ? (pid_t)pid : -1;
}

pid_t csn_test_pid_of(pid_t inside, const char *cwd)
{
    DIR *proc = opendir("/proc");
    pid_t found = -1;

    for (struct dirent *d; proc && found < 0 && (d = readdir(proc));) {
        char path[300], text[4096] = "", dir[PATH_MAX] = "";
        snprintf(path, sizeof(path), "/proc/%s/status", d->d_name);
        int fd = d->d_name[0] >= '1' && d->d_name[0] <= '9' ? open(path, O_RDONLY) : -1;
        if (fd < 0)
            continue;
        ssize_t n = read(fd, text, sizeof(text) - 1);
        close(fd);
        if (n <= 0 || innermost(text) != inside)
            continue;
        snprintf(path, sizeof(path), "/proc/%s/cwd", d->d_name);
        if (readlink(path, dir, sizeof(dir) - 1) > 0 && strcmp(dir, cwd) == 0)
            found = (pid_t)strtol(d->d_name, NULL, 10);
    }
    if (proc)
        closedir(proc);
    return found;
}

bool csn_test_wait_dead(pid_t pid)
{
    for (int waited = 0; waited < WAIT_MS; waited += 10) {
        if (!csn_test_alive(pid))
            return true;
        csn_test_nap(10);
    }
    return false;
}

static void each_child(void (*fn)(pid_t pid))
{
    DIR *d = opendir("/proc");
    struct dirent *e;

    while (d && (e = readdir(d))) {
        char *end = NULL, state = 0;
        pid_t parent = 0, pid = (pid_t)strtol(e->d_name, &end, 10);

        if (*end == '\0' && pid > 0 && proc_stat(pid, &state, &parent) && parent == getpid())
            fn(pid);
    }
    if (d)
        closedir(d);
}

static void print_child(pid_t pid)
{
    char path[64];
    size_t len = 0;

    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    char *cmd = csn_test_get(path, &len);
    for (size_t i = 0; cmd && i + 1 < len; i++) {
        if (cmd[i] < ' ')
            cmd[i] = ' ';
    }
    printf("# left behind: pid %d: %s\n", (int)pid, cmd && *cmd ? cmd : "(no command line)");
    free(cmd);
}

void csn_test_print_children(void)
{
    each_child(print_child);
}

static void kill_child(pid_t pid)
{
    kill(pid, SIGKILL);
}

void csn_test_kill_children(void)
{
    each_child(kill_child);
}

size_t csn_test_fd_count(void)
{
    DIR *d = opendir("/proc/self/fd");
    size_t n = 0;

    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}
