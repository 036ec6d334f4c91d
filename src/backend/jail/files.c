/* files.c: the file operations of a jail.
 *
 * They are those of src/runtime, done below the root that the keeper has
 * built: the same mounts, the same covers, the same read-only places as for commands. For a
 * root caller they are done as the user that the commands are, so the permissions are the same
 * too; whatever of the caller's is called meanwhile (where content goes to or comes from) is
 * called as the caller. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "base/error.h"
#include "base/path.h"
#include "os/beneath.h"
#include "runtime/link.h"

csn_status csn_jail_fsuid_switch(const csn_runtime *rt, csn_fsuid *g, csn_error **err)
{
    const csn_jail *j = rt->jail;

    g->on = false;
    if (rt->ended)
        return csn_fail(err, CSN_GONE, "sandbox '%s' has ended", rt->id);
    if (!j->privileged)
        return CSN_OK;
    int rc = csn_fsuid_switch(g, j->host_uid, j->host_gid);
    return rc < 0 ? csn_fail_errno(err, -rc, "be the sandbox's user") : CSN_OK;
}

/* For what changes files: the change is noted first, as the caller. */
static csn_status begin_change(csn_runtime *rt, csn_fsuid *g, csn_error **err)
{
    g->on = false;
    csn_status st = rt->ended ? CSN_OK : csn_protected_check_trees(rt, err);
    if (st < 0)
        return st;
    if (!rt->ended)
        csn_protected_note_change(rt);
    return csn_jail_fsuid_switch(rt, g, err);
}

static csn_status leave(csn_runtime *rt, csn_fsuid *g, csn_status st, csn_error **err)
{
    csn_fsuid_restore(g);
    return csn_link_check_alive(rt, st, err);
}

/* ---- the caller's own functions, called in between ---- */

/* Stands before the sink, source or entry function that was given. */
typedef struct aside {
    const csn_jail *j;
    csn_fsuid *g;
    const csn_sink *sink;
    const csn_source *source;
    csn_entry_fn entry;
    void *entry_ctx;
} aside;

/* Switches back, or the operation ends: the next step must not be done as root. */
static bool resume(const aside *a)
{
    return csn_fsuid_switch(a->g, a->j->host_uid, a->j->host_gid) == 0;
}

/* What is read is open by now: there is nothing left to be the other user for. */
static int aside_write(void *ctx, int stream, const void *data, size_t len)
{
    const aside *a = ctx;

    csn_fsuid_restore(a->g);
    return a->sink->write(a->sink->ctx, stream, data, len);
}

static int64_t aside_read(void *ctx, void *buf, size_t len)
{
    const aside *a = ctx;

    csn_fsuid_restore(a->g);
    int64_t n = a->source->read(a->source->ctx, buf, len);
    return resume(a) ? n : -1;
}

static int aside_entry(void *ctx, const char *path, const csn_file_stat *st, const char *target)
{
    const aside *a = ctx;

    csn_fsuid_restore(a->g);
    int r = a->entry(a->entry_ctx, path, st, target);
    return resume(a) ? r : -1;
}

/* ---- the operations ---- */

static csn_status jail_stat(void *state, const char *path, uint32_t flags, csn_file_stat *ret,
                            char **ret_target, csn_error **err)
{
    csn_fsuid g;
    csn_status st = csn_jail_fsuid_switch(state, &g, err);

    if (st == CSN_OK)
        st = csn_runtime_stat(state, path, flags, ret, ret_target, err);
    return leave(state, &g, st, err);
}

static csn_status jail_read(void *state, const char *path, uint32_t flags, uint64_t offset,
                            uint64_t length, const csn_sink *sink, csn_file_stat *ret,
                            csn_error **err)
{
    csn_fsuid g;
    csn_status st = csn_jail_fsuid_switch(state, &g, err);
    aside a = {.j = ((csn_runtime *)state)->jail, .g = &g, .sink = sink};
    const csn_sink through = {aside_write, &a};

    if (st == CSN_OK)
        st = csn_runtime_read(state, path, flags, offset, length, g.on ? &through : sink, ret,
                              err);
    return leave(state, &g, st, err);
}

static csn_status write_as_guest(csn_runtime *rt, csn_fsuid *g, const csn_write_req *reqs,
                                 size_t count, csn_written *rets, csn_error **err)
{
    csn_autofree csn_write_req *own = calloc(count, sizeof(*own));
    csn_autofree aside *a = calloc(count, sizeof(*a));

    if (!own || !a)
        return csn_fail(err, CSN_NOMEM, "write");
    for (size_t i = 0; i < count; i++) {
        a[i] = (aside){.j = rt->jail, .g = g, .source = &reqs[i].source};
        own[i] = reqs[i];
        own[i].source = (csn_source){aside_read, &a[i]};
    }
    return csn_runtime_write(rt, own, count, rets, err);
}

static csn_status jail_write(void *state, const csn_write_req *reqs, size_t count,
                             csn_written *rets, csn_error **err)
{
    csn_fsuid g;
    csn_status st = begin_change(state, &g, err);

    if (st == CSN_OK && g.on)
        st = write_as_guest(state, &g, reqs, count, rets, err);
    else if (st == CSN_OK)
        st = csn_runtime_write(state, reqs, count, rets, err);
    return leave(state, &g, st, err);
}

static csn_status jail_mkdir(void *state, const char *path, uint32_t flags, csn_error **err)
{
    csn_fsuid g;
    csn_status st = begin_change(state, &g, err);

    if (st == CSN_OK)
        st = csn_runtime_mkdir(state, path, flags, err);
    return leave(state, &g, st, err);
}

