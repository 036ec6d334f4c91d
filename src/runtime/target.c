/* target.c: resolves a path from an agent to a descriptor and checks it against the policy.
 *
 * An attacker controls the path and the tree. The order of steps makes this safe: the kernel
 * resolves the path below the grant's descriptor; the path of the opened file is read from
 * /proc/self/fd; the rules are checked for that path; the operation uses the same descriptor,
 * so a swap in between has no effect. A path of plain components that was opened without
 * following links needs no lookup in /proc. If the rules only concern whole directories, being
 * below the grant is enough. If a path is needed and the kernel reports none, the operation is
 * refused.
 *
 * Error messages show the path as it was requested, never the resolved one. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/path.h"
#include "os/beneath.h"
#include "runtime/files.h"

csn_target csn_target_of(const csn_runtime *rt, uint32_t op, const char *path, uint32_t flags)
{
    csn_target t = {.rt = rt, .op = op & ~CSN_OP_TREE, .tree = op & CSN_OP_TREE, .asked = path};

    t.grant = csn_runtime_grant_of(rt, path, &t.rest);
    if ((flags & CSN_FILE_NOFOLLOW) || (rt->config && (rt->config->flags & CSN_OPEN_NOFOLLOW)))
        t.how |= CSN_BENEATH_NOFOLLOW;
    /* Absolute links cannot lead out of a grant that is the root directory, so they are
     * followed. */
    if (strcmp(t.grant->path, "/") == 0)
        t.how |= CSN_BENEATH_ROOTED;
    return t;
}

/* The name of the highest bit, which is the most severe: a rename both deletes and reads. */
static const char *op_word(uint32_t op)
{
    for (uint32_t bit = CSN_OP_NET; bit > 0; bit >>= 1)
        if (op & bit)
            return csn_op_name(bit);
    return "use";
}

bool csn_target_checked(const csn_target *t)
{
    if (!t->rt->rules)
        return false;
    return t->rt->level == CSN_LEVEL_LANDLOCK_ONLY || csn_rules_has_carveouts(t->rt->rules) ||
           (!t->grant->writable && (t->op & (CSN_OP_WRITE | CSN_OP_DELETE)) != 0);
}

char *csn_target_path(const csn_target *t, int fd, const char *more)
{
    csn_autofree char *found = csn_runtime_fd_path(fd);
    /* The kernel reports "/" for a root directory. */
    bool root = strcmp(t->grant->path, "/") == 0;
    csn_autofree char *top = root ? strdup("/") : csn_runtime_fd_path(t->grant->fd);
    const char *base = t->grant->path,
               *below = found && top ? csn_path_below(found, top) : NULL;
    char *out = NULL;

    /* The grant may have been moved since it was opened; the rules use its original path. */
    if (!below)
        return NULL;
    int n = asprintf(&out, "%s%s%s%s%s", strcmp(base, "/") == 0 ? "" : base, *below ? "/" : "",
                     below, *more ? "/" : "", more);
    if (n == 0) { /* the root directory itself */
        free(out);
        return strdup("/");
    }
    return n < 0 ? NULL : out;
}

/* True if every component below the grant is a plain name: no `.`, `..` or doubled slash. */
static bool is_plain(const csn_target *t)
{
    const char *p = t->rest + (*t->rest == '/');

    for (;;) {
        size_t n = strcspn(p, "/");
        if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
            return false;
        if (p[n] == '\0')
            return true;
        p += n + 1;
    }
}

/* As csn_target_path, for a plain path that was opened without following links. */
static char *plain_path(const csn_target *t)
{
    const char *base = strcmp(t->grant->path, "/") == 0 ? "" : t->grant->path;
    char *out = NULL;

    return asprintf(&out, "%s/%s", base, t->rest + (*t->rest == '/')) < 0 ? NULL : out;
}

