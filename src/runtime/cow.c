/* cow.c: snapshots, rollback and forks of a copy-on-write workspace.
 *
 * All of them change the stack of layers: the overlay of the present one is frozen, because no
 * process can write to it any more, and one with a new, empty layer on top takes its place. A
 * process that has files open in the old overlay would still write to it, so nothing may run;
 * shells of sessions that wait for a command may (they hold only their working directory, which
 * runtime/session.c enters again). A snapshot or a fork while something runs copies the first
 * layer instead.
 *
 * Order, for a process that is killed at any point: the new layer is made, the record names it
 * and says `switching`, the mount is changed, the record no longer says so. A record that says
 * `switching` makes the next call repeat the change of the mount first. */
#include "runtime/cow.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "layers/commit.h"
#include "layers/copy_tree.h"
#include "layers/flatten.h"
#include "layers/originals.h"
#include "os/tree.h"
#include "runtime/link.h"

typedef struct cow_call {
    csn_runtime *rt;
    csn_cow *cow;
    csn_layer_record r;
    int tree; /* the mounted tree, from the keeper */
    uint32_t commands;
} cow_call;

/* ---- begin and end of a call ---- */

static csn_status not_cow(const csn_runtime *rt, csn_error **err)
{
    csn_status st =
        csn_fail(err, CSN_UNSUPPORTED,
                 "workspace %s: is not copy-on-write, changes are the host's", rt->base.path);

    return csn_error_advise(st, err, "open the sandbox with --cow");
}

static csn_status ask_keeper(cow_call *c, csn_error **err)
{
    csn_layers_msg found = {0};
    uint8_t buf[256];
    csn_msg m;
    int e = 0;

    csn_status st = csn_link_call_long(c->rt, CSN_MSG_LAYERS, NULL, 0, CSN_MSG_LAYERS_REPLY,
                                       &found, buf, sizeof(buf), &m, &e, err);
    if (st < 0)
        return st;
    if (e != 0)
        return csn_fail_errno(err, e, "layers of sandbox '%s'", c->rt->id);
    c->tree = m.nfds > 0 ? csn_msg_take_fd(&m, 0) : -1;
    c->commands = found.commands;
    csn_msg_release(&m);
    return CSN_OK;
}

static csn_status change_mount(cow_call *c, csn_error **err)
{
    return c->cow->change_mount(c->rt, c->tree, c->r.names, err);
}

/* The record says `switching`, and the mount is now that of its stack. */
static csn_status settle(cow_call *c, csn_error **err)
{
    int rc = csn_layer_record_settle(c->cow->tree, c->rt->id);

    c->r.switching = false;
    return rc < 0 ? csn_fail_errno(err, -rc, "layers of sandbox '%s'", c->rt->id) : CSN_OK;
}

static csn_status save(cow_call *c, csn_error **err)
{
    int rc = csn_layer_record_write(c->cow->tree, c->rt->id, &c->r);

    return rc < 0 ? csn_fail_errno(err, -rc, "layers of sandbox '%s'", c->rt->id) : CSN_OK;
}

/* Puts another empty layer in the place of the first. */
static csn_status renew_first(cow_call *c, csn_error **err)
{
    char layer[CSN_OVERLAY_NAME + 1];
    struct stat like;

    csn_autofd int first = csn_layer_open_fs(c->cow->tree, c->r.names, 0);
    int rc = first < 0 ? first : fstat(first, &like) < 0 ? -errno : 0;
    if (rc == 0)
        rc = csn_layer_create(c->cow->tree, c->rt->id, &like, layer);
    if (rc < 0)
        return csn_fail_errno(err, -rc, "layers of the workspace");
    memcpy(c->r.names, layer, CSN_OVERLAY_NAME);
    return save(c, err);
}

/* A call was killed before or after it changed the mount. If the first layer has been written
 * to, it is mounted. Otherwise a new one is: the kernel mounts no layer twice. */
