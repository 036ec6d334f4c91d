/* cgroup_io.c: reads and writes the files of a control group, creates and removes its
 * directory.
 *
 * Kernels differ in the files they have: a number that cannot be read is CSN_CGROUP_UNKNOWN,
 * not an error. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/cgroup_internal.h"

int csn_cgroup_join(char ret[CSN_CGROUP_PATH_MAX], const char *dir, const char *name)
{
    size_t d = strlen(dir), n = strlen(name);

    while (d > 1 && dir[d - 1] == '/')
        d--;
    if (d + 1 + n >= CSN_CGROUP_PATH_MAX)
        return -ENAMETOOLONG;
    memmove(ret, dir, d); /* may be the same buffer */
    if (n > 0 && (d == 0 || ret[d - 1] != '/'))
        ret[d++] = '/';
    memcpy(ret + d, name, n);
    ret[d + n] = '\0';
    return 0;
}

/* The kernel takes each write(2) as one command. */
int csn_cgroup_write(const char *dir, const char *file, const char *text)
{
    char path[CSN_CGROUP_PATH_MAX];
    size_t len = strlen(text);
    int rc = csn_cgroup_join(path, dir, file);

    if (rc < 0)
        return rc;
    csn_autofd int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n;
    do
        n = write(fd, text, len);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    return (size_t)n == len ? 0 : -EIO;
}

ssize_t csn_cgroup_read(const char *dir, const char *file, char *buf, size_t size)
{
    char path[CSN_CGROUP_PATH_MAX];
    size_t len = 0;
    int rc = csn_cgroup_join(path, dir, file);

    if (rc < 0)
        return rc;
    csn_autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    while (len < size - 1) {
        ssize_t n = read(fd, buf + len, size - 1 - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        len += (size_t)n;
    }
    buf[len] = '\0';
    return (ssize_t)len;
}

/* "max" is not a number. */
static uint64_t parse_u64(const char *s)
{
    if (*s < '0' || *s > '9')
        return CSN_CGROUP_UNKNOWN;
    errno = 0;
    unsigned long long v = strtoull(s, NULL, 10);
    return errno ? CSN_CGROUP_UNKNOWN : v;
}

uint64_t csn_cgroup_read_u64(const char *dir, const char *file, const char *key)
{
    char text[2048];
    size_t n = key ? strlen(key) : 0;

    if (csn_cgroup_read(dir, file, text, sizeof(text)) < 0)
        return CSN_CGROUP_UNKNOWN;
    if (!key)
        return parse_u64(text);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, n) == 0 && line[n] == ' ')
            return parse_u64(line + n + 1);
    }
    return CSN_CGROUP_UNKNOWN;
}

bool csn_cgroup_list_has(const char *list, const char *seps, const char *word)
{
    size_t want = strlen(word);

    for (const char *p = list; *(p += strspn(p, seps));) {
        size_t n = strcspn(p, seps);
        if (n == want && memcmp(p, word, n) == 0)
            return true;
        p += n;
    }
    return false;
}

bool csn_cgroup_has_process(const char *dir)
{
    char first[4];
    ssize_t n = csn_cgroup_read(dir, "cgroup.procs", first, sizeof(first));

    /* An unreadable group counts as occupied, a missing one does not. */
    return n < 0 ? n != -ENOENT : n > 0;
}

int csn_cgroup_each_child(const char *dir, int (*fn)(void *ctx, const char *path), void *ctx)
{
    char path[CSN_CGROUP_PATH_MAX];
    struct stat st;
    int rc = 0;
    DIR *d = opendir(dir);

    if (!d)
        return -errno;
    for (struct dirent *e; rc == 0 && (e = readdir(d));) {
        if (e->d_name[0] == '.' || (e->d_type != DT_DIR && e->d_type != DT_UNKNOWN))
            continue;
        if (csn_cgroup_join(path, dir, e->d_name) == 0 && lstat(path, &st) == 0 &&
            S_ISDIR(st.st_mode))
            rc = fn(ctx, path);
    }
    closedir(d);
    return rc;
}

int csn_cgroup_mkdir(const csn_cgroup_host *host, const char *path)
{
    int rc = host && host->mkdir ? host->mkdir(path) : mkdir(path, 0755);

    return rc < 0 ? -errno : 0;
}

typedef struct rmdir_state {
    const csn_cgroup_host *host;
    unsigned depth;
} rmdir_state;

static int rmdir_one(const csn_cgroup_host *host, const char *path)
{
    int rc = host && host->rmdir ? host->rmdir(path) : rmdir(path);

    return rc < 0 ? -errno : 0;
}

static int rmdir_nested(void *ctx, const char *path)
{
    rmdir_state *s = ctx;
    int rc = rmdir_one(s->host, path);

    if ((rc != -EBUSY && rc != -ENOTEMPTY) || s->depth >= CSN_CGROUP_DEPTH_MAX)
        return rc;
    s->depth++;
    int below = csn_cgroup_each_child(path, rmdir_nested, s);
    s->depth--;
    if (below < 0 && below != -ENOENT)
        return below;
    return rmdir_one(s->host, path);
}

int csn_cgroup_rmdir(const csn_cgroup_host *host, const char *path)
{
    rmdir_state s = {.host = host};

    return rmdir_nested(&s, path);
}

const char *csn_cgroup_kind_name(int kind)
{
    static const char *const names[CSN_CGROUP_KINDS] = {
        [CSN_CGROUP_MEMORY] = "memory", [CSN_CGROUP_PIDS] = "pids", [CSN_CGROUP_CPU] = "cpu"};

    return names[kind];
}
