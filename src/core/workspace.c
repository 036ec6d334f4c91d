/* workspace.c: the mode of a workspace; makes a missing one (CSN_OPEN_CREATE) and empties one
 * (csn_cleanup).
 *
 * Invariant: after csn_workspace_create the flag CSN_OPEN_CREATE of a config means that this
 * sandbox made its workspace. The record of a detached sandbox keeps it, so that a later
 * csn_cleanup knows whether the user's own files could be in there. */
#include "core/workspace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/strv.h"
#include "core/internal.h"

static bool exists(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0;
}

/* HOST:cow,tmpfs would be layers in memory. It must not be taken for the name of a directory,
 * which --create-workspace makes. */
static csn_status check_layers(const char *text, csn_error **err)
{
    const char *mode = text ? strstr(text, ":cow,") : NULL;

    if (!mode || strchr(mode, '/') || exists(text))
        return CSN_OK;
    csn_status st = csn_fail(err, CSN_UNSUPPORTED, "workspace %s: '%s' is not supported", text,
                             mode + strlen(":cow,"));
    return csn_error_advise(
        st, err,
        "%.*s keeps the layers in the state directory, which XDG_STATE_HOME "
        "can put on a tmpfs",
        (int)(mode - text + (ptrdiff_t)strlen(":cow")), text);
}

csn_status csn_workspace_mode(csn_config *c, csn_error **err)
{
    csn_autofree char *host = c->workspace ? strdup(c->workspace) : NULL;
    const char *mode = NULL;
    const char *needs = c->flags & CSN_OPEN_UNDO     ? "undo"
                        : c->flags & CSN_OPEN_RECORD ? "record_changes"
                                                     : NULL;

    if (c->workspace && !host)
        return csn_fail(err, CSN_NOMEM, "workspace");
    csn_status st = check_layers(c->workspace, err);
    for (size_t i = 0; st == CSN_OK && c->workspaces && c->workspaces[i]; i++)
        st = check_layers(c->workspaces[i], err);
    if (st < 0)
        return st;
    if (host)
        csn_workspace_split(host, exists, NULL, &mode);
    if (mode && csn_str_starts(mode, "cow"))
        c->flags |= CSN_OPEN_COW;
    if (!needs || (c->flags & CSN_OPEN_COW))
        return CSN_OK;
    st = csn_fail(err, CSN_INVALID, "%s: the workspace is not copy-on-write", needs);
    return csn_error_advise(st, err, "add --cow, or give the workspace as DIR:cow");
}

/* The host directory of HOST[:INSIDE][:rw|ro|cow], which is malloc'd; NULL: out of memory. */
static char *host_of(const char *text)
{
    char *host = strdup(text);

    if (host)
        csn_workspace_split(host, exists, NULL, NULL);
    return host;
}

/* As `mkdir -p -m 700`. 1: made, 0: it exists, or -errno. */
static int make_dirs(char *path)
{
    struct stat st;

    if (stat(path, &st) == 0)
        return 0;
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int rc = mkdir(path, 0777) < 0 && errno != EEXIST ? -errno : 0;
        *slash = '/';
        if (rc < 0)
            return rc;
    }
    return mkdir(path, 0700) == 0 ? 1 : -errno;
}

static csn_status make_one(const char *text, bool *ret_made, csn_error **err)
{
    csn_autofree char *host = host_of(text);

    if (!host)
        return csn_fail(err, CSN_NOMEM, "workspace");
    size_t len = strlen(host);
    while (len > 1 && host[len - 1] == '/')
        host[--len] = '\0';
    int rc = make_dirs(host);
    *ret_made = rc == 1;
    return rc < 0 ? csn_fail_errno(err, -rc, "create the workspace '%s'", host) : CSN_OK;
}

csn_status csn_workspace_create(csn_config *c, csn_error **err)
{
    bool made = false, other = false;

    if (!(c->flags & CSN_OPEN_CREATE))
        return CSN_OK;
    if (!c->workspace)
        return csn_fail(err, CSN_INVALID, "create_workspace: no workspace is named");
    csn_status st = make_one(c->workspace, &made, err);
    for (size_t i = 0; st == CSN_OK && c->workspaces && c->workspaces[i]; i++)
        st = make_one(c->workspaces[i], &other, err);
    if (!made)
        c->flags &= ~CSN_OPEN_CREATE;
    return st;
}

void csn_workspace_undo(const csn_config *c)
{
    csn_autofree char *host =
        (c->flags & CSN_OPEN_CREATE) && c->workspace ? host_of(c->workspace) : NULL;

    if (host)
        (void)rmdir(host);
}

csn_status csn_workspace_advise(csn_status st, const csn_config *c, csn_error **err)
{
    csn_autofree char *host =
        st == CSN_NOT_FOUND && c->workspace ? host_of(c->workspace) : NULL;
    struct stat found;

    if (!host || stat(host, &found) == 0)
        return st;
    return csn_error_advise(st, err, "--create-workspace makes it");
}

static csn_status check_cleanup(const csn_sandbox *sb, uint32_t flags, csn_error **err)
{
    const csn_config *c = sb->config;

    if (flags & ~CSN_CLEANUP_FORCE)
        return csn_flags_check(flags, CSN_CLEANUP_FORCE, "cleanup", err);
    /* A backend without a workspace of the host has made its own. */
    if (!c->workspace || (c->flags & CSN_OPEN_CREATE) || (flags & CSN_CLEANUP_FORCE))
        return CSN_OK;
    csn_status st =
        csn_fail(err, CSN_DENIED, "'%s' existed before the sandbox, which did not make it",
                 c->workspace);
    return csn_error_advise(st, err, "--force removes everything in it");
}

csn_status csn_cleanup_with(csn_sandbox *sb, uint32_t flags, csn_error **err)
{
    csn_call c;
    csn_status st = csn_call_begin(&c, sb, "cleanup", NULL, err);

    if (st < 0)
        return st;
    st = check_cleanup(sb, flags, err);
    if (st == CSN_OK && csn_fs_files(&c.fs)->cleanup) {
        st = sb->ops->files->cleanup(sb->state, err);
    } else if (st == CSN_OK) {
        csn_autofree char *workdir = csn_sandbox_workdir(sb);
        st = csn_derive_cleanup(&c.fs, workdir ? workdir : ".", err);
    }
    return csn_call_end(&c, st, err);
}

csn_status csn_cleanup(csn_sandbox *sb, csn_error **err)
{
    return csn_cleanup_with(sb, 0, err);
}
