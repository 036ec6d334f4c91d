/* agent.c: turns the name of an agent into grants, and makes the home that the agent keeps.
 *
 * Invariants: a preset only adds rows of its table, which the caller's own options can narrow:
 * denials win over grants, a home that the caller names replaces the agent's, and a variable
 * that the caller sets comes later in the list. The home lies in caisson's data directory,
 * which belongs to the user and which no sandbox can redirect (os/checked_dir.h). Its content
 * is written by the agent: nothing here reads it. */
#include "core/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/agent_presets.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/options.h"
#include "base/path.h"
#include "base/strv.h"
#include "os/statedir.h"

csn_status csn_agent_check(const char *name, csn_error **err)
{
    char meant[CSN_NEAREST_MAX];

    if (!name || csn_agent_known(name))
        return CSN_OK;
    csn_autofree char *shown = csn_path_printable(name);
    csn_status st = csn_fail(err, CSN_INVALID, "agent: there is no preset %s; presets: %s",
                             shown ? shown : "", CSN_AGENT_NAMES);
    if (csn_nearest_in(name, CSN_AGENT_NAMES, meant))
        return csn_error_advise(st, err, "did you mean %s?", meant);
    return csn_error_advise(st, err,
                            "any program runs without a preset: --home keeps its settings, "
                            "--allow and --env grant the rest");
}

static const csn_option *option_of(const csn_agent_row *r)
{
    for (const csn_option *o = csn_options; o->name; o++)
        if (strcmp(o->name, r->option) == 0)
            return o;
    return NULL;
}

static bool exists(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0;
}

typedef struct user {
    uid_t uid;
    gid_t gid;
} user;

/* Commands of a root caller are the owner and the group of the workspace, and can use files of
 * no other (backend/jail/plan.c). */
static user user_inside(const csn_config *c)
{
    csn_autofree char *host = strdup(c->workspace ? c->workspace : ".");
    const user own = {geteuid(), getegid()};
    struct stat st;

    if (own.uid != 0 || !host)
        return own;
    csn_workspace_split(host, exists, NULL, NULL);
    return stat(host, &st) == 0 ? (user){st.st_uid, st.st_gid} : (user){0, 0};
}

/* Below the data directory. For a root caller each user inside has a home of its own. */
static const char *home_of(csn_arena *a, const char *value, user u)
{
    if (geteuid() != 0 || (u.uid == 0 && u.gid == 0))
        return value;
    return csn_arena_printf(a, "%s-%u-%u", value, (unsigned)u.uid, (unsigned)u.gid);
}

static csn_status set_home(csn_arena *a, csn_config *c, const char *value, csn_error **err)
{
    const char *below = home_of(a, value, user_inside(c));
    csn_autofree char *path = below ? csn_statedir_path(CSN_DIR_DATA, below) : NULL;
    int e = errno;

    if (!path && below)
        return csn_statedir_fail(err, e, CSN_DIR_DATA, below);
    c->home = path ? csn_arena_strdup(a, path) : NULL;
    return c->home ? CSN_OK : csn_fail(err, CSN_NOMEM, "agent");
}

/* At the start: errors name an item of the command line by its distance from the end, and of
 * two values of a variable the last one holds. */
static bool prepend(csn_arena *a, const char *const **list, const char *value)
{
    size_t len = csn_strv_len(*list);
    const char **all = csn_arena_array(a, len + 2, sizeof(*all));

    if (!all)
        return false;
    all[0] = value;
    if (len > 0)
        memcpy(all + 1, *list, len * sizeof(*all));
    *list = all;
    return true;
}

static csn_status add_row(csn_arena *a, csn_config *c, const csn_agent_row *r, csn_error **err)
{
    const csn_option *o = option_of(r);

    if (!o) /* the login, which the home already has */
        return CSN_OK;
    if (o->type == CSN_TYPE_LIST || o->type == CSN_TYPE_ENV)
        return prepend(a, csn_option_list(o, c), r->value) ? CSN_OK
                                                           : csn_fail(err, CSN_NOMEM, "agent");
    return c->home ? CSN_OK : set_home(a, c, r->value, err);
}

csn_status csn_agent_expand(csn_arena *a, csn_config *c, csn_error **err)
{
    csn_status st = CSN_OK;

    for (const csn_agent_row *r = csn_agent_rows; st == CSN_OK && c->agent && r->agent; r++)
        if (strcmp(r->agent, c->agent) == 0)
            st = add_row(a, c, r, err);
    return st;
}

/* Makes agents/NAME for the user inside. It may exist, with anything in it; a link or the
 * directory of another user is refused. */
static csn_status make_dir(const csn_config *c, csn_error **err)
{
    csn_autofd int parent = csn_statedir_open(CSN_DIR_DATA, "agents", NULL);
    const char *name = csn_path_base(c->home);
    user u = user_inside(c);
    struct stat st;

    if (parent < 0)
        return csn_statedir_fail(err, -parent, CSN_DIR_DATA, "agents");
    bool made = mkdirat(parent, name, 0700) == 0;
    if (!made && errno != EEXIST)
        return csn_fail_errno(err, errno, "home of the agent: %s", c->home);
    csn_autofd int fd = openat(parent, name, O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 ||
        (made && geteuid() == 0 && fchown(fd, u.uid, u.gid) < 0))
        return csn_fail_errno(err, errno, "home of the agent: %s", c->home);
    if (made || st.st_uid == u.uid)
        return CSN_OK;
    csn_status bad = csn_fail(err, CSN_UNAVAILABLE, "home of the agent: %s belongs to user %u",
                              c->home, (unsigned)st.st_uid);
    return csn_error_advise(bad, err, "chown it to user %u, or name another: --home DIR",
                            (unsigned)u.uid);
}

csn_status csn_agent_make_home(const csn_config *c, csn_error **err)
{
    csn_autofree char *agents = c->agent ? csn_statedir_path(CSN_DIR_DATA, "agents") : NULL;
    const char *rest = agents ? csn_path_below(c->home, agents) : NULL;

    return rest && *rest && !strchr(rest, '/') ? make_dir(c, err) : CSN_OK;
}