/* The path that `..` leads to lexically, for the hint. NULL if it stays below the grant. */
static char *text_outside(const csn_target *t)
{
    char *out = strdup(t->grant->path), *grown;
    size_t len = out ? strlen(out) : 0, least = len;

    for (const char *p = t->rest; out && *p;) {
        size_t n = strcspn(p, "/");
        if (n == 2 && p[0] == '.' && p[1] == '.') {
            while (len > 0 && out[len - 1] != '/')
                len--;
            len -= len > 0;
            least = len < least ? len : least;
        } else if (n > 0 && !(n == 1 && p[0] == '.')) {
            grown = realloc(out, len + n + 2);
            if (!grown)
                break;
            out = grown;
            out[len++] = '/';
            memcpy(out + len, p, n);
            len += n;
        }
        out[len] = '\0';
        p += n;
        p += strspn(p, "/");
    }
    if (!out || least == strlen(t->grant->path) || len == 0) {
        free(out);
        return NULL;
    }
    return out;
}

/* The hint uses the text only: following a link would reveal which files exist outside. */
static csn_status fail_outside(const csn_target *t, const char *shown, csn_error **err)
{
    csn_autofree char *where = text_outside(t);
    csn_autofree char *hint = where ? csn_rules_hint(t->op, where) : NULL;
    const char *advice = hint ? hint : "a symbolic link on the path leads outside";
    csn_denial d = {
        .op = op_word(t->op), .target = t->asked, .rule = "outside", .hint = advice};

    csn_status st = csn_fail(err, CSN_OUTSIDE, "%s: path outside base directory", shown);
    return csn_error_deny(csn_error_advise(st, err, "%s", advice), err, &d);
}

/* With NOFOLLOW, ELOOP means that the path has a link. */
static csn_status fail_nofollow(const csn_target *t, const char *shown, csn_error **err)
{
    csn_denial d = {.op = op_word(t->op),
                    .target = t->asked,
                    .rule = "nofollow",
                    .source = "flags",
                    .hint = "leave out nofollow"};

    csn_status st = csn_fail(err, CSN_DENIED, "%s: symbolic links are not followed", shown);
    return csn_error_deny(st, err, &d);
}

/* The error for a grant that could not be opened when connecting. */
static csn_status fail_missing_grant(const csn_target *t, csn_error **err)
{
    csn_autofree char *shown = csn_path_printable(t->grant->path);
    csn_status st = csn_fail(err, CSN_NOT_FOUND, "%s %s: the directory was removed or replaced",
                             t->grant == &t->rt->base ? "workspace" : "granted directory",
                             shown ? shown : "");

    return csn_error_advise(st, err, "make it again, or destroy the sandbox");
}

static csn_status fail_not_found(const csn_target *t, const char *shown, csn_error **err)
{
    csn_autofree char *base =
        csn_runtime_is_removed(t->rt->base.fd) ? csn_path_printable(t->rt->base.path) : NULL;

    if (!base)
        return csn_fail(err, CSN_NOT_FOUND, "File %s not found", shown);
    return csn_fail(err, CSN_NOT_FOUND, "File %s not found: the workspace %s was removed",
                    shown, base);
}

/* All operations report the same error for the same errno. */
csn_status csn_target_fail(const csn_target *t, int errnum, csn_error **err)
{
    csn_autofree char *printable = csn_path_printable(t->asked);
    const char *shown = printable ? printable : "path";

    if (t->grant->fd < 0)
        return fail_missing_grant(t, err);
    switch (errnum) {
    case EXDEV:
        return fail_outside(t, shown, err);
    case ELOOP:
        if (t->how & CSN_BENEATH_NOFOLLOW)
            return fail_nofollow(t, shown, err);
        return csn_fail(err, CSN_INVALID, "%s: too many levels of symbolic links", shown);
    case ENOENT:
        return fail_not_found(t, shown, err);
    case EISDIR:
        return csn_fail(err, CSN_WRONG_TYPE, "%s is a directory", shown);
    case ENOTDIR:
        return csn_fail(err, CSN_WRONG_TYPE, "%s is not a directory", shown);
    case ENXIO:
    case ENODEV:
    case EMEDIUMTYPE:
        return csn_fail(err, CSN_WRONG_TYPE, "%s is not a regular file", shown);
    case EBUSY:
    case EAGAIN:
        return csn_fail(err, CSN_CONFLICT, "%s is being changed by another process", shown);
    default:
        return csn_fail_errno(err, errnum, "%s %s", op_word(t->op), shown);
    }
}

