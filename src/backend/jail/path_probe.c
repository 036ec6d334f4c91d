/* path_probe.c: what one path is, to a command inside a jail and to the caller outside.
 *
 * Called by explain_failure.c for the paths that a failed command has printed: a command
 * chooses them, and the trees they lead through are its own. So nothing is opened but as O_PATH
 * (a FIFO does not block, a device does not wake up) and the first line of a regular file
 * inside; paths are resolved by the kernel below a root, and magic links of /proc are not
 * followed. Inside is looked at as the user that commands are, outside as the caller. What must
 * hold: an answer says "inside" or "host" only of what was really there, and nothing on the
 * host is changed. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "backend/jail/explain_failure.h"
#include "base/path.h"
#include "base/strv.h"
#include "os/beneath.h"

/* ---- which grant, which denial ---- */

/* The longest wins; of two that are the same, the later is mounted over the earlier. */
static void consider(csn_path_probe_ctx *l, const char *asked, const char *dir,
                     const char *name, int index, size_t *longest)
{
    size_t len = dir ? strlen(dir) : 0;

    if (!dir || !csn_path_below(asked, dir) || len < *longest)
        return;
    *longest = len;
    if (index < 0)
        snprintf(l->source, sizeof(l->source), "config.%s", name);
    else
        snprintf(l->source, sizeof(l->source), "config.%s[%d]", name, index);
}

/* Where in the configuration the grant comes from that it lies in. */
static void find_source(csn_path_probe_ctx *l, const char *asked)
{
    const csn_config *c = l->rt->config;
    size_t longest = 0;

    consider(l, asked, l->rt->base.path, "workspace", -1, &longest);
    consider(l, asked, c->home, "home", -1, &longest);
    for (int i = 0; c->read && c->read[i]; i++)
        consider(l, asked, c->read[i], "read", i, &longest);
    for (int i = 0; c->write && c->write[i]; i++)
        consider(l, asked, c->write[i], "write", i, &longest);
}

/* Is it covered by name? Relative names are below the workspace. */
static bool find_denial(csn_path_probe_ctx *l, const char *asked)
{
    const csn_runtime *rt = l->rt;
    const char *const *deny = rt->config->deny;

    for (int i = 0; deny && deny[i]; i++) {
        const char *name = deny[i];
        const char *rest = name[0] == '/' ? asked : csn_path_below(asked, rt->base.path);
        while (csn_str_starts(name, "./"))
            name += 2;
        if (!rest || !csn_path_below(rest, name))
            continue;
        snprintf(l->rule, sizeof(l->rule), "deny %s", deny[i]);
        snprintf(l->source, sizeof(l->source), "config.deny[%d]", i);
        return true;
    }
    return false;
}

/* A directory that is both in `read` and in `write` is read-only (plan.c). Leaving it out of
 * `read` makes it writable; another --write does not. */
static bool find_read_and_write(csn_path_probe_ctx *l, const char *asked)
{
    const csn_config *c = l->rt->config;

    for (int i = 0; c->read && c->read[i]; i++) {
        if (!csn_path_below(asked, c->read[i]) || !csn_strv_has(c->write, c->read[i]))
            continue;
        snprintf(l->rule, sizeof(l->rule), "read %s", c->read[i]);
        snprintf(l->source, sizeof(l->source), "config.read[%d]", i);
        return true;
    }
    return false;
}

/* Does it lie in a directory that a root caller has shared already? */
static bool is_shared(const csn_runtime *rt, const char *path)
{
    const csn_jail *j = rt->jail;
    bool mapped = j->privileged && rt->level == CSN_LEVEL_NAMESPACES;

    for (size_t i = 0; mapped && i < j->shares->count; i++)
        if (csn_path_below(path, j->shares->v[i].inside))
            return true;
    return false;
}

/* ---- inside ---- */

static bool may(int fd, int mode)
{
    return faccessat(fd, "", mode, AT_EMPTY_PATH | AT_EACCESS) == 0;
}

/* The program that the first line of a script names. */
static void find_interpreter(csn_path_probe_ctx *l, const char *path)
{
    char line[sizeof(l->needs)];
    csn_autofd int fd = csn_beneath_open(l->inside_root, path, O_RDONLY, CSN_BENEATH_ROOTED);
    ssize_t n = fd >= 0 ? pread(fd, line, sizeof(line) - 1, 0) : -1;

    if (n < 3 || line[0] != '#' || line[1] != '!')
        return;
    line[n] = '\0';
    const char *at = line + 2 + strspn(line + 2, " \t");
    size_t len = strcspn(at, " \t\r\n");
    if (at[len] == '\0' || *at != '/') /* cut off, or no path */
        return;
    memcpy(l->needs, at, len);
    l->needs[len] = '\0';
}

