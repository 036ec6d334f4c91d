/* files.c: the file operations of a jail: those of src/runtime, with the uid of commands.
 *
 * Paths are resolved below the root that the keeper built, so the same mounts, masks and
 * read-only places apply as for commands. For a root caller the thread switches its file-system
 * uid to that of the commands, so permissions apply as well. Callbacks of the caller (sinks,
 * sources, entry functions) run with the caller's uid. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/path.h"
#include "os/beneath.h"
#include "runtime/cow.h"
#include "runtime/link.h"

csn_status csn_jail_fsuid_switch(const csn_runtime *rt, csn_fsuid *g, csn_error **err)
{
    const csn_jail *j = rt->jail;

    g->on = false;
    if (rt->ended)
        return csn_fail(err, CSN_GONE, "sandbox '%s' has ended", rt->id);
    if (!j->root)
        return CSN_OK;
    int rc = csn_fsuid_switch(g, j->host_uid, j->host_gid);
    return rc < 0 ? csn_fail_errno(err, -rc, "switch to the uid of the sandbox") : CSN_OK;
}

/* Records a change for the next scan, then switches the uid. */
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

static csn_status finish(csn_runtime *rt, csn_fsuid *g, csn_status st, csn_error **err)
{
    csn_fsuid_restore(g);
    return csn_link_check_alive(rt, st, err);
}

/* ---- callbacks of the caller ---- */

/* Wraps a callback, so that it runs with the caller's uid. */
typedef struct callbacks {
    const csn_jail *j;
    csn_fsuid *g;
    const csn_sink *sink;
    const csn_source *source;
    csn_entry_fn entry;
    void *entry_ctx;
} callbacks;

/* False: the operation must end, since its next step would run as root. */
static bool switch_again(const callbacks *a)
{
    return csn_fsuid_switch(a->g, a->j->host_uid, a->j->host_gid) == 0;
}

/* The file is already open, so the uid is not switched again. */
static int write_as_caller(void *ctx, int stream, const void *data, size_t len)
{
    const callbacks *a = ctx;

    csn_fsuid_restore(a->g);
    return a->sink->write(a->sink->ctx, stream, data, len);
}

static int64_t read_as_caller(void *ctx, void *buf, size_t len)
{
    const callbacks *a = ctx;

    csn_fsuid_restore(a->g);
    int64_t n = a->source->read(a->source->ctx, buf, len);
    return switch_again(a) ? n : -1;
}

static int entry_as_caller(void *ctx, const char *path, const csn_file_stat *st,
                           const char *target)
{
    const callbacks *a = ctx;

    csn_fsuid_restore(a->g);
    int r = a->entry(a->entry_ctx, path, st, target);
    return switch_again(a) ? r : -1;
}

/* ---- the operations ---- */

static csn_status jail_stat(void *state, const char *path, uint32_t flags, csn_file_stat *ret,
                            char **ret_target, csn_error **err)
{
    csn_fsuid g;
    csn_status st = csn_jail_fsuid_switch(state, &g, err);

    if (st == CSN_OK)
        st = csn_runtime_stat(state, path, flags, ret, ret_target, err);
    return finish(state, &g, st, err);
}

static csn_status jail_read(void *state, const char *path, uint32_t flags, uint64_t offset,
                            uint64_t length, const csn_sink *sink, csn_file_stat *ret,
                            csn_error **err)
{
    csn_fsuid g;
    csn_status st = csn_jail_fsuid_switch(state, &g, err);
    callbacks a = {.j = ((csn_runtime *)state)->jail, .g = &g, .sink = sink};
    const csn_sink through = {write_as_caller, &a};

    if (st == CSN_OK)
        st = csn_runtime_read(state, path, flags, offset, length, g.on ? &through : sink, ret,
                              err);
    return finish(state, &g, st, err);
}

static csn_status write_with_callbacks(csn_runtime *rt, csn_fsuid *g, const csn_write_req *reqs,
                                       size_t count, csn_written *rets, csn_error **err)
{
    csn_autofree csn_write_req *own = calloc(count + 1, sizeof(*own));
    csn_autofree callbacks *a = calloc(count + 1, sizeof(*a));

    if (!own || !a)
        return csn_fail(err, CSN_NOMEM, "write");
    for (size_t i = 0; i < count; i++) {
        a[i] = (callbacks){.j = rt->jail, .g = g, .source = &reqs[i].source};
        own[i] = reqs[i];
        if (own[i].source.read != csn_memory_read) /* which is no code of the caller */
            own[i].source = (csn_source){read_as_caller, &a[i]};
    }
    return csn_runtime_write(rt, own, count, rets, err);
}

static csn_status jail_write(void *state, const csn_write_req *reqs, size_t count,
                             csn_written *rets, csn_error **err)
{
    csn_fsuid g;

    for (size_t i = 0; ((csn_runtime *)state)->jail->cow && i < count; i++)
        csn_cow_keep(state, reqs[i].path);
    csn_status st = begin_change(state, &g, err);
    if (st == CSN_OK && g.on)
        st = write_with_callbacks(state, &g, reqs, count, rets, err);
    else if (st == CSN_OK)
        st = csn_runtime_write(state, reqs, count, rets, err);
    return finish(state, &g, st, err);
}

static csn_status jail_mkdir(void *state, const char *path, uint32_t flags, csn_error **err)
{
    csn_fsuid g;
    csn_status st = begin_change(state, &g, err);

    if (st == CSN_OK)
        st = csn_runtime_mkdir(state, path, flags, err);
    return finish(state, &g, st, err);
}