static csn_status finish_switch(cow_call *c, csn_error **err)
{
    char old[CSN_LAYER_NAMES];
    csn_status st = CSN_OK;

    csn_layer_names_copy(old, c->r.names);
    if (csn_layer_is_empty(c->cow->tree, old, 0)) {
        st = renew_first(c, err);
        if (st == CSN_OK)
            st = change_mount(c, err);
    }
    if (st == CSN_OK)
        st = settle(c, err);
    if (st == CSN_OK)
        csn_layer_drop(c->cow->tree, old, &c->r);
    return st;
}

static void end(cow_call *c)
{
    csn_layer_record_release(&c->r);
    if (c->tree >= 0)
        close(c->tree);
    (void)flock(c->cow->tree, LOCK_UN);
    pthread_mutex_unlock(&c->cow->lock);
}

static csn_status begin(void *state, cow_call *c, csn_error **err)
{
    csn_runtime *rt = state;

    *c = (cow_call){.rt = rt, .cow = rt->cow, .tree = -1};
    if (rt->ended)
        return csn_fail(err, CSN_GONE, "sandbox '%s' has ended", rt->id);
    if (!c->cow)
        return not_cow(rt, err);
    pthread_mutex_lock(&c->cow->lock);
    int rc = flock(c->cow->tree, LOCK_EX) < 0
                 ? -errno
                 : csn_layer_record_read(c->cow->tree, rt->id, &c->r);
    csn_status st = rc < 0 ? csn_fail_errno(err, -rc, "layers of sandbox '%s'", rt->id)
                           : ask_keeper(c, err);
    if (st == CSN_OK && c->r.switching && c->commands == 0)
        st = finish_switch(c, err);
    if (st < 0)
        end(c);
    return st;
}

void csn_cow_finish(csn_runtime *rt)
{
    cow_call c;

    if (rt->cow && rt->cow->switching && begin(rt, &c, NULL) == CSN_OK)
        end(&c);
}

/* ---- changing the mount ---- */

static csn_status busy(const cow_call *c, csn_error **err)
{
    csn_status st =
        csn_fail(err, CSN_CONFLICT, "%u process%s of sandbox '%s' still run%s", c->commands,
                 c->commands == 1 ? "" : "es", c->rt->id, c->commands == 1 ? "s" : "");

    return csn_error_advise(st, err, "wait for it, or end it: caisson ps %s, caisson kill",
                            c->rt->id);
}

/* A long stack becomes one layer. Snapshots keep the layers that they have. */
static int flatten(cow_call *c, char names[CSN_LAYER_NAMES])
{
    csn_layer_stack s = {.base = open(c->cow->host, O_PATH | O_DIRECTORY | O_CLOEXEC)};
    char layer[CSN_OVERLAY_NAME + 1];
    struct stat like;
    int rc = s.base < 0 ? -errno : 0;

    for (size_t i = 0; rc == 0 && i < csn_layer_count(names); i++) {
        int fd = csn_layer_open_fs(c->cow->tree, names, i);
        rc = fd < 0 ? fd : 0;
        if (rc == 0)
            s.layers[s.count++] = fd;
    }
    if (rc == 0)
        rc = fstat(s.layers[0], &like) < 0
                 ? -errno
                 : csn_layer_create(c->cow->tree, c->rt->id, &like, layer);
    csn_autofd int to = rc < 0 ? rc : csn_layer_open_fs(c->cow->tree, layer, 0);
    if (rc == 0)
        rc = to < 0 ? to : csn_layer_flatten(&s, 0, to);
    csn_layer_stack_close(&s);
    if (rc == 0)
        csn_layer_names_copy(names, layer);
    return rc;
}

