/* path_probe.c: checks whether a path exists and is accessible inside a jail, and whether the
 * jail shows that part of the host.
 *
 * The paths come from the output of a failed command, and commands may control the trees that
 * they lead through. Files are therefore opened only with O_PATH (no FIFO blocks, no device is
 * opened), except to read the first line of an executable inside; the kernel resolves paths
 * below a root and follows no magic links. Inside, checks run with the uid of commands.
 *
 * Invariant: the command may see the result, so a fact depends only on what the command can see
 * itself and on the options of the sandbox. A path outside the mounts is never looked up on the
 * host: it is `hidden`, whether the host has it or not. Without namespaces (landlock_only) the
 * command sees the names of the whole host; only then is the host probed, with the uid of
 * commands. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "backend/jail/explain_failure.h"
#include "base/path.h"
#include "base/strv.h"
#include "os/beneath.h"

/* ---- grants and denials ---- */

/* The longest path decides; of two equal ones, the later is mounted over the earlier. */
static void prefer_longest(csn_path_probe_ctx *p, const char *asked, const char *dir,
                           const char *name, int index, size_t *longest)
{
    size_t len = dir ? strlen(dir) : 0;

    if (!dir || !csn_path_below(asked, dir) || len < *longest)
        return;
    *longest = len;
    if (index < 0)
        snprintf(p->source, sizeof(p->source), "config.%s", name);
    else
        snprintf(p->source, sizeof(p->source), "config.%s[%d]", name, index);
}

/* Finds the option that grants the directory of `asked`. */
static void find_source(csn_path_probe_ctx *p, const char *asked)
{
    const csn_config *c = p->rt->config;
    size_t longest = 0;

    prefer_longest(p, asked, p->rt->base.path, "workspace", -1, &longest);
    prefer_longest(p, asked, c->home, "home", -1, &longest);
    for (int i = 0; c->read && c->read[i]; i++)
        prefer_longest(p, asked, c->read[i], "read", i, &longest);
    for (int i = 0; c->write && c->write[i]; i++)
        prefer_longest(p, asked, c->write[i], "write", i, &longest);
}

/* The text of item i of a list of the config, or NULL. */
static const char *item(const char *const *list, size_t i)
{
    return i < csn_strv_len(list) ? list[i] : NULL;
}

/* Finds the denial that covers `asked`, and the first operation that it refuses; 0: none. Rules
 * for file calls alone do not explain the failure of a command. */
static uint32_t find_denial(csn_path_probe_ctx *p, const char *asked)
{
    static const char deny[] = "config.deny[", missing[] = "config.deny_missing_ok[",
                      rules[] = "config.rules[";
    const csn_runtime *rt = p->rt;
    const csn_config *c = rt->config;

    for (uint32_t op = CSN_OP_READ; rt->rules && op <= CSN_OP_DELETE; op <<= 1) {
        const csn_rule_hit hit = csn_rules_check(rt->rules, op, asked);
        const char *source = hit.allowed || !hit.source ? "" : hit.source, *name = NULL;
        size_t i =
            *source ? strtoul(strchr(source, '[') ? strchr(source, '[') + 1 : "", NULL, 10) : 0;
        if (csn_str_starts(source, deny) && (name = item(c->deny, i)))
            snprintf(p->rule, sizeof(p->rule), "deny %s", name);
        else if (csn_str_starts(source, missing) && (name = item(c->deny_missing_ok, i)))
            snprintf(p->rule, sizeof(p->rule), "deny-missing-ok %s", name);
        else if (csn_str_starts(source, rules) && i < c->rule_count && !c->rules[i].allow &&
                 !(c->rules[i].ops & CSN_RULE_FILES))
            snprintf(p->rule, sizeof(p->rule), "rules[%zu]: %s", i, hit.rule);
        else if (csn_str_starts(source, "keys of the home"))
            snprintf(p->rule, sizeof(p->rule), "%s", hit.rule);
        else
            continue;
        snprintf(p->source, sizeof(p->source), "%s", source);
        return op;
    }
    return 0;
}

/* A directory that is both in `read` and in `write` is read-only (plan.c). Leaving it out of
 * `read` makes it writable; another --write does not. */
static bool find_read_and_write(csn_path_probe_ctx *p, const char *asked)
{
    const csn_config *c = p->rt->config;

    for (int i = 0; c->read && c->read[i]; i++) {
        if (!csn_path_below(asked, c->read[i]) || !csn_strv_has(c->write, c->read[i]))
            continue;
        snprintf(p->rule, sizeof(p->rule), "read %s", c->read[i]);
        snprintf(p->source, sizeof(p->source), "config.read[%d]", i);
        return true;
    }
    return false;
}

