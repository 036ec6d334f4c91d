/* path_probe.c: checks whether a path exists and is accessible inside a jail and on the host.
 *
 * The paths come from the output of a failed command, and commands may control the trees that
 * they lead through. Files are therefore opened only with O_PATH (no FIFO blocks, no device is
 * opened), except to read the first line of an executable inside; the kernel resolves paths
 * below a root and follows no magic links. Inside, checks run with the uid of commands;
 * outside, with the caller's.
 *
 * Invariants: a fact says `inside` or `host` only if the file was there, and nothing on the
 * host changes. */
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

/* In an id-mapped share a refusal is due to file permissions, which no further grant changes:
 * such paths count as accessible. Without id mapping, permissions are the same inside and
 * outside. */
static void probe_inside(csn_path_probe_ctx *p, const char *path, csn_explain_fact *ret)
{
    csn_autofd int fd = csn_beneath_open(p->inside_root, path, O_PATH, CSN_BENEATH_ROOTED);
    bool shared = is_shared(p->rt, path);
    struct stat st;
    struct statvfs fs;

    ret->inside = fd >= 0 || fd == -EACCES;
    ret->inside_readable = ret->inside && shared;
    if (fd < 0 || fstat(fd, &st) < 0 || fstatvfs(fd, &fs) < 0)
        return;
    if (p->inside_root == p->host_root) {
        probe_rules(p, fd, ret);
    } else {
        ret->inside_readable = shared || may(fd, S_ISDIR(st.st_mode) ? X_OK : R_OK);
        ret->inside_writable = !(fs.f_flag & ST_RDONLY) && (shared || may(fd, W_OK));
    }
    if (S_ISREG(st.st_mode) && (st.st_mode & 0111))
        find_interpreter(p, path);
    ret->needs = p->needs[0] ? p->needs : NULL;
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

void csn_path_probe(void *ctx, const char *path, csn_explain_fact *ret)
{
    csn_path_probe_ctx *p = ctx;
    csn_fsuid fsuid;

    if (csn_jail_fsuid_switch(p->rt, &fsuid, NULL) < 0)
        return;
    p->source[0] = p->rule[0] = p->needs[0] = '\0';
    probe_inside(p, path, ret);
    csn_fsuid_restore(&fsuid);
    probe_outside(p, path, ret);
    if (!ret->inside)
        return;
    find_source(p, path);
    uint32_t denied = p->rt->level == CSN_LEVEL_NAMESPACES ? find_denial(p, path) : 0;
    if (denied) {
        ret->rule = p->rule;
        ret->inside_readable = ret->inside_readable && denied != CSN_OP_READ;
        ret->inside_writable = false;
    } else if (!ret->inside_writable && find_read_and_write(p, path)) {
        ret->rule = p->rule;
    }
    ret->source = p->source[0] ? p->source : NULL;
}