/* Without a root of its own (landlock_only.c) a jail has the host's files, and what the rules
 * allow of them: they are made of the same list as the Landlock rules. */
static void look_behind_landlock(const csn_path_probe_ctx *l, int fd, csn_explain_fact *ret)
{
    csn_autofree char *real = csn_runtime_fd_path(fd);

    if (!real)
        return;
    ret->inside_readable = csn_rules_check(l->rt->rules, CSN_OP_READ, real).allowed;
    ret->inside_writable = csn_rules_check(l->rt->rules, CSN_OP_WRITE, real).allowed;
}

/* Who owns the files of a share decides what a command may do to them, and no further grant
 * would change that: they count as granted. Outside the shares a grant may help: on one, the
 * files of a root caller are the command's. For everybody else permissions are the same inside
 * and outside, so they never make a difference. */
static void look_inside(csn_path_probe_ctx *l, const char *path, csn_explain_fact *ret)
{
    csn_autofd int fd = csn_beneath_open(l->inside_root, path, O_PATH, CSN_BENEATH_ROOTED);
    bool shared = is_shared(l->rt, path);
    struct stat st;
    struct statvfs fs;

    ret->inside = fd >= 0 || fd == -EACCES;
    ret->inside_readable = ret->inside && shared;
    if (fd < 0 || fstat(fd, &st) < 0 || fstatvfs(fd, &fs) < 0)
        return;
    if (l->inside_root == l->host_root) {
        look_behind_landlock(l, fd, ret);
    } else {
        ret->inside_readable = shared || may(fd, S_ISDIR(st.st_mode) ? X_OK : R_OK);
        ret->inside_writable = !(fs.f_flag & ST_RDONLY) && (shared || may(fd, W_OK));
    }
    if (S_ISREG(st.st_mode) && (st.st_mode & 0111))
        find_interpreter(l, path);
    ret->needs = l->needs[0] ? l->needs : NULL;
}

/* ---- outside ---- */

static bool is_proc(int fd)
{
    struct statfs fs;

    return fstatfs(fd, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC;
}

static bool is_link(int root, const char *path)
{
    csn_autofd int fd = csn_beneath_open(root, path, O_PATH | O_NOFOLLOW, CSN_BENEATH_ROOTED);
    struct stat st;

    return fd >= 0 && fstat(fd, &st) == 0 && S_ISLNK(st.st_mode);
}

static void look_outside(csn_path_probe_ctx *l, const char *path, csn_explain_fact *ret)
{
    csn_autofd int fd = csn_beneath_open(l->host_root, path, O_PATH, CSN_BENEATH_ROOTED);
    struct stat st;

    if (fd < 0 || is_proc(fd) || fstat(fd, &st) < 0)
        return;
    csn_autofree char *real = csn_runtime_fd_path(fd);
    if (!real || strlen(real) >= sizeof(l->resolved))
        return;
    memcpy(l->resolved, real, strlen(real) + 1);
    ret->resolved = l->resolved;
    ret->dir = S_ISDIR(st.st_mode);
    ret->socket = S_ISSOCK(st.st_mode);
    ret->link = is_link(l->host_root, path);
    ret->host = true;
    ret->host_readable = may(fd, ret->dir ? X_OK : R_OK);
    ret->host_writable = may(fd, ret->dir ? W_OK | X_OK : W_OK);
}

void csn_path_probe(void *ctx, const char *path, csn_explain_fact *ret)
{
    csn_path_probe_ctx *l = ctx;
    csn_fsuid fsuid;

    if (csn_jail_fsuid_switch(l->rt, &fsuid, NULL) < 0)
        return;
    l->source[0] = l->rule[0] = l->needs[0] = '\0';
    look_inside(l, path, ret);
    csn_fsuid_restore(&fsuid);
    look_outside(l, path, ret);
    if (!ret->inside)
        return;
    find_source(l, path);
    if (find_denial(l, path)) {
        ret->rule = l->rule;
        ret->inside_readable = ret->inside_writable = false;
    } else if (!ret->inside_writable && find_read_and_write(l, path)) {
        ret->rule = l->rule;
    }
    ret->source = l->source[0] ? l->source : NULL;
}
