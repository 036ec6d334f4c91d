/* cgroup_io.c: the small files and directories of a control group.
 *
 * Called by the other files of os/cgroup alone. What is read comes from the kernel and is
 * short; it is still read into bounded buffers. A file that is missing is no surprise: kernels
 * differ in what they have, so reading numbers never fails, it only does not know. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/cgroup_parts.h"

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

/* One write: the kernel takes each write as one whole command. */
int csn_cgroup_put(const char *dir, const char *file, const char *text)
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

ssize_t csn_cgroup_get(const char *dir, const char *file, char *buf, size_t size)
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

/* "max" and anything else that is not a number is unknown. */
static uint64_t parse(const char *s)
{
    if (*s < '0' || *s > '9')
        return CSN_CGROUP_UNKNOWN;
    errno = 0;
    unsigned long long v = strtoull(s, NULL, 10);
    return errno ? CSN_CGROUP_UNKNOWN : v;
}

uint64_t csn_cgroup_number(const char *dir, const char *file)
{
    char text[64];

    return csn_cgroup_get(dir, file, text, sizeof(text)) < 0 ? CSN_CGROUP_UNKNOWN : parse(text);
}

uint64_t csn_cgroup_field(const char *text, const char *key)
{
    size_t n = strlen(key);

    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, n) == 0 && line[n] == ' ')
            return parse(line + n + 1);
    }
    return CSN_CGROUP_UNKNOWN;
}

bool csn_cgroup_lists(const char *list, const char *seps, const char *word)
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
    ssize_t n = csn_cgroup_get(dir, "cgroup.procs", first, sizeof(first));

    /* What cannot be read is taken for inhabited, unless it is not there at all. */
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

typedef struct drop_state {
    const csn_cgroup_host *host;
    unsigned depth;
} drop_state;

static int drop_one(void *ctx, const char *path)
{
    drop_state *s = ctx;
    bool fake = s->host && s->host->drop;
    int rc = (fake ? s->host->drop(path) : rmdir(path)) < 0 ? -errno : 0;

    /* Busy: tasks, or groups inside. It is tried again only when those inside went away. */
    if ((rc != -EBUSY && rc != -ENOTEMPTY) || s->depth >= CSN_CGROUP_DEPTH_MAX)
        return rc;
    s->depth++;
    int below = csn_cgroup_each_child(path, drop_one, s);
    s->depth--;
    if (below < 0 && below != -ENOENT)
        return below;
    return (fake ? s->host->drop(path) : rmdir(path)) < 0 ? -errno : 0;
}

int csn_cgroup_drop(const csn_cgroup_host *host, const char *path)
{
    drop_state s = {.host = host};

    return drop_one(&s, path);
}

const char *csn_cgroup_kind_name(int kind)
{
    static const char *const names[CSN_CGROUP_KINDS] = {
        [CSN_CGROUP_MEMORY] = "memory", [CSN_CGROUP_PIDS] = "pids", [CSN_CGROUP_CPU] = "cpu"};

    return names[kind];
}
