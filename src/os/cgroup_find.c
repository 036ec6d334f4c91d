/* cgroup_find.c: the mounted cgroup hierarchies and the caller's place in them.
 *
 * /proc/self/cgroup names the caller's group in each hierarchy, /proc/self/mountinfo says where
 * hierarchies are mounted; a directory follows from both. Inside a cgroup namespace or a
 * container a mount may show only part of its hierarchy (its root is then not `/`), and the
 * caller may be outside that part (`/../x`). Invariant: a directory is returned only if it is
 * the caller's own group. Lines may be long and paths may hold anything but newlines: mountinfo
 * escapes blanks in octal, the other file escapes nothing. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "os/cgroup_internal.h"

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

bool csn_cgroup_climb(char *dir, const char *top)
{
    char *slash = strrchr(dir, '/');

    if (!slash || strlen(dir) <= strlen(top))
        return false;
    *slash = '\0';
    return true;
}

/* Calls line_fn with every line of a file, without its newline; it may modify the line. */
static int each_line(const char *file, void (*line_fn)(csn_cgroup_hierarchies *m, char *line),
                     csn_cgroup_hierarchies *m)
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
        n = 0; /* unusable: treated as not visible */
    memcpy(ret, path, n);
    ret[n] = '\0';
}

/* 4:cpu,cpuacct:/path or 0::/path. Named hierarchies (1:name=systemd:/x) limit nothing. */
static void parse_cgroup_line(csn_cgroup_hierarchies *m, char *line)
{
    char *list = strchr(line, ':');
    char *path = list ? strchr(list + 1, ':') : NULL;

    if (!path)
        return;
    *list++ = '\0';
    *path++ = '\0';
    if (strcmp(line, "0") == 0 && !*list) {
        m->v2.listed = true;
        copy_path(m->v2.self, path);
        return;
    }
    for (int k = 0; k < CSN_CGROUP_KINDS; k++)
        if (csn_cgroup_list_has(list, ",", csn_cgroup_kind_name(k))) {
            m->v1[k].listed = true;
            copy_path(m->v1[k].self, path);
        }
}

/* Decodes octal escapes (\040) in place. */
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

/* A hierarchy is often mounted a second time, read-only or in part. A later mount replaces the
 * first if it has the same mount point, shows the caller's group, or is writable. */
static void add_mount(csn_cgroup_hierarchy *h, const char *root, const char *point,
                      bool read_only)
{
    char own[CSN_CGROUP_PATH_MAX] = "", procs[CSN_CGROUP_PATH_MAX];
    bool hidden =
        csn_cgroup_list_has(root, "/", "..") || csn_cgroup_list_has(h->self, "/", "..");
    const char *rest = hidden ? NULL : csn_path_below(h->self, root);

    if (!h->listed || strlen(point) >= sizeof(h->top))
        return;
    /* Another file system may hide the directory: only cgroup directories have this file. */
    if (rest && h->self[0] == '/' &&
        (csn_cgroup_join(own, point, rest) < 0 ||
         csn_cgroup_join(procs, own, "cgroup.procs") < 0 || access(procs, F_OK) < 0))
        own[0] = '\0';
    bool better = !h->mounted || strcmp(h->top, point) == 0 || (own[0] && !h->own[0]) ||
                  (own[0] && h->read_only && !read_only);
    if (!better)
        return;
    h->mounted = true;
    h->read_only = read_only;
    copy_path(h->top, point);
    copy_path(h->own, own);
}

/* ID PARENT MAJ:MIN ROOT POINT OPTIONS [TAG...] - TYPE SOURCE SUPEROPTIONS */
static void parse_mount_line(csn_cgroup_hierarchies *m, char *line)
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
    /* The source may be empty, so the last field is searched from the end. */
    super = save ? strrchr(save, ' ') : NULL;
    super = super ? super + 1 : save;
    if (!super)
        return;
    bool read_only =
        csn_cgroup_list_has(field[5], ",", "ro") || csn_cgroup_list_has(super, ",", "ro");
    unescape(field[3]);
    unescape(field[4]);
    if (strcmp(type, "cgroup2") == 0)
        add_mount(&m->v2, field[3], field[4], read_only);
    for (int k = 0; strcmp(type, "cgroup") == 0 && k < CSN_CGROUP_KINDS; k++)
        if (csn_cgroup_list_has(super, ",", csn_cgroup_kind_name(k)))
            add_mount(&m->v1[k], field[3], field[4], read_only);
}

int csn_cgroup_find(const csn_cgroup_host *host, csn_cgroup_hierarchies *ret)
{
    const char *self = host ? host->self_cgroup : NULL;
    const char *mounts = host ? host->mountinfo : NULL;

    memset(ret, 0, sizeof(*ret));
    int rc = each_line(self ? self : "/proc/self/cgroup", parse_cgroup_line, ret);
    if (rc == -ENOENT) /* a kernel without control groups */
        return access("/proc/self", F_OK) < 0 ? rc : 0;
    return rc < 0 ? rc
                  : each_line(mounts ? mounts : "/proc/self/mountinfo", parse_mount_line, ret);
}
