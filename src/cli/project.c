/* project.c: finds, reads and resolves a project's caisson.json.
 *
 * The author of the repository writes the file, and other users of the machine can put one into
 * a directory that they share with the caller. Invariants: the file is opened without following
 * a link and without blocking, it belongs to the caller or to root, and the bytes that are
 * hashed are the bytes that are parsed. Its rules hold wherever in the project a sandbox is
 * opened: relative paths are those of the file's directory. */
#include "cli/project.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/strv.h"
#include "cli/cli.h"
#include "cli/trust.h"

#define IGNORE_HINT "--no-project ignores the file"

/* ---- finding ------------------------------------------------------------------------- */

typedef struct climb {
    int dir;     /* O_PATH */
    unsigned up; /* levels above the start */
    struct statx at, home;
} climb;

static bool look_at(int dir, const char *path, struct statx *ret)
{
    const unsigned wanted = STATX_INO | STATX_UID | STATX_MNT_ID;

    return statx(dir, path, path[0] ? 0 : AT_EMPTY_PATH, wanted, ret) == 0;
}

static bool same_device(const struct statx *a, const struct statx *b)
{
    return a->stx_dev_major == b->stx_dev_major && a->stx_dev_minor == b->stx_dev_minor;
}

static bool same_file(const struct statx *a, const struct statx *b)
{
    return same_device(a, b) && a->stx_ino == b->stx_ino;
}

/* Where the kernel does not tell the mount, both are 0. */
static bool same_mount(const struct statx *a, const struct statx *b)
{
    uint64_t one = a->stx_mask & STATX_MNT_ID ? a->stx_mnt_id : 0;
    uint64_t other = b->stx_mask & STATX_MNT_ID ? b->stx_mnt_id : 0;

    return one == other;
}

static bool is_home(const climb *c, const struct statx *x)
{
    return c->home.stx_mask != 0 && same_file(x, &c->home);
}

