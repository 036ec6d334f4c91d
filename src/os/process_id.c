/* process_id.c: reads the identity of processes and of this host from /proc. */
#include "os/process_id.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"

#define STATE_FIELD 3 /* of /proc/PID/stat, see proc(5) */
#define START_FIELD 22

/* Reads a small file of /proc. Returns its length or -errno; the text ends with NUL. */
static ssize_t read_text(const char *path, char *text, size_t size)
{
    csn_autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

    if (n < 0)
        return errno == ENOENT ? -ESRCH : -errno;
    text[n] = '\0';
    return n;
}

/* Finds a field of /proc/PID/stat. The second field, the program's name, may contain spaces and
 * parentheses, so counting starts behind the last one. */
static const char *stat_field(const char *text, int field)
{
    const char *p = strrchr(text, ')');

    for (int i = 2; p && i < field; i++) {
        p = strchr(p, ' ');
        p += p != NULL;
    }
    return p;
}

static int read_stat(pid_t pid, char *text, size_t size)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    ssize_t n = read_text(path, text, size);
    return n < 0 ? (int)n : 0;
}

/* *ret_state: as in ps(1). */
static int read_process(pid_t pid, csn_process_id *ret, char *ret_state)
{
    char text[1024];
    int rc = pid > 0 ? read_stat(pid, text, sizeof(text)) : -ESRCH;
    const char *state = rc == 0 ? stat_field(text, STATE_FIELD) : NULL;
    const char *start = rc == 0 ? stat_field(text, START_FIELD) : NULL;

    if (rc < 0)
        return rc;
    if (!state || !start)
        return -EPROTO;
    *ret = (csn_process_id){.pid = pid, .start = strtoull(start, NULL, 10)};
    *ret_state = *state;
    return 0;
}

int csn_pid_identify(pid_t pid, csn_process_id *ret)
{
    char state;

    return read_process(pid, ret, &state);
}

static bool is_stopped(char state)
{
    return state == 'T' || state == 't';
}

bool csn_pid_is_stopped(pid_t pid)
{
    csn_process_id id;
    char state;

    return read_process(pid, &id, &state) == 0 && is_stopped(state);
}

/* The start time is read after the pidfd is open: the pid cannot be reused in between. */
int csn_pid_open(const csn_process_id *id, bool *ret_stopped)
{
    csn_autofd int fd =
        id->pid > 0 ? (int)syscall(SYS_pidfd_open, (pid_t)id->pid, 0) : (errno = ESRCH, -1);
    csn_process_id now;
    char state;

    if (fd < 0)
        return -errno;
    int rc = read_process((pid_t)id->pid, &now, &state);
    if (rc < 0)
        return rc;
    if (now.start != id->start || state == 'Z' || state == 'X')
        return -ESRCH;
    if (ret_stopped)
        *ret_stopped = is_stopped(state);
    return csn_steal_fd(&fd);
}

int csn_pid_find_fd(const csn_process_id *id, uint64_t dev, uint64_t ino,
                    char ret[CSN_FD_PATH_SIZE])
{
    char path[CSN_FD_PATH_SIZE];
    csn_process_id now;
    int rc = csn_pid_identify((pid_t)id->pid, &now);

    if (rc < 0 || now.start != id->start)
        return -ENOENT;
    snprintf(path, sizeof(path), "/proc/%lld/fd", (long long)id->pid);
    DIR *d = opendir(path);
    if (!d)
        return -errno;
    rc = -ENOENT;
    for (const struct dirent *e; rc != 0 && (e = readdir(d));) {
        struct stat st;
        if (fstatat(dirfd(d), e->d_name, &st, 0) < 0 || st.st_ino != ino || st.st_dev != dev)
            continue;
        snprintf(ret, CSN_FD_PATH_SIZE, "/proc/%lld/fd/%.20s", (long long)id->pid, e->d_name);
        rc = 0;
    }
    closedir(d);
    return rc;
}

static uint64_t namespace_of(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? st.st_ino : 0;
}

int csn_host_identify(csn_host_id *ret)
{
    csn_host_id h = {0};
    struct utsname u;
    ssize_t n = read_text("/proc/sys/kernel/random/boot_id", h.boot, sizeof(h.boot));

    if (n < 0 || uname(&u) < 0)
        return n < 0 ? (int)n : -errno;
    h.boot[strcspn(h.boot, "\n")] = '\0';
    snprintf(h.name, sizeof(h.name), "%.64s", u.nodename);
    h.pid_ns = namespace_of("/proc/self/ns/pid");
    *ret = h;
    return 0;
}

uint64_t csn_host_mount_ns(void)
{
    return namespace_of("/proc/self/ns/mnt");
}
