/* jail_environ.c: adapts the environment of commands to the inside of a jail.
 *
 * Runs once, after the common allow-list (runtime/environ.c). User and shell differ from the
 * caller's, and most of a developer's PATH is in a home that does not exist inside: such
 * entries would reveal that home and slow down every lookup. Invariants: variables that the
 * configuration names stay as they are; the search path is never empty. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/strv.h"

#define FALLBACK_PATH "/usr/local/bin:/usr/bin:/bin"

const char *csn_jail_shell(void)
{
    return access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh";
}

static bool is_named(const char *const *v, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; v && v[i]; i++)
        if (strncmp(v[i], name, len) == 0 && (v[i][len] == '\0' || v[i][len] == '='))
            return true;
    return false;
}

static char **find(char **v, const char *name)
{
    size_t len = strlen(name);

    for (; v && *v; v++)
        if (strncmp(*v, name, len) == 0 && (*v)[len] == '=')
            return v;
    return NULL;
}

static int set(csn_runtime *rt, const char *name, const char *value)
{
    csn_autofree char *text = NULL;

    if (is_named(rt->config->env, name))
        return 0;
    if (asprintf(&text, "%s=%s", name, value) < 0) {
        text = NULL;
        return ENOMEM;
    }
    char **old = find(rt->environ_base, name);
    if (!old)
        return csn_strv_push(&rt->environ_base, text);
    free(*old);
    *old = CSN_STEAL(text);
    return 0;
}

static bool is_below(const char *path, size_t len, const char *dir)
{
    size_t n = strlen(dir);

    return n <= len && memcmp(dir, path, n) == 0 && (n == len || path[n] == '/');
}

/* True if a mount of the host covers this path. Private directories (/tmp, the home) start
 * empty and do not count. */
static bool is_inside(const csn_jail *j, const char *path, size_t len)
{
    for (size_t i = 0; i < j->mount_count; i++) {
        const csn_mount *m = &j->mounts[i];
        if ((m->kind == CSN_MOUNT_BIND || m->kind == CSN_MOUNT_GIVEN) &&
            is_below(path, len, m->to))
            return true;
    }
    for (size_t i = 0; j->links && j->links[i]; i++)
        if (is_below(path, len, j->links[i]))
            return true;
    return false;
}

/* Drops entries that do not exist inside; relative entries stay. */
static char *search_path(const csn_jail *j, const char *old)
{
    char *out = csn_arena_alloc(j->arena, strlen(old) + 1), *to = out;

    if (!out)
        return NULL;
    for (const char *p = old;; p++) {
        size_t len = strcspn(p, ":");
        if (len > 0 && (*p != '/' || is_inside(j, p, len))) {
            if (to != out)
                *to++ = ':';
            memcpy(to, p, len);
            to += len;
        }
        p += len;
        if (*p == '\0')
            break;
    }
    *to = '\0';
    return out;
}

csn_status csn_jail_environ(csn_runtime *rt, csn_error **err)
{
    csn_jail *j = rt->jail;
    char **old = find(rt->environ_base, "PATH");

    j->host_path = csn_arena_strdup(j->arena, old ? *old + strlen("PATH=") : "");
    const char *path = j->host_path ? search_path(j, j->host_path) : NULL;

    /* landlock_only: the host's /tmp is not accessible, and git fails if /etc/gitconfig exists
     * but cannot be read. */
    if (j->tmp && (set(rt, "TMPDIR", j->tmp) != 0 || set(rt, "GIT_CONFIG_NOSYSTEM", "1") != 0))
        return csn_fail(err, CSN_NOMEM, "environment");
    if (!path || set(rt, "PATH", *path ? path : FALLBACK_PATH) != 0 ||
        set(rt, "USER", CSN_JAIL_USER) != 0 || set(rt, "LOGNAME", CSN_JAIL_USER) != 0 ||
        set(rt, "SHELL", csn_jail_shell()) != 0)
        return csn_fail(err, CSN_NOMEM, "environment");
    const char *const *more = csn_jail_net_variables(rt);
    for (size_t i = 0; more && more[i]; i += 2)
        if (set(rt, more[i], more[i + 1]) != 0)
            return csn_fail(err, CSN_NOMEM, "environment");
    return CSN_OK;
}