static csn_status add_layer(cow_call *c, const char *names, csn_error **err)
{
    char layer[CSN_OVERLAY_NAME + 1], stack[CSN_LAYER_NAMES];
    struct stat like;

    csn_autofd int top = *names ? csn_layer_open_fs(c->cow->tree, names, 0) : -1;
    if (top >= 0 ? fstat(top, &like) < 0 : stat(c->cow->host, &like) < 0)
        return csn_fail_errno(err, errno, "workspace");
    csn_layer_names_copy(stack, names);
    int rc = csn_layer_count(stack) >= CSN_LAYERS_FLATTEN ? flatten(c, stack) : 0;
    if (rc == 0)
        rc = csn_layer_create(c->cow->tree, c->rt->id, &like, layer);
    if (rc == 0)
        rc = csn_layer_push(stack, layer);
    if (rc < 0)
        return csn_fail_errno(err, -rc, "layers of the workspace");
    csn_layer_names_copy(c->r.names, stack);
    return CSN_OK;
}

/* Replaces the contents of a copy by those of the base or of a snapshot. */
static csn_status refill(cow_call *c, const char *names, csn_error **err)
{
    csn_autofd int to = csn_layer_open_fs(c->cow->tree, c->r.names, 0);
    csn_autofd int from = *names ? csn_layer_open_fs(c->cow->tree, names, 0)
                                 : open(c->cow->host, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = to < 0 ? to : from < 0 ? (*names ? from : -errno) : csn_tree_empty(to);

    if (rc == 0)
        rc = csn_layer_copy(from, to);
    return rc < 0 ? csn_fail_errno(err, -rc, "workspace: copy it") : save(c, err);
}

/* Puts a new layer on `names`, which may be part of the record, and mounts that stack. The rest
 * of the record is saved as it is. After a failure the record has the old stack and the changes
 * of the caller, and the next call mounts it again, because it is not known which of the two
 * stacks is mounted. */
static csn_status switch_to(cow_call *c, const char *names, csn_error **err)
{
    char old[CSN_LAYER_NAMES];

    if (c->r.copy)
        return refill(c, names, err);
    csn_layer_names_copy(old, c->r.names);
    csn_status st = add_layer(c, names, err);
    if (st < 0)
        return st;
    c->r.switching = true;
    st = save(c, err);
    if (st == CSN_OK)
        st = change_mount(c, err);
    if (st == CSN_OK)
        st = settle(c, err);
    if (st == CSN_OK) {
        csn_layer_drop(c->cow->tree, old, &c->r);
        return st;
    }
    c->r.switching = true;
    csn_layer_names_copy(c->r.names, old);
    (void)save(c, NULL);
    return st;
}

/* ---- snapshots ---- */

/* The layers of the present files. A first layer without content is not one of them, and stays
 * in use. */
static void present_layers(const cow_call *c, char ret[CSN_LAYER_NAMES])
{
    bool empty = csn_layer_is_empty(c->cow->tree, c->r.names, 0);
    const char *rest = c->r.names + CSN_OVERLAY_NAME;

    csn_layer_names_copy(ret, empty ? rest + (*rest == ' ') : c->r.names);
}

/* names: from present_layers. False: the first layer, which is written to, is one of them. */
static bool is_frozen(const cow_call *c, const char *names)
{
    return strlen(names) < strlen(c->r.names);
}

static csn_status choose_name(const cow_call *c, const char *name, const char *kind,
                              char ret[CSN_SNAPSHOT_NAME + 1], csn_error **err)
{
    if (name && !csn_snapshot_name_is_valid(name)) {
        csn_status st = csn_fail(err, CSN_INVALID, "snapshot '%.80s': is not a name", name);
        return csn_error_advise(st, err, "letters, digits, '.', '_' and '-', at most %u",
                                CSN_SNAPSHOT_NAME);
    }
    if (name && csn_layer_find(&c->r, name))
        return csn_fail(err, CSN_EXISTS, "snapshot '%s' exists already", name);
    if (c->r.snapshot_count == CSN_SNAPSHOTS_MAX)
        return csn_fail(err, CSN_TOO_LARGE, "a sandbox has at most %u snapshots",
                        CSN_SNAPSHOTS_MAX);
    if (name) {
        snprintf(ret, CSN_SNAPSHOT_NAME + 1, "%s", name);
        return CSN_OK;
    }
    for (size_t n = c->r.snapshot_count + 1;; n++) {
        snprintf(ret, CSN_SNAPSHOT_NAME + 1, "%s-%zu", kind, n);
        if (!csn_layer_find(&c->r, ret))
            return CSN_OK;
    }
}

static char *image_of(const cow_call *c, const char *names)
{
    const char *tree = strrchr(c->cow->path, '/') + 1;
    char *out = NULL;

    if (asprintf(&out, CSN_COW_IMAGE "%s:%s", tree, names) < 0)
        return NULL;
    for (char *p = out; *p; p++)
        *p = *p == ' ' ? ',' : *p;
    return out;
}

static csn_status tell(const cow_call *c, const csn_layer_snapshot *s, csn_snapshot_fn fn,
                       void *ctx, int *ret, csn_error **err)
{
    csn_autofree char *image = image_of(c, s->names);
    const csn_snapshot_entry e = {.name = s->name,
                                  .snapshot = image,
                                  .created_ms = s->created_ms,
                                  .how = s->copied ? "copied" : "frozen",
                                  .automatic = s->automatic};

    if (!image)
        return csn_fail(err, CSN_NOMEM, "snapshot");
    *ret = fn(ctx, &e);
    return CSN_OK;
}

static csn_status pause_processes(cow_call *c, bool on, csn_error **err)
{
    const csn_pause_msg msg = {.on = on};
    int e = 0;
    csn_status st = csn_link_call(c->rt, CSN_MSG_PAUSE, &msg, CSN_MSG_DONE, NULL, &e, err);

    if (st < 0 || e == 0)
        return st;
    return csn_fail(err, e == ETIMEDOUT ? CSN_TIMEOUT : CSN_CONFLICT,
                    e == ETIMEDOUT
                        ? "snapshot: the changes are too many to copy while the "
                          "processes of sandbox '%s' are stopped"
                        : "snapshot: the processes of sandbox '%s' cannot be stopped",
                    c->rt->id);
}

/* While processes run the first layer cannot be frozen. They are stopped, and it is copied. */
static csn_status copy_first(cow_call *c, csn_layer_snapshot *s, csn_error **err)
{
    char layer[CSN_OVERLAY_NAME + 1];
    const char *rest = c->r.names + CSN_OVERLAY_NAME;
    struct stat like;

    csn_autofd int from = csn_layer_open_fs(c->cow->tree, c->r.names, 0);
    int rc = from < 0 ? from : fstat(from, &like) < 0 ? -errno : 0;
    if (rc == 0)
        rc = csn_layer_create(c->cow->tree, c->rt->id, &like, layer);
    if (rc < 0)
        return csn_fail_errno(err, -rc, "layers of the workspace");
    csn_layer_names_copy(s->names, rest + (*rest == ' '));
    rc = csn_layer_push(s->names, layer);
    csn_autofd int to = rc < 0 ? rc : csn_layer_open_fs(c->cow->tree, s->names, 0);
    csn_status st = to < 0 ? csn_fail_errno(err, -to, "layers of the workspace") : CSN_OK;
    if (st == CSN_OK && c->commands > 0)
        st = pause_processes(c, true, err);
    if (st == CSN_OK) {
        rc = csn_tree_copy(from, to, CSN_COPY_LAYER, NULL);
        st = c->commands > 0 ? pause_processes(c, false, err) : CSN_OK;
    }
    if (st == CSN_OK && rc < 0)
        st = csn_fail_errno(err, -rc, "layers of the workspace");
    if (st < 0)
        csn_layer_drop(c->cow->tree, layer, &c->r);
    s->copied = true;
    return st;
}

/* For a fork: no snapshot remains, but its layers are shared from now on. */
static csn_status take_for_fork(cow_call *c, csn_layer_snapshot *s, csn_error **err)
{
    bool done = s->copied || is_frozen(c, s->names);
    csn_status st = done ? CSN_OK : switch_to(c, s->names, err);
    const char *rest = c->r.names + CSN_OVERLAY_NAME;

    if (st == CSN_OK && !done) /* a long stack was merged */
        csn_layer_names_copy(s->names, rest + (*rest == ' '));
    int rc = st < 0 ? 0 : csn_layer_share(c->cow->tree, s->names);

    return rc < 0 ? csn_fail_errno(err, -rc, "layers of the workspace") : st;
}

static csn_status take_named(cow_call *c, const char *name, csn_layer_snapshot *s,
                             csn_error **err)
{
    csn_status st =
        choose_name(c, name, s->automatic ? "before-command" : "snapshot", s->name, err);
    csn_layer_snapshot *grown =
        st < 0 ? NULL : realloc(c->r.snapshots, (c->r.snapshot_count + 1) * sizeof(*grown));

    if (st < 0)
        return st;
    if (!grown)
        return csn_fail(err, CSN_NOMEM, "snapshot");
    c->r.snapshots = grown;
    grown[c->r.snapshot_count++] = *s;
    bool done = s->copied || is_frozen(c, s->names);
    st = done ? save(c, err) : switch_to(c, s->names, err);
    if (st < 0) {
        c->r.snapshot_count--;
        (void)save(c, NULL);
    }
    return st;
}

static csn_status cow_snapshot(void *state, const char *name, uint32_t flags,
                               csn_snapshot_fn fn, void *ctx, csn_error **err)
{
    csn_layer_snapshot s = {.created_ms = csn_wall_ms(),
                            .automatic = (flags & CSN_SNAPSHOT_AUTOMATIC) != 0};
    cow_call c;
    int ignored;
    csn_status st = begin(state, &c, err);

    if (st < 0)
        return st;
    if (c.r.switching)
        st = busy(&c, err);
    if (st == CSN_OK)
        present_layers(&c, s.names);
    if (st == CSN_OK && (c.r.copy || (c.commands > 0 && !is_frozen(&c, s.names))))
        st = copy_first(&c, &s, err);
    if (st == CSN_OK)
        st = flags & CSN_SNAPSHOT_FORK ? take_for_fork(&c, &s, err)
                                       : take_named(&c, name, &s, err);
    if (st == CSN_OK)
        st = tell(&c, &s, fn, ctx, &ignored, err);
    end(&c);
    return st;
}

static csn_status cow_snapshots(void *state, csn_snapshot_fn fn, void *ctx, csn_error **err)
{
    cow_call c;
    int stop = 0;
    csn_status st = begin(state, &c, err);

    if (st < 0)
        return st;
    for (size_t i = 0; st == CSN_OK && stop == 0 && i < c.r.snapshot_count; i++)
        st = tell(&c, &c.r.snapshots[i], fn, ctx, &stop, err);
    end(&c);
    return st;
}

/* ---- going back ---- */

static csn_status find_snapshot(const cow_call *c, const char *name, bool automatic,
                                csn_layer_snapshot **ret, csn_error **err)
{
    *ret = name ? csn_layer_find(&c->r, name) : NULL;
    if (name && !*ret)
        return csn_fail(err, CSN_NOT_FOUND, "snapshot '%.80s' not found", name);
    for (size_t i = c->r.snapshot_count; !name && !*ret && i > 0; i--)
        if (!automatic || c->r.snapshots[i - 1].automatic)
            *ret = &c->r.snapshots[i - 1];
    if (!*ret && automatic)
        return csn_fail(err, CSN_NOT_FOUND, "there is no command to undo");
    return CSN_OK;
}

/* Snapshots that are newer than the one reached stay. remove: the one reached does not; without
 * a name it is the newest automatic one. */
static csn_status cow_rollback(void *state, const char *name, uint32_t remove, csn_error **err)
{
    csn_layer_snapshot *s = NULL;
    char names[CSN_LAYER_NAMES] = "";
    cow_call c;
    csn_status st = begin(state, &c, err);

    if (st < 0)
        return st;
    if (c.commands > 0)
        st = busy(&c, err);
    if (st == CSN_OK)
        st = find_snapshot(&c, name, remove && !name, &s, err);
    if (st == CSN_OK && s)
        csn_layer_names_copy(names, s->names);
    if (st == CSN_OK)
        st = switch_to(&c, names, err);
    if (st == CSN_OK && s && remove) {
        size_t after = c.r.snapshot_count - (size_t)(s - c.r.snapshots) - 1;
        memmove(s, s + 1, after * sizeof(*s));
        c.r.snapshot_count--;
        st = save(&c, err);
    }
    end(&c);
    return st;
}

static csn_status cow_discard(void *state, csn_error **err)
{
    cow_call c;
    csn_status st = begin(state, &c, err);

    if (st < 0)
        return st;
    const struct timespec since = c.r.since;
    size_t count = c.r.snapshot_count;
    if (c.commands > 0)
        st = busy(&c, err);
    if (st == CSN_OK) {
        (void)clock_gettime(CLOCK_REALTIME, &c.r.since);
        c.r.snapshot_count = 0;
        st = switch_to(&c, "", err);
        if (st < 0) {
            c.r.since = since;
            c.r.snapshot_count = count;
            (void)save(&c, NULL);
        }
    }
    for (size_t i = 0; st == CSN_OK && i < count; i++)
        csn_layer_drop(c.cow->tree, c.r.snapshots[i].names, &c.r);
    csn_autofd int originals = csn_layer_originals(c.cow->tree, c.rt->id);
    if (st == CSN_OK && originals >= 0)
        (void)csn_originals_clear(originals);
    end(&c);
    return st;
}

/* ---- layers as directories ---- */

static csn_status cow_freeze(void *state, csn_error **err)
{
    char names[CSN_LAYER_NAMES];
    cow_call c;
    csn_status st = begin(state, &c, err);

    if (st < 0)
        return st;
    if (c.commands > 0)
        st = busy(&c, err);
    present_layers(&c, names);
    if (st == CSN_OK && !c.r.copy && !is_frozen(&c, names))
        st = switch_to(&c, names, err);
    end(&c);
    return st;
}

static csn_status open_all(const cow_call *c, csn_workspace_layers *ret, csn_error **err)
{
    ret->base = open(c->cow->host, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (ret->base < 0)
        return csn_fail_errno(err, errno, "workspace %s", c->cow->host);
    for (size_t i = 0; i < csn_layer_count(c->r.names); i++) {
        int fd = csn_layer_open_fs(c->cow->tree, c->r.names, i);
        if (fd < 0)
            return csn_fail_errno(err, -fd, "layers of sandbox '%s'", c->rt->id);
        ret->layers[ret->count++] = fd;
    }
    return CSN_OK;
}

static csn_status cow_open_layers(void *state, csn_workspace_layers *ret, csn_error **err)
{
    csn_workspace_layers l = {.base = -1, .store = -1, .originals = -1};
    cow_call c;
    csn_status st = begin(state, &c, err);

    if (st < 0)
        return st;
    l.since_s = c.r.since.tv_sec;
    l.since_ns = c.r.since.tv_nsec;
    l.running = c.commands > 0;
    st = open_all(&c, &l, err);
    if (st == CSN_OK)
        st = csn_commit_store_open(c.cow->host, &l.store, err);
    if (st == CSN_OK) {
        l.originals = csn_layer_originals(c.cow->tree, c.rt->id);
        if (l.originals < 0)
            st = csn_fail_errno(err, -l.originals, "originals of sandbox '%s'", c.rt->id);
    }
    end(&c);
    if (st == CSN_OK) {
        *ret = l;
        return st;
    }
    for (uint32_t i = 0; i < l.count; i++)
        close(l.layers[i]);
    if (l.base >= 0)
        close(l.base);
    if (l.store >= 0)
        close(l.store);
    return st;
}

const csn_workspace_ops csn_cow_ops = {
    .size = sizeof(csn_cow_ops),
    .snapshot = cow_snapshot,
    .snapshots = cow_snapshots,
    .rollback = cow_rollback,
    .discard = cow_discard,
    .open_layers = cow_open_layers,
    .freeze = cow_freeze,
};