static csn_status jail_chmod(void *state, const char *path, uint32_t mode, csn_error **err)
{
    csn_fsuid g;
    csn_status st = begin_change(state, &g, err);

    /* On disk the file may be root's: such a bit would be worth something outside. */
    if (st == CSN_OK && (mode & 06000) != 0)
        st = csn_fail(err, CSN_DENIED, "chmod %s: set-id bits are refused in a jail", path);
    if (st == CSN_OK)
        st = csn_runtime_chmod(state, path, mode, err);
    return leave(state, &g, st, err);
}

static csn_status jail_symlink(void *state, const char *target, const char *path,
                               csn_error **err)
{
    csn_fsuid g;
    csn_status st = begin_change(state, &g, err);

    if (st == CSN_OK)
        st = csn_runtime_symlink(state, target, path, err);
    return leave(state, &g, st, err);
}

static csn_status jail_remove(void *state, const char *path, uint32_t flags, csn_error **err)
{
    csn_fsuid g;
    csn_status st = begin_change(state, &g, err);

    if (st == CSN_OK)
        st = csn_runtime_remove(state, path, flags, err);
    return leave(state, &g, st, err);
}

static csn_status jail_rename(void *state, const char *from, const char *to, uint32_t flags,
                              csn_error **err)
{
    csn_fsuid g;
    csn_status st = begin_change(state, &g, err);

    if (st == CSN_OK)
        st = csn_runtime_rename(state, from, to, flags, err);
    return leave(state, &g, st, err);
}

static csn_status jail_list(void *state, const char *path, uint32_t flags, csn_entry_fn fn,
                            void *ctx, csn_error **err)
{
    csn_fsuid g;
    csn_status st = csn_jail_fsuid_switch(state, &g, err);
    aside a = {.j = ((csn_runtime *)state)->jail, .g = &g, .entry = fn, .entry_ctx = ctx};

    if (st == CSN_OK)
        st =
            csn_runtime_list(state, path, flags, g.on ? aside_entry : fn, g.on ? &a : ctx, err);
    return leave(state, &g, st, err);
}

static csn_status jail_walk(void *state, const char *path, uint32_t flags, csn_entry_fn fn,
                            void *ctx, csn_error **err)
{
    csn_fsuid g;
    csn_status st = csn_jail_fsuid_switch(state, &g, err);
    aside a = {.j = ((csn_runtime *)state)->jail, .g = &g, .entry = fn, .entry_ctx = ctx};

    if (st == CSN_OK)
        st =
            csn_runtime_walk(state, path, flags, g.on ? aside_entry : fn, g.on ? &a : ctx, err);
    return leave(state, &g, st, err);
}

static csn_status jail_cleanup(void *state, csn_error **err)
{
    csn_fsuid g;
    csn_status st = begin_change(state, &g, err);

    if (st == CSN_OK)
        st = csn_runtime_cleanup(state, err);
    return leave(state, &g, st, err);
}

static csn_status jail_watch(void *state, const char *path, uint32_t flags, void **ret_watch,
                             csn_error **err)
{
    csn_fsuid g;
    csn_status st = csn_jail_fsuid_switch(state, &g, err);

    if (st == CSN_OK)
        st = csn_runtime_watch(state, path, flags, ret_watch, err);
    return leave(state, &g, st, err);
}

/* It is not there inside: is that because it was not granted? */
static bool missing_inside(const csn_runtime *rt, const char *path)
{
    csn_autofd int fd = csn_beneath_open(rt->root.fd, path, O_PATH, CSN_BENEATH_ROOTED);

    return fd == -ENOENT;
}

static csn_status not_granted(const char *asked, char *resolved, csn_error **err)
{
    csn_autofree char *hint = csn_rules_hint(CSN_OP_READ, resolved);
    csn_autofree char *shown = csn_path_printable(asked);
    csn_denial d = {.op = "read",
                    .target = asked,
                    .resolved = resolved,
                    .rule = "not granted",
                    .source = "the mounts",
                    .hint = hint};

    if (access(resolved, F_OK) != 0)
        return CSN_OK; /* nor does it exist on the host: nothing was refused */
    csn_status st = csn_fail(err, CSN_DENIED, "read %s: not granted to the sandbox",
                             shown ? shown : "path");
    if (hint)
        st = csn_error_advise(st, err, "%s", hint);
    return csn_error_deny(st, err, &d);
}

static csn_status jail_check_path(void *state, uint32_t op, const char *path,
                                  char **ret_resolved, csn_error **err)
{
    const csn_runtime *rt = state;
    csn_fsuid g;
    csn_status st = csn_jail_fsuid_switch(state, &g, err);

    if (st == CSN_OK)
        st = csn_runtime_check_path(state, op, path, ret_resolved, err);
    bool absent = st == CSN_OK && op == CSN_OP_READ && missing_inside(rt, *ret_resolved);
    st = leave(state, &g, st, err);
    return absent && st == CSN_OK ? not_granted(path, *ret_resolved, err) : st;
}

const csn_file_ops csn_jail_file_ops = {
    .size = sizeof(csn_jail_file_ops),
    .stat = jail_stat,
    .read = jail_read,
    .write = jail_write,
    .mkdir = jail_mkdir,
    .chmod = jail_chmod,
    .symlink = jail_symlink,
    .remove = jail_remove,
    .rename = jail_rename,
    .list = jail_list,
    .walk = jail_walk,
    .cleanup = jail_cleanup,
    .watch = jail_watch,
    .watch_next = csn_runtime_watch_next,
    .watch_free = csn_runtime_watch_free,
    .check_path = jail_check_path,
};