/* True for paths in an id-mapped share. */
static bool is_shared(const csn_runtime *rt, const char *path)
{
    const csn_jail *j = rt->jail;

    for (size_t i = 0; j->idmapped && i < j->shares->count; i++)
        if (csn_path_below(path, j->shares->v[i].inside))
            return true;
    return false;
}

/* ---- inside ---- */

static bool may(int fd, int mode)
{
    return faccessat(fd, "", mode, AT_EMPTY_PATH | AT_EACCESS) == 0;
}

/* Reads the interpreter from the first line of a script. */
static void find_interpreter(csn_path_probe_ctx *p, const char *path)
{
    char line[sizeof(p->needs)];
    csn_autofd int fd = csn_beneath_open(p->inside_root, path, O_RDONLY, CSN_BENEATH_ROOTED);
    ssize_t n = fd >= 0 ? pread(fd, line, sizeof(line) - 1, 0) : -1;

    if (n < 3 || line[0] != '#' || line[1] != '!')
        return;
    line[n] = '\0';
    const char *at = line + 2 + strspn(line + 2, " \t");
    size_t len = strcspn(at, " \t\r\n");
    if (at[len] == '\0' || *at != '/') /* truncated, or not a path */
        return;
    memcpy(p->needs, at, len);
    p->needs[len] = '\0';
}

/* landlock_only: the rules are made from the same list as the Landlock rules. */
static void probe_rules(const csn_path_probe_ctx *p, int fd, csn_explain_fact *ret)
{
    csn_autofree char *real = csn_runtime_fd_path(fd);

    if (!real)
        return;
    ret->inside_readable = csn_rules_check(p->rt->rules, CSN_OP_READ, real).allowed;
    ret->inside_writable = csn_rules_check(p->rt->rules, CSN_OP_WRITE, real).allowed;
}

static bool is_writable(int fd, bool shared)
{
    struct statvfs fs;

    return fstatvfs(fd, &fs) == 0 && !(fs.f_flag & ST_RDONLY) && (shared || may(fd, W_OK));
}

/* In an id-mapped share a refusal is due to file permissions, which no further grant changes:
 * such paths count as accessible. Without id mapping, permissions are the same inside and
 * outside. Returns the descriptor or -errno. */
static int probe_inside(csn_path_probe_ctx *p, const char *path, csn_explain_fact *ret)
{
    int fd = csn_beneath_open(p->inside_root, path, O_PATH, CSN_BENEATH_ROOTED);
    bool shared = is_shared(p->rt, path);
    struct stat st;

    ret->inside = fd >= 0 || fd == -EACCES;
    ret->inside_readable = ret->inside && shared;
    if (fd < 0 || fstat(fd, &st) < 0)
        return fd;
    ret->dir = S_ISDIR(st.st_mode);
    ret->socket = S_ISSOCK(st.st_mode);
    if (p->inside_root == p->host_root) {
        probe_rules(p, fd, ret);
    } else {
        ret->inside_readable = shared || may(fd, ret->dir ? X_OK : R_OK);
        ret->inside_writable = is_writable(fd, shared);
    }
    if (S_ISREG(st.st_mode) && (st.st_mode & 0111))
        find_interpreter(p, path);
    ret->needs = p->needs[0] ? p->needs : NULL;
    return fd;
}

/* ---- hidden parts of the host ---- */

static uint64_t mount_of(int fd)
{
    struct statx stx;

    return statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &stx) == 0 &&
                   (stx.stx_mask & STATX_MNT_ID)
               ? stx.stx_mnt_id
               : 0;
}

/* True if the jail made the directory itself: it is on the mount of the root or on the private
 * tmpfs, of which /dev/shm is always a part. */
static bool is_own(const csn_path_probe_ctx *p, int fd)
{
    csn_autofd int shm =
        csn_beneath_open(p->inside_root, "/dev/shm", O_PATH, CSN_BENEATH_ROOTED);
    struct stat st, own;

    if (mount_of(fd) == mount_of(p->inside_root))
        return true;
    return shm >= 0 && fstat(fd, &st) == 0 && fstat(shm, &own) == 0 && st.st_dev == own.st_dev;
}