static csn_status jail_chmod(void *state, const char *path, uint32_t mode, csn_error **err)
{
    csn_fsuid g;
    csn_status st = begin_change(state, &g, err);

    /* On disk the file may belong to root: a set-id bit would take effect on the host. */
    if (st == CSN_OK && (mode & 06000) != 0)
        st = csn_fail(err, CSN_DENIED, "chmod %s: set-id bits are refused in a jail", path);
    if (st == CSN_OK)
        st = csn_runtime_chmod(state, path, mode, err);
    return finish(state, &g, st, err);
}

static csn_status jail_symlink(void *state, const char *target, const char *path,
                               csn_error **err)
{
    csn_fsuid g;
    csn_status st = begin_change(state, &g, err);

    if (st == CSN_OK)
        st = csn_runtime_symlink(state, target, path, err);
    return finish(state, &g, st, err);
}

static csn_status jail_remove(void *state, const char *path, uint32_t flags, csn_error **err)
{
    csn_fsuid g;
    csn_status st = begin_change(state, &g, err);

    if (st == CSN_OK)
        st = csn_runtime_remove(state, path, flags, err);
    return finish(state, &g, st, err);
}

static csn_status jail_rename(void *state, const char *from, const char *to, uint32_t flags,
                              csn_error **err)
{
    csn_fsuid g;
    csn_status st = begin_change(state, &g, err);

    if (st == CSN_OK)
        st = csn_runtime_rename(state, from, to, flags, err);
    return finish(state, &g, st, err);
}

typedef csn_status (*visit_fn)(void *state, const char *path, uint32_t flags, csn_entry_fn fn,
                               void *ctx, csn_error **err);

static csn_status visit(visit_fn op, void *state, const char *path, uint32_t flags,
                        csn_entry_fn fn, void *ctx, csn_error **err)
{
    csn_fsuid g;
    csn_status st = csn_jail_fsuid_switch(state, &g, err);
    callbacks a = {.j = ((csn_runtime *)state)->jail, .g = &g, .entry = fn, .entry_ctx = ctx};

    if (st == CSN_OK)
        st = op(state, path, flags, g.on ? entry_as_caller : fn, g.on ? &a : ctx, err);
    return finish(state, &g, st, err);
}

static csn_status jail_list(void *state, const char *path, uint32_t flags, csn_entry_fn fn,
                            void *ctx, csn_error **err)
{
    return visit(csn_runtime_list, state, path, flags, fn, ctx, err);
}

static csn_status jail_walk(void *state, const char *path, uint32_t flags, csn_entry_fn fn,
                            void *ctx, csn_error **err)
{
    return visit(csn_runtime_walk, state, path, flags, fn, ctx, err);
}

/* fn is code of the core and calls none of the caller. */
static csn_status jail_search(void *state, const char *path, csn_search_fn fn, void *ctx,
                              csn_error **err)
{
    csn_fsuid g;
    csn_status st = csn_jail_fsuid_switch(state, &g, err);

    if (st == CSN_OK)
        st = csn_runtime_search(state, path, fn, ctx, err);
    csn_fsuid_restore(&g);
    return st == CSN_UNSUPPORTED ? st : csn_link_check_alive(state, st, err);
}

static csn_status cleanup_layers(csn_runtime *rt, csn_error **err)
{
    csn_fsuid g;
    csn_status st = begin_change(rt, &g, err);

    if (st == CSN_OK)
        st = csn_runtime_cleanup(rt, err);
    return finish(rt, &g, st, err);
}

/* Works on the directory of the host, as the caller: inside, files that the agent must not
 * change are mount points. */
static csn_status jail_cleanup(void *state, csn_error **err)
{
    csn_runtime *rt = state;
    const char *host = rt->jail->shares->v[0].host;
    struct stat named, held;

    if (rt->ended)
        return csn_fail(err, CSN_GONE, "sandbox '%s' has ended", rt->id);
    if (rt->jail->cow) /* the host's directory stays as it is */
        return cleanup_layers(rt, err);
    csn_autofd int fd = open(host, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &named) < 0 || fstat(rt->base.fd, &held) < 0)
        return csn_fail_errno(err, errno, "workspace %s", host);
    if (named.st_dev != held.st_dev || named.st_ino != held.st_ino)
        return csn_fail(err, CSN_CONFLICT, "workspace %s: another directory has this name now",
                        host);
    csn_protected_note_change(rt);
    return csn_link_check_alive(rt, csn_runtime_cleanup_dir(rt, fd, err), err);
}

static const char *jail_note_write(void *state, const char *resolved)
{
    const csn_runtime *rt = state;
    const csn_jail_shares *s = rt->jail->shares;

    for (size_t i = 0; i < s->count; i++)
        if (csn_path_below(resolved, s->v[i].inside))
            return NULL;
    return csn_path_below(resolved, rt->home.path) ? CSN_NOTE_PRIVATE_HOME
                                                   : CSN_NOTE_PRIVATE_PLACE;
}

static csn_status jail_watch(void *state, const char *path, uint32_t flags, void **ret_watch,
                             csn_error **err)
{
    csn_fsuid g;
    csn_status st = csn_jail_fsuid_switch(state, &g, err);

    if (st == CSN_OK)
        st = csn_runtime_watch(state, path, flags, ret_watch, err);
    return finish(state, &g, st, err);
}

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
        return CSN_OK; /* it does not exist on the host either */
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
    st = finish(state, &g, st, err);
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
    .search = jail_search,
    .cleanup = jail_cleanup,
    .watch = jail_watch,
    .watch_next = csn_runtime_watch_next,
    .watch_free = csn_runtime_watch_free,
    .check_path = jail_check_path,
    .note_write = jail_note_write,
};
