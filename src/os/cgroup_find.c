/* cgroup_find.c: which hierarchies of control groups there are, and where the caller is.
 *
 * Called by probe, create and sweep. /proc/self/cgroup tells the caller's group in each
 * hierarchy, /proc/self/mountinfo where hierarchies can be seen; neither alone is a directory.
 * Inside a cgroup namespace or a container a mount may show only a part of its hierarchy (its
 * root is then not `/`), and the caller may be outside of that part (`/../x`). What must hold:
 * no directory is given out that is not the caller's own group. Lines may be long and paths
 * hold anything but newlines: mountinfo escapes blanks in octal, the other file escapes
 * nothing. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "os/cgroup_parts.h"

uid_t csn_cgroup_uid(const csn_cgroup_host *host)
{
    return host ? host->uid : geteuid();
}

csn_cgroup_why csn_cgroup_writable(const char *path)
{
    if (access(path, W_OK) == 0)
        return CSN_CGROUP_USABLE;
    if (errno == ENOENT || errno == ENOTDIR)
        return CSN_CGROUP_OUTSIDE;
    return errno == EROFS ? CSN_CGROUP_READ_ONLY : CSN_CGROUP_NOT_DELEGATED;
}

/* Calls line_fn with every line of a file, without its newline, to be torn apart. */
static int each_line(const char *file, void (*line_fn)(csn_cgroup_map *m, char *line),
                     csn_cgroup_map *m)
{
    csn_autofree char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    FILE *f = fopen(file, "re");

    if (!f)
        return -errno;
    while ((n = getline(&line, &cap, f)) >= 0) {
        if (n > 0 && line[n - 1] == '\n')
            line[n - 1] = '\0';
        line_fn(m, line);
    }
    int rc = ferror(f) ? -EIO : 0;
    fclose(f);
    return rc;
}

static void copy_path(char ret[CSN_CGROUP_PATH_MAX], const char *path)
{
    size_t n = strlen(path);

    if (n >= CSN_CGROUP_PATH_MAX)
        n = 0; /* too long to be used: as if it could not be seen */
    memcpy(ret, path, n);
    ret[n] = '\0';
}

/* 4:cpu,cpuacct:/path or 0::/path. Hierarchies without a controller (1:name=systemd:/x) limit
 * nothing. */
static void own_line(csn_cgroup_map *m, char *line)
{
    char *list = strchr(line, ':');
    char *path = list ? strchr(list + 1, ':') : NULL;

    if (!path)
        return;
    *list++ = '\0';
    *path++ = '\0';
    if (strcmp(line, "0") == 0 && !*list) {
        m->v2.listed = true;
        copy_path(m->v2.path, path);
        return;
    }
    for (int k = 0; k < CSN_CGROUP_KINDS; k++)
        if (csn_cgroup_lists(list, ",", csn_cgroup_kind_name(k))) {
            m->v1[k].listed = true;
            copy_path(m->v1[k].path, path);
        }
}

/* Undoes \040 and its like, in place. */
static void unescape(char *s)
{
    char *to = s;

    for (; *s; s++) {
        if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
            s[3] >= '0' && s[3] <= '7') {
            *to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
            s += 3;
        } else {
            *to++ = *s;
        }
    }
    *to = '\0';
}

/* Notes one mount of a hierarchy. A later one counts when it lies over the first or shows more
 * of use: the same hierarchy is often mounted a second time, read-only or in part. */
static void take_mount(csn_cgroup_place *p, const char *root, const char *point, bool read_only)
{
    char own[CSN_CGROUP_PATH_MAX] = "", procs[CSN_CGROUP_PATH_MAX];
    bool hidden = csn_cgroup_lists(root, "/", "..") || csn_cgroup_lists(p->path, "/", "..");
    const char *rest = hidden ? NULL : csn_path_below(p->path, root);

    if (!p->listed || strlen(point) >= sizeof(p->top))
        return;
    /* Something else may be mounted over it: only a directory of groups has this file. */
    if (rest && p->path[0] == '/' &&
        (csn_cgroup_join(own, point, rest) < 0 ||
         csn_cgroup_join(procs, own, "cgroup.procs") < 0 || access(procs, F_OK) < 0))
        own[0] = '\0';
    bool better = !p->mounted || strcmp(p->top, point) == 0 || (own[0] && !p->own[0]) ||
                  (own[0] && p->read_only && !read_only);
    if (!better)
        return;
    p->mounted = true;
    p->read_only = read_only;
    copy_path(p->top, point);
    copy_path(p->own, own);
}

/* ID PARENT MAJ:MIN ROOT POINT OPTIONS [TAG...] - TYPE SOURCE SUPEROPTIONS */
static void mount_line(csn_cgroup_map *m, char *line)
{
    char *field[6], *save = NULL, *tail = strstr(line, " - ");
    char *type, *super = NULL;

    if (!tail)
        return;
    *tail = '\0';
    for (int i = 0; i < 6; i++)
        if (!(field[i] = strtok_r(i == 0 ? line : NULL, " ", &save)))
            return;
    type = strtok_r(tail + 3, " ", &save);
    if (!type || strncmp(type, "cgroup", 6) != 0)
        return;
    /* The source may be empty, so the last field is found from behind. */
    super = save ? strrchr(save, ' ') : NULL;
    super = super ? super + 1 : save;
    if (!super)
        return;
    bool read_only =
        csn_cgroup_lists(field[5], ",", "ro") || csn_cgroup_lists(super, ",", "ro");
    unescape(field[3]);
    unescape(field[4]);
    if (strcmp(type, "cgroup2") == 0)
        take_mount(&m->v2, field[3], field[4], read_only);
    for (int k = 0; strcmp(type, "cgroup") == 0 && k < CSN_CGROUP_KINDS; k++)
        if (csn_cgroup_lists(super, ",", csn_cgroup_kind_name(k)))
            take_mount(&m->v1[k], field[3], field[4], read_only);
}

int csn_cgroup_find(const csn_cgroup_host *host, csn_cgroup_map *ret)
{
    const char *self = host ? host->self_cgroup : NULL;
    const char *mounts = host ? host->mountinfo : NULL;

    memset(ret, 0, sizeof(*ret));
    int rc = each_line(self ? self : "/proc/self/cgroup", own_line, ret);
    if (rc == -ENOENT) /* a kernel without control groups */
        return access("/proc/self", F_OK) < 0 ? rc : 0;
    return rc < 0 ? rc : each_line(mounts ? mounts : "/proc/self/mountinfo", mount_line, ret);
}