/* Checks the rules for a resolved path; NULL: the kernel reported none. */
static csn_status check_resolved(const csn_target *t, const char *resolved, csn_error **err)
{
    if (!resolved)
        return csn_fail(err, CSN_UNAVAILABLE,
                        "the kernel does not report where the path leads");
    return csn_runtime_check_rules(t->rt, t->op | t->tree, t->asked, resolved, err);
}

/* The error after EACCES: if a rule also denies the access, names the rule; for a device on a
 * nodev mount, reports that it is not a regular file. */
static csn_status refused(const csn_target *t, csn_error **err)
{
    csn_autofd int fd = csn_beneath_open(t->grant->fd, t->rest, O_PATH, t->how);
    csn_autofree char *resolved = fd >= 0 ? csn_target_path(t, fd, "") : NULL;
    const char *name = resolved ? resolved : t->asked;
    struct stat st;

    if (csn_target_checked(t) && name[0] == '/') {
        csn_status denied =
            csn_runtime_check_rules(t->rt, t->op | t->tree, t->asked, name, err);
        if (denied < 0)
            return denied;
    }
    bool device =
        fd >= 0 && fstat(fd, &st) == 0 && (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode));
    return csn_target_fail(t, device ? EMEDIUMTYPE : EACCES, err);
}

/* Opens the target. *ret_path: its path if that is known without /proc, else NULL. */
static int open_found(const csn_target *t, int flags, char **ret_path)
{
    int fd = -ELOOP;

    *ret_path = NULL;
    if (csn_target_checked(t) && is_plain(t)) {
        fd = csn_beneath_open(t->grant->fd, t->rest, flags, t->how | CSN_BENEATH_NOFOLLOW);
        if (fd >= 0)
            *ret_path = plain_path(t);
    }
    return fd == -ELOOP ? csn_beneath_open(t->grant->fd, t->rest, flags, t->how) : fd;
}

csn_status csn_target_open_path(const csn_target *t, int flags, int *ret_fd, char **ret_path,
                                csn_error **err)
{
    csn_autofree char *path = NULL;
    csn_autofd int fd = open_found(t, flags, &path);
    csn_status st = CSN_OK;

    if (fd == -EACCES)
        return refused(t, err);
    if (fd < 0)
        return csn_target_fail(t, -fd, err);
    if (csn_target_checked(t)) {
        if (!path)
            path = csn_target_path(t, fd, "");
        st = check_resolved(t, path, err);
    }
    if (st < 0)
        return st;
    *ret_fd = csn_steal_fd(&fd);
    if (ret_path)
        *ret_path = CSN_STEAL(path);
    return CSN_OK;
}

csn_status csn_target_open(const csn_target *t, int flags, int *ret_fd, csn_error **err)
{
    return csn_target_open_path(t, flags, ret_fd, NULL, err);
}

/* Checks the rules before any missing directory is created. */
csn_status csn_target_parent(const csn_target *t, unsigned how, csn_parent *ret,
                             csn_error **err)
{
    csn_autoparent p = CSN_PARENT_NONE;
    csn_autofree char *more = NULL;

    int rc = csn_parent_find(t->grant->fd, t->rest, t->how | how, &p);
    if (rc == -EINVAL) {
        csn_autofree char *shown = csn_path_printable(t->asked);
        return csn_fail(err, CSN_INVALID, "%s names no entry of a directory",
                        shown ? shown : "");
    }
    if (rc == -EACCES)
        return refused(t, err);
    if (rc < 0)
        return csn_target_fail(t, -rc, err);
    if (csn_target_checked(t)) {
        csn_autofree char *missing = csn_parent_missing(&p);
        if (!missing || asprintf(&more, "%s%s%s", missing, *missing ? "/" : "", p.name) < 0)
            return csn_fail(err, CSN_NOMEM, "out of memory");
        csn_autofree char *resolved = csn_target_path(t, p.fd, more);
        csn_status st = check_resolved(t, resolved, err);
        if (st < 0)
            return st;
    }
    *ret = p;
    p = CSN_PARENT_NONE;
    return CSN_OK;
}