/* Is `dir` the directory of a grant or above it? Its other entries are the host's too. */
static bool is_above_grant(const csn_path_probe_ctx *p, const char *dir)
{
    const csn_config *c = p->rt->config;
    bool found =
        csn_path_below(p->rt->base.path, dir) || (c->home && csn_path_below(c->home, dir));

    for (int i = 0; !found && c->read && c->read[i]; i++)
        found = csn_path_below(c->read[i], dir) != NULL;
    for (int i = 0; !found && c->write && c->write[i]; i++)
        found = csn_path_below(c->write[i], dir) != NULL;
    return found;
}

/* What is missing in a directory that the command can write (/tmp, the private home) is an
 * ordinary missing file, except beside a grant. */
static bool hides_entries(const csn_path_probe_ctx *p, const char *dir, int fd)
{
    struct stat st;

    if (!is_own(p, fd) || fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode))
        return false;
    return !is_writable(fd, false) || (!(st.st_mode & S_ISVTX) && is_above_grant(p, dir));
}

static bool has_dotdot(const char *path)
{
    for (; *path; path += strspn(path, "/")) {
        size_t n = strcspn(path, "/");
        if (n == 2 && path[0] == '.' && path[1] == '.')
            return true;
        path += n;
    }
    return false;
}

/* A path on its way through the links that the command sees. */
typedef struct walk {
    char *done;          /* resolved; "": the root */
    char rest[PATH_MAX]; /* to be resolved */
    unsigned links;
} walk;

/* Puts the target of a link before the rest. */
static int follow_link(walk *w, int fd)
{
    char joined[PATH_MAX];
    ssize_t n = readlinkat(fd, "", joined, sizeof(joined));
    size_t len = strlen(w->rest);

    if (n <= 0 || ++w->links > 40 || (size_t)n + 1 + len >= sizeof(joined))
        return -ELOOP;
    joined[n] = '/';
    memcpy(joined + n + 1, w->rest, len + 1);
    memcpy(w->rest, joined, (size_t)n + 1 + len + 1);
    if (joined[0] == '/')
        w->done[0] = '\0';
    else
        *strrchr(w->done, '/') = '\0';
    return 0;
}

/* Moves the next component from rest to done. 0: none is left. */
static int take_component(walk *w)
{
    char *at = w->rest + strspn(w->rest, "/");
    size_t n = strcspn(at, "/"), len = strlen(w->done);
    char *slash = strrchr(w->done, '/');

    if (n == 0)
        return 0;
    if (n == 2 && at[0] == '.' && at[1] == '.') {
        if (slash)
            *slash = '\0';
    } else if (!(n == 1 && at[0] == '.')) {
        if (len + 1 + n >= PATH_MAX)
            return -ENAMETOOLONG;
        w->done[len] = '/';
        memcpy(w->done + len + 1, at, n);
        w->done[len + 1 + n] = '\0';
    }
    memmove(w->rest, at + n, strlen(at + n) + 1);
    return 1;
}