/* Goes to the parent directory. Returns false where the search ends. */
static bool go_up(climb *c)
{
    struct statx x;

    if (is_home(c, &c->at))
        return false;
    csn_autofd int up = openat(c->dir, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (up < 0 || !look_at(up, "", &x) || same_file(&x, &c->at))
        return false;
    if (!same_device(&x, &c->at) || x.stx_uid != geteuid() || is_home(c, &x) ||
        !same_mount(&x, &c->at))
        return false;
    close(c->dir);
    c->dir = csn_steal_fd(&up);
    c->at = x;
    c->up++;
    return true;
}

/* Opens the first caisson.json. Returns its descriptor, or -1 with errno: ENOENT: none. On
 * return *c is where it was found; close c->dir. */
static int climb_to_file(const char *start, climb *c)
{
    const char *home = getenv("HOME");

    *c = (climb){.dir = open(start, O_PATH | O_DIRECTORY | O_CLOEXEC)};
    if (c->dir < 0 || !look_at(c->dir, "", &c->at)) {
        errno = ENOENT; /* the library reports a workspace that does not exist */
        return -1;
    }
    if (!home || home[0] != '/' || !look_at(AT_FDCWD, home, &c->home))
        c->home.stx_mask = 0;
    do {
        int fd = openat(c->dir, CSN_PROJECT_FILE,
                        O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        if (fd >= 0 || errno != ENOENT)
            return fd;
    } while (go_up(c));
    errno = ENOENT;
    return -1;
}

/* Where csn_project_exists found no file: this process does not search there again. */
static char *searched;

bool csn_project_exists(const char *start)
{
    climb c;
    csn_autofd int fd = climb_to_file(start, &c);
    int e = fd < 0 ? errno : 0;

    if (c.dir >= 0)
        close(c.dir);
    if (e == ENOENT && !searched)
        searched = strdup(start);
    return e != ENOENT;
}

/* ---- reading ------------------------------------------------------------------------- */

/* Stores the paths: those of `start` without its last c->up components. */
static csn_status set_paths(csn_project *p, const char *start, const climb *c, csn_error **err)
{
    p->dir = realpath(start, NULL);
    if (!p->dir)
        return csn_fail_errno(err, errno, "cannot resolve '%s'", start);
    for (unsigned i = 0; i < c->up; i++)
        *strrchr(p->dir, '/') = '\0';
    if (asprintf(&p->path, "%s/" CSN_PROJECT_FILE, p->dir) < 0) {
        p->path = NULL;
        return csn_fail(err, CSN_NOMEM, "out of memory");
    }
    if (!p->dir[0])
        memcpy(p->dir, "/", 2); /* it had at least these two bytes */
    return CSN_OK;
}

static csn_status check_file(const char *path, int fd, int open_error, csn_error **err)
{
    struct stat st;

    if (fd < 0 && open_error == ELOOP)
        return csn_fail(err, CSN_INVALID, "'%s' is a symlink", path);
    if (fd < 0 && open_error != ENXIO)
        return csn_fail_errno(err, open_error, "cannot open '%s'", path);
    if (fd >= 0 && fstat(fd, &st) < 0)
        return csn_fail_errno(err, errno, "cannot read '%s'", path);
    if (fd < 0 || !S_ISREG(st.st_mode))
        return csn_fail(err, CSN_INVALID, "'%s' is not a regular file", path);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return csn_fail(err, CSN_INVALID, "'%s' belongs to user %u, and we are user %u", path,
                        (unsigned)st.st_uid, (unsigned)geteuid());
    if (st.st_mode & S_IWOTH)
        return csn_fail(err, CSN_INVALID, "other users can write to '%s'", path);
    if (st.st_size > (off_t)CSN_CONFIG_FILE_MAX)
        return csn_fail(err, CSN_TOO_LARGE, "'%s' has more than %u bytes", path,
                        CSN_CONFIG_FILE_MAX);
    return CSN_OK;
}

static csn_status read_file(csn_project *p, int fd, csn_error **err)
{
    csn_autobuf buf;
    char chunk[16384];
    ssize_t n;

    csn_buf_init(&buf, CSN_CONFIG_FILE_MAX);
    while ((n = read(fd, chunk, sizeof(chunk))) > 0)
        if (csn_buf_append(&buf, chunk, (size_t)n) != 0)
            return csn_fail(err, CSN_TOO_LARGE, "'%s' has more than %u bytes", p->path,
                            CSN_CONFIG_FILE_MAX);
    if (n < 0)
        return csn_fail_errno(err, errno, "cannot read '%s'", p->path);
    p->len = buf.len;
    csn_hash_bytes(buf.data ? buf.data : "", buf.len, p->hash);
    p->text = csn_buf_take(&buf);
    return p->text ? CSN_OK : csn_fail(err, CSN_NOMEM, "out of memory");
}

csn_status csn_project_find(const char *start, csn_project *ret, csn_error **err)
{
    csn_project p = {0};
    climb c = {.dir = -1};
    bool known = searched && strcmp(searched, start) == 0;
    csn_autofd int fd = known ? -1 : climb_to_file(start, &c);
    int e = known ? ENOENT : fd < 0 ? errno : 0;
    csn_status st = CSN_OK;

    if (e != ENOENT) {
        st = set_paths(&p, start, &c, err);
        if (st == CSN_OK)
            st = check_file(p.path, fd, e, err);
        if (st == CSN_OK)
            st = read_file(&p, fd, err);
        if (st < 0)
            csn_error_advise(st, err, IGNORE_HINT);
    }
    if (c.dir >= 0)
        close(c.dir);
    if (st < 0)
        csn_project_release(&p);
    else
        *ret = p;
    return st;
}

void csn_project_release(csn_project *p)
{
    free(p->path);
    free(p->dir);
    free(p->text);
    *p = (csn_project){0};
}

csn_status csn_project_parse(const csn_project *p, csn_profile *profile, csn_arena *a,
                             csn_config *ret, csn_error **err)
{
    *ret = (csn_config){.size = sizeof(*ret)};
    csn_status st = csn_config_text_overlay(a, ret, p->text, p->len, p->path, profile, err);
    return st < 0 ? csn_error_advise(st, err, IGNORE_HINT) : CSN_OK;
}

/* ---- trust --------------------------------------------------------------------------- */

csn_status csn_project_check(const csn_project *p, const csn_config *c,
                             const csn_narrow_base *base, bool *ret_trusted, csn_error **err)
{
    const char *names[CSN_OPTION_COUNT + 1];
    size_t count = csn_config_widening(c, base, names);
    csn_trust trust = CSN_TRUST_NONE;
    char list[512] = "";

    csn_status st = count > 0 ? csn_trust_check(p->path, p->hash, &trust, err) : CSN_OK;
    if (st < 0)
        return st;
    *ret_trusted = trust == CSN_TRUST_GIVEN;
    if (count == 0 || *ret_trusted)
        return CSN_OK;
    for (size_t i = 0, n = 0; i < count && n < sizeof(list); i++)
        n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", i ? ", " : "", names[i]);
    st = csn_fail(
        err, CSN_INVALID, "%s %s: %s", p->path,
        trust == CSN_TRUST_CHANGED
            ? "has changed since you trusted it and grants more than your configuration"
            : "grants more than your configuration, and you have not trusted it",
        list);
    return csn_error_advise(st, err, "caisson trust %s shows and accepts it; " IGNORE_HINT,
                            p->dir);
}

/* ---- paths --------------------------------------------------------------------------- */

static bool exists(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0;
}

char *csn_workspace_host(const char *workspace)
{
    const char *home = getenv("HOME");
    bool tilde = workspace[0] == '~' && (workspace[1] == '/' || !workspace[1]);
    char *host = NULL;

    if (asprintf(&host, "%s%s", tilde && home ? home : "", workspace + (tilde && home)) < 0)
        return NULL;
    csn_workspace_split(host, exists, NULL, NULL);
    return host;
}

static bool is_relative(const char *path)
{
    return path[0] != '/' && !(path[0] == '~' && (path[1] == '/' || !path[1]));
}

/* `.` and a leading `./` are left out, so that ".:ro" becomes "/project:ro". */
static const char *below_project(const csn_project *p, const char *path, csn_arena *a)
{
    if (!is_relative(path))
        return path;
    if (path[0] == '.' && path[1] == '/')
        path += 2;
    else if (path[0] == '.' && (!path[1] || path[1] == ':'))
        return csn_arena_printf(a, "%s%s", p->dir, path + 1);
    return csn_arena_printf(a, "%s/%s", p->dir, path);
}

/* A relative path of a denial, for a workspace that is another directory than the project. What
 * is below the workspace stays relative, because the workspace may have another path inside. */
static const char *rebase(const csn_project *p, const char *path, const char *workspace,
                          csn_arena *a)
{
    if (!is_relative(path) || csn_str_starts(path, "**/") || strcmp(workspace, p->dir) == 0)
        return path;
    const char *whole = below_project(p, path, a);
    const char *below = whole ? csn_path_below(whole, workspace) : NULL;
    return below && below[0] ? below : whole;
}

static bool resolve_list(const csn_project *p, const char *const **list, const char *workspace,
                         csn_arena *a)
{
    if (!*list)
        return true;
    const char **v = (const char **)csn_arena_strv(a, *list);
    for (size_t i = 0; v && v[i]; i++)
        if (!(v[i] = workspace ? rebase(p, v[i], workspace, a) : below_project(p, v[i], a)))
            return false;
    *list = v;
    return v != NULL;
}

/* A rule for commands and paths is split: only its path part is rebased. */
static bool resolve_rules(const csn_project *p, csn_config *c, const char *workspace,
                          csn_arena *a)
{
    csn_rule *rules = csn_arena_array(a, 2 * c->rule_count + 1, sizeof(*rules));
    size_t n = 0;

    for (size_t i = 0; rules && i < c->rule_count; i++) {
        csn_rule path = c->rules[i], exec = path;
        exec.ops &= CSN_OP_EXEC;
        path.ops &= ~CSN_OP_EXEC;
        if (exec.ops)
            rules[n++] = exec;
        if (path.ops && !(path.path = rebase(p, path.path, workspace, a)))
            return false;
        if (path.ops)
            rules[n++] = path;
    }
    c->rules = n > 0 ? rules : NULL;
    c->rule_count = n;
    return rules != NULL;
}

csn_status csn_project_resolve(const csn_project *p, csn_config *c, const char *workspace,
                               csn_arena *a, csn_error **err)
{
    bool ok =
        resolve_list(p, &c->read, NULL, a) && resolve_list(p, &c->write, NULL, a) &&
        resolve_list(p, &c->workspaces, NULL, a) && resolve_list(p, &c->deny, workspace, a) &&
        resolve_list(p, &c->deny_missing_ok, workspace, a) && resolve_rules(p, c, workspace, a);

    if (ok && c->workspace)
        ok = (c->workspace = below_project(p, c->workspace, a)) != NULL;
    if (ok && c->home)
        ok = (c->home = below_project(p, c->home, a)) != NULL;
    if (ok && c->audit && strcmp(c->audit, "none") != 0)
        ok = (c->audit = below_project(p, c->audit, a)) != NULL;
    return ok ? CSN_OK : csn_fail(err, CSN_NOMEM, "out of memory");
}
