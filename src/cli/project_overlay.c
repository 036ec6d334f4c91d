/* project_overlay.c: merges a project's caisson.json into the configuration of a sandbox.
 *
 * The file comes after the user's config.json and before --policy and the options. Invariant: a
 * file that the user has not trusted changes the result only to what narrows it, compared with
 * what these three would give without it; else the sandbox is not opened. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "cli/project.h"

/* As the library chooses it (core/config.c). */
static const char *default_backend(void)
{
    const char *chosen = getenv("CAISSON_BACKEND"), *vercel = getenv("VERCEL");

    if (chosen && chosen[0])
        return chosen;
    return vercel && strcmp(vercel, "1") == 0 ? "vercel" : "jail";
}

/* The workspace that the sandbox would have: an absolute path without links, malloc'd. */
static char *real_workspace(const char *text)
{
    csn_autofree char *host = text ? csn_workspace_host(text) : NULL;

    return realpath(host ? host : ".", NULL);
}

/* Commands that are allowed without the file; NULL: all of them. */
static csn_status user_commands(csn_arena *a, const csn_config *all, const csn_config *policy,
                                const csn_config *given, const char *const **ret,
                                csn_error **err)
{
    const csn_config *sources[] = {all, policy, given};
    csn_config sum = {.size = sizeof(sum)};
    csn_status st = CSN_OK;

    for (size_t i = 0; i < 3 && st == CSN_OK; i++) {
        csn_config only = {.size = sizeof(only), .commands = sources[i]->commands};
        st = csn_config_overlay(a, &sum, &only, err);
    }
    *ret = sum.commands;
    return st;
}

/* A file that selects the workspace selects one around the working directory, as a rule:
 * commands start in the latter all the same. */
static csn_status keep_workdir(csn_arena *a, const char *workspace, csn_config *c,
                               csn_error **err)
{
    char cwd[PATH_MAX];

    if (c->workdir || !getcwd(cwd, sizeof(cwd)) || !csn_path_below(cwd, workspace))
        return CSN_OK;
    c->workdir = csn_arena_strdup(a, cwd);
    return c->workdir ? CSN_OK : csn_fail(err, CSN_NOMEM, "out of memory");
}

typedef struct merge {
    csn_arena *arena;
    csn_config *all;
    const csn_config *policy, *given;
    const char *workspace; /* of the user's files and options, or NULL */
    char *real;            /* its directory */
    uint64_t timeout_ms;   /* of a command on this machine, by default; or 0 */
} merge;

static csn_status apply(merge *m, const csn_project *p, csn_profile *profile,
                        const char *const **ret_commands, csn_error **err)
{
    csn_config c, base = *m->all;
    csn_narrow_base narrow = {.config = &base, .own_workspace = strcmp(m->real, p->dir) == 0};
    bool trusted = false;

    base.backend = m->given->backend    ? m->given->backend
                   : m->policy->backend ? m->policy->backend
                   : m->all->backend    ? m->all->backend
                                        : default_backend();
    bool here = strcmp(base.backend, "jail") == 0 || strcmp(base.backend, "local") == 0;
    if (!base.timeout_ms && here)
        base.timeout_ms = m->timeout_ms;
    csn_status st = csn_project_parse(p, profile, m->arena, &c, err);
    if (st == CSN_OK)
        st = user_commands(m->arena, m->all, m->policy, m->given, &narrow.commands, err);
    if (st == CSN_OK)
        st = csn_project_check(p, &c, &narrow, &trusted, err);
    if (st < 0)
        return st;
    bool chosen = c.workspace && !m->workspace;
    bool relative = chosen && !strchr("/~", c.workspace[0]);
    const char *text = relative ? csn_arena_printf(m->arena, "%s/%s", p->dir, c.workspace)
                       : chosen ? c.workspace
                                : NULL;
    csn_autofree char *real = text ? real_workspace(text) : NULL;
    st = csn_project_resolve(p, &c, real ? real : m->real, m->arena, err);
    if (st == CSN_OK && real && !m->policy->workdir && !m->given->workdir)
        st = keep_workdir(m->arena, real, &c, err);
    if (st == CSN_OK && !trusted)
        *ret_commands = c.commands;
    return st < 0 ? st : csn_config_overlay(m->arena, m->all, &c, err);
}

csn_status csn_project_overlay(csn_arena *a, csn_config *all, const csn_config *policy,
                               const csn_config *given, uint64_t timeout_ms,
                               csn_profile *profile, const char *const **ret_commands,
                               csn_error **err)
{
    merge m = {
        .arena = a, .all = all, .policy = policy, .given = given, .timeout_ms = timeout_ms};
    csn_project p = {0};

    m.workspace = given->workspace    ? given->workspace
                  : policy->workspace ? policy->workspace
                                      : all->workspace;
    csn_autofree char *host = m.workspace ? csn_workspace_host(m.workspace) : NULL;
    csn_status st = csn_project_find(host ? host : ".", &p, err);
    if (st < 0 || !p.path)
        return st;
    m.real = real_workspace(m.workspace);
    if (!m.real)
        st = csn_fail_errno(err, errno, "workspace");
    if (st == CSN_OK)
        st = apply(&m, &p, profile, ret_commands, err);
    free(m.real);
    csn_project_release(&p);
    return st;
}