static bool is_proc(int fd)
{
    struct statfs fs;

    return fstatfs(fd, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC;
}

/* Resolves the path as the command would, into p->resolved. A component that is missing stays
 * as it is written, with what follows it; *ret_hidden: the host may have it. false: nothing can
 * be said. */
static bool resolve_inside(csn_path_probe_ctx *p, const char *path, bool *ret_hidden)
{
    walk w = {.done = p->resolved};
    csn_autofd int dir = csn_beneath_open(p->inside_root, "/", O_PATH, CSN_BENEATH_ROOTED);
    char parent[PATH_MAX] = "/";
    int rc;

    *ret_hidden = false;
    w.done[0] = '\0';
    if (dir < 0 || strlen(path) >= sizeof(w.rest))
        return false;
    memcpy(w.rest, path, strlen(path) + 1);
    while ((rc = take_component(&w)) > 0) {
        int fd = csn_beneath_open(p->inside_root, *w.done ? w.done : "/", O_PATH | O_NOFOLLOW,
                                  CSN_BENEATH_ROOTED | CSN_BENEATH_NOFOLLOW);
        struct stat st;
        if (fd < 0) {
            *ret_hidden = fd == -ENOENT && hides_entries(p, parent, dir);
            bool plain = !has_dotdot(w.rest);
            while (plain && (rc = take_component(&w)) > 0)
                ;
            return plain && rc == 0;
        }
        bool link = fstat(fd, &st) == 0 && S_ISLNK(st.st_mode);
        rc = is_proc(fd) && link ? -ELOOP : link ? follow_link(&w, fd) : 0;
        if (link) {
            close(fd);
        } else {
            close(dir);
            dir = fd;
            memcpy(parent, *w.done ? w.done : "/", strlen(w.done) + 1 + !*w.done);
        }
        if (rc < 0)
            return false;
    }
    if (rc == 0 && !*w.done)
        memcpy(w.done, "/", 2);
    return rc == 0;
}

/* What the command sees there is the host's own, unless the jail made it; directories that the
 * jail made hold its mounts, and the host has them too. The descriptor leads to the same inode
 * as on the host: a check of the caller's permission fails with EROFS if only the mount is in
 * the way. */
static void probe_shared(const csn_path_probe_ctx *p, int fd, csn_explain_fact *ret)
{
    int mode = ret->dir ? W_OK | X_OK : W_OK;

    if (is_proc(fd))
        return;
    ret->host = true;
    if (is_own(p, fd)) {
        ret->host_writable = !ret->inside_writable;
        return;
    }
    ret->host_readable = may(fd, ret->dir ? X_OK : R_OK);
    ret->host_writable =
        faccessat(fd, "", mode, AT_EMPTY_PATH | AT_EACCESS) == 0 || errno == EROFS;
}

/* ---- the host, without namespaces ---- */

static bool is_link(int root, const char *path)
{
    csn_autofd int fd = csn_beneath_open(root, path, O_PATH | O_NOFOLLOW, CSN_BENEATH_ROOTED);
    struct stat st;

    return fd >= 0 && fstat(fd, &st) == 0 && S_ISLNK(st.st_mode);
}

static void probe_outside(csn_path_probe_ctx *p, const char *path, csn_explain_fact *ret)
{
    csn_autofd int fd = csn_beneath_open(p->host_root, path, O_PATH, CSN_BENEATH_ROOTED);
    struct stat st;

    if (fd < 0 || is_proc(fd) || fstat(fd, &st) < 0)
        return;
    csn_autofree char *real = csn_runtime_fd_path(fd);
    if (!real || strlen(real) >= sizeof(p->resolved))
        return;
    memcpy(p->resolved, real, strlen(real) + 1);
    ret->resolved = p->resolved;
    ret->dir = S_ISDIR(st.st_mode);
    ret->socket = S_ISSOCK(st.st_mode);
    ret->link = is_link(p->host_root, path);
    ret->host = true;
    ret->host_readable = may(fd, ret->dir ? X_OK : R_OK);
    ret->host_writable = may(fd, ret->dir ? W_OK | X_OK : W_OK);
}

/* With namespaces: only what the command sees. */
static void probe_jail(csn_path_probe_ctx *p, const char *path, csn_explain_fact *ret)
{
    csn_fsuid fsuid;
    bool hidden = false;

    if (csn_jail_fsuid_switch(p->rt, &fsuid, NULL) < 0)
        return;
    csn_autofd int fd = probe_inside(p, path, ret);
    bool known = resolve_inside(p, path, &hidden);
    csn_fsuid_restore(&fsuid);
    if (known)
        ret->resolved = p->resolved;
    if (fd >= 0)
        probe_shared(p, fd, ret);
    ret->hidden = known && hidden && !ret->inside;
}

static void probe_host(csn_path_probe_ctx *p, const char *path, csn_explain_fact *ret)
{
    csn_fsuid fsuid;

    if (csn_jail_fsuid_switch(p->rt, &fsuid, NULL) < 0)
        return;
    int fd = probe_inside(p, path, ret);
    if (fd >= 0)
        close(fd);
    ret->dir = ret->socket = false;
    probe_outside(p, path, ret);
    csn_fsuid_restore(&fsuid);
}

void csn_path_probe(void *ctx, const char *path, csn_explain_fact *ret)
{
    csn_path_probe_ctx *p = ctx;

    p->source[0] = p->rule[0] = p->needs[0] = '\0';
    if (p->inside_root == p->host_root)
        probe_host(p, path, ret);
    else
        probe_jail(p, path, ret);
    if (!ret->inside)
        return;
    find_source(p, path);
    uint32_t denied = p->rt->level == CSN_LEVEL_NAMESPACES ? find_denial(p, path) : 0;
    if (denied) {
        ret->rule = p->rule;
        ret->inside_readable = ret->inside_readable && denied != CSN_OP_READ;
        ret->inside_writable = false;
        ret->host = ret->host_readable = ret->host_writable = true;
    } else if (!ret->inside_writable && find_read_and_write(p, path)) {
        ret->rule = p->rule;
    }
    ret->source = p->source[0] ? p->source : NULL;
}
