/* cow_open.c: makes, finds and removes the layers of a copy-on-write workspace. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/path.h"
#include "os/atomic.h"
#include "os/statedir.h"
#include "runtime/cow.h"

#define SWEEP_EACH_NS (60 * UINT64_C(1000000000))

/* ---- options ---- */

/* What a sandbox with an `image` starts from: the tree, and its layers. */
static bool split_image(const char *image, char tree[CSN_NAME_BYTES_MAX + 1],
                        char names[CSN_LAYER_NAMES])
{
    const char *at = image + strlen(CSN_COW_IMAGE), *colon = strchr(at, ':');
    csn_overlay ignored;

    if (!colon || colon == at || colon - at > (ptrdiff_t)CSN_NAME_BYTES_MAX ||
        strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789-") != (size_t)(colon - at) ||
        strlen(colon + 1) >= CSN_LAYER_NAMES)
        return false;
    memcpy(tree, at, (size_t)(colon - at));
    tree[colon - at] = '\0';
    csn_layer_names_copy(names, colon + 1);
    for (char *p = names; *p; p++)
        *p = *p == ',' ? ' ' : *p;
    return !*names || csn_overlay_describe(names, &ignored) == 0;
}

csn_status csn_cow_check_image(const csn_runtime *rt, bool cow, csn_error **err)
{
    const csn_config *c = rt->config;
    char tree[CSN_NAME_BYTES_MAX + 1], names[CSN_LAYER_NAMES];
    csn_status st;

    if (!c->image)
        return CSN_OK;
    if (strncmp(c->image, CSN_COW_IMAGE, strlen(CSN_COW_IMAGE)) != 0) {
        st = csn_fail(err, CSN_UNSUPPORTED, "--image %s: backend '%s' has no images", c->image,
                      rt->backend);
        return csn_error_advise(st, err,
                                "docker, dagger and e2b have; %s takes a snapshot of "
                                "another sandbox: caisson snapshot ID",
                                rt->backend);
    }
    if (!cow)
        return csn_fail(err, CSN_INVALID, "--image %s: needs a copy-on-write workspace (--cow)",
                        c->image);
    return split_image(c->image, tree, names)
               ? CSN_OK
               : csn_fail(err, CSN_INVALID, "--image %s: is not a snapshot", c->image);
}

/* ---- the tree ---- */

char *csn_cow_tree_path(const csn_runtime *rt)
{
    char tree[CSN_NAME_BYTES_MAX + 1], names[CSN_LAYER_NAMES], sub[sizeof(tree) + 16];
    bool forked = rt->config->image && split_image(rt->config->image, tree, names);

    snprintf(sub, sizeof(sub), "layers/%s", forked ? tree : rt->id);
    return csn_statedir_path(CSN_DIR_STATE, sub);
}

static csn_cow *new_cow(csn_runtime *rt)
{
    csn_cow *c = malloc(sizeof(*c));

    if (c) {
        *c = (csn_cow){.tree = -1, .alive = -1};
        pthread_mutex_init(&c->lock, NULL);
        rt->cow = c;
        rt->remounted = true;
    }
    return c;
}

void csn_cow_release(csn_cow *c)
{
    if (!c)
        return;
    if (c->tree >= 0)
        close(c->tree);
    if (c->alive >= 0)
        close(c->alive);
    free(c->path);
    free(c->host);
    free(c->copy);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* A new tree, or that of the sandbox from which this one is forked. */
static csn_status open_tree_dir(csn_runtime *rt, char *names, csn_error **err)
{
    csn_cow *c = rt->cow;
    char tree[CSN_NAME_BYTES_MAX + 1], sub[sizeof(tree) + 16];
    bool forked = rt->config->image && split_image(rt->config->image, tree, names);

    snprintf(sub, sizeof(sub), "layers/%s", forked ? tree : rt->id);
    c->tree = forked ? csn_statedir_find(CSN_DIR_STATE, sub, &c->path)
                     : csn_statedir_open(CSN_DIR_STATE, sub, &c->path);
    if (c->tree == -ENOENT && forked)
        return csn_fail(err, CSN_NOT_FOUND, "--image %s: the snapshot is gone",
                        rt->config->image);
    if (c->tree < 0)
        return csn_statedir_fail(err, -c->tree, CSN_DIR_STATE, sub);
    int rc = flock(c->tree, LOCK_EX) < 0 ? -errno : forked ? 0 : csn_layer_tree_init(c->tree);
    return rc < 0 ? csn_fail_errno(err, -rc, "layers of the workspace") : CSN_OK;
}

/* All of the snapshot's layers must still exist. */
static csn_status check_layers(const csn_runtime *rt, const char *names, csn_error **err)
{
    size_t count = csn_layer_count(names);

    for (size_t i = 0; i < count; i++) {
        csn_autofd int fd = csn_layer_open_fs(rt->cow->tree, names, i);
        if (fd < 0)
            return csn_fail(err, CSN_NOT_FOUND, "--image %s: the snapshot is gone",
                            rt->config->image);
    }
    return CSN_OK;
}

/* A fork starts with the changes of another sandbox, so its base was taken when that one's
 * was. */
static struct timespec base_time(csn_cow *c, const char *names)
{
    char owner[CSN_NAME_BYTES_MAX + 1];
    struct timespec since;
    csn_layer_record r;
    struct stat st;

    (void)clock_gettime(CLOCK_REALTIME, &since);
    if (!*names)
        return since;
    if (csn_layer_owner(c->tree, names, owner) == 0 &&
        csn_layer_record_read(c->tree, owner, &r) == 0) {
        since = r.since;
        c->like_source = !r.copy;
        csn_layer_record_release(&r);
    } else if (fstatat(c->tree, CSN_OVERLAY_BASE, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        since = st.st_mtim; /* that of the tree */
    }
    return since;
}

/* Its process was killed, and it is not, or no longer, detached. The lock is tried first: a
 * process that detaches a sandbox gives it up when the directory exists. */
static bool is_dead(int tree, const char *id)
{
    char sub[CSN_NAME_BYTES_MAX + 16];

    if (id[0] == '.' || strlen(id) > CSN_NAME_BYTES_MAX)
        return false;
    csn_autofd int lock = csn_layer_lock(tree, id);
    if (lock < 0)
        return false;
    snprintf(sub, sizeof(sub), "sandboxes/%s", id);
    csn_autofd int detached = csn_statedir_find(CSN_DIR_STATE, sub, NULL);
    return detached == -ENOENT;
}

static void sweep_tree(const char *name)
{
    char sub[CSN_NAME_BYTES_MAX + 16];
    csn_autofree char *path = NULL;

    snprintf(sub, sizeof(sub), "layers/%s", name);
    csn_autofd int tree = csn_statedir_find(CSN_DIR_STATE, sub, &path);
    int fd = tree < 0 ? -1 : openat(tree, "stacks", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d && fd >= 0)
        close(fd);
    for (struct dirent *e; d && (e = readdir(d));)
        if (is_dead(tree, e->d_name))
            csn_layer_tree_release(path, e->d_name);
    if (d)
        closedir(d);
}

static void sweep_all(void)
{
    int fd = csn_statedir_find(CSN_DIR_STATE, "layers", NULL);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);

    if (!d && fd >= 0)
        close(fd);
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.' && strlen(e->d_name) <= CSN_NAME_BYTES_MAX)
            sweep_tree(e->d_name);
    if (d)
        closedir(d);
}

/* Removes the layers of sandboxes that were killed together with their sweeper. These belong to
 * other processes, so a process that opens many sandboxes looks for them only now and then: it
 * takes time for each sandbox of the user. */
static void sweep(void)
{
    static _Atomic uint64_t next;
    uint64_t now = csn_now_ns(), due = atomic_load(&next);

    if (now >= due && atomic_compare_exchange_strong(&next, &due, now + SWEEP_EACH_NS))
        sweep_all();
}

/* Copies the base, or the layer of a snapshot. Nothing of the base shows through. */
static int fill_copy(csn_cow *c, const char *names, const char *layer)
{
    csn_autofd int from = *names ? csn_layer_open_fs(c->tree, names, 0)
                                 : open(c->host, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    csn_autofd int to = csn_layer_open_fs(c->tree, layer, 0);
    int rc = from < 0 ? (*names ? from : -errno) : to < 0 ? to : 0;

    if (rc == 0)
        rc = csn_layer_copy(from, to);
    return rc < 0 ? rc : csn_usage_measure(to, &c->start);
}

static int set_copy(csn_cow *c, const char *names)
{
    int n = asprintf(&c->copy, "%s/%.*s/fs", c->path, (int)CSN_OVERLAY_NAME, names);

    if (n < 0)
        c->copy = NULL;
    return n < 0 ? -ENOMEM : 0;
}

static csn_status make_first(csn_runtime *rt, const char *names, bool copy, csn_error **err)
{
    csn_cow *c = rt->cow;
    csn_layer_record r = {0};
    char layer[CSN_OVERLAY_NAME + 1];
    struct stat like;

    csn_autofd int top = *names ? csn_layer_open_fs(c->tree, names, 0) : -1;
    if (top >= 0 ? fstat(top, &like) < 0 : stat(c->host, &like) < 0)
        return csn_fail_errno(err, errno, "workspace");
    r.since = base_time(c, names);
    r.copy = copy;
    csn_layer_names_copy(r.names, r.copy ? "" : names);
    c->alive = csn_layer_lock(c->tree, rt->id);
    int rc = c->alive < 0 ? c->alive : csn_layer_create(c->tree, rt->id, &like, layer);
    if (rc == 0)
        rc = csn_layer_push(r.names, layer);
    if (rc == 0 && r.copy)
        rc = fill_copy(c, names, layer);
    if (rc == 0)
        rc = csn_cow_inherit(c, names, rt->id);
    if (rc == 0)
        rc = csn_layer_record_write(c->tree, rt->id, &r);
    csn_layer_names_copy(c->names, r.names);
    if (rc == 0 && r.copy)
        rc = set_copy(c, layer);
    return rc < 0 ? csn_fail_errno(err, -rc, "layers of the workspace") : CSN_OK;
}

csn_status csn_cow_create(csn_runtime *rt, const char *host, bool copy, csn_error **err)
{
    char names[CSN_LAYER_NAMES] = "";
    csn_cow *c = new_cow(rt);

    if (c)
        c->host = strdup(host);
    if (!c || !c->host)
        return csn_fail(err, CSN_NOMEM, "layers of the workspace");
    sweep();
    csn_status st = open_tree_dir(rt, names, err);
    c->like_source = rt->config->image && !*names; /* a copy has a layer */
    if (st == CSN_OK)
        st = check_layers(rt, names, err);
    if (st == CSN_OK)
        st = make_first(rt, names, copy, err);
    if (c->tree >= 0)
        (void)flock(c->tree, LOCK_UN);
    return st;
}

csn_status csn_cow_save(csn_runtime *rt, csn_error **err)
{
    csn_cow *c = rt->cow;

    if (!c)
        return CSN_OK;
    csn_autofd int fd = openat(rt->run_fd, CSN_STATE_LAYERS,
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int rc = fd < 0 ? -errno : csn_write_full(fd, c->path, strlen(c->path) + 1, NULL);
    if (rc == 0)
        rc = csn_write_full(fd, c->host, strlen(c->host), NULL);
    if (rc == 0)
        close(csn_steal_fd(
            &c->alive)); /* it is found in the directory of sandboxes from now on */
    return rc < 0 ? csn_fail_errno(err, -rc, "record of sandbox '%s'", rt->id) : CSN_OK;
}

csn_status csn_cow_find(csn_runtime *rt, csn_error **err)
{
    char path[2 * CSN_PATH_MAX + 3] = ""; /* of the tree, a NUL, the host's directory */
    csn_autofd int fd = openat(rt->run_fd, CSN_STATE_LAYERS, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT)
        return CSN_OK;
    if (fd < 0 || read(fd, path, sizeof(path) - 2) < 0)
        return csn_runtime_run_failed(rt, errno, "record", err);
    csn_cow *c = new_cow(rt);
    if (c)
        c->path = strdup(path);
    if (!c || !c->path)
        return csn_fail(err, CSN_NOMEM, "layers of the workspace");
    c->host = strdup(strlen(path) + path + 1);
    c->tree = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (!c->host)
        return csn_fail(err, CSN_NOMEM, "layers of the workspace");
    if (c->tree < 0)
        return csn_fail_errno(err, errno, "layers of sandbox '%s': %s", rt->id, path);
    csn_layer_record r;
    int rc = csn_layer_record_read(c->tree, rt->id, &r);
    if (rc < 0)
        return csn_fail_errno(err, -rc, "layers of sandbox '%s'", rt->id);
    c->switching = r.switching;
    rc = r.copy ? set_copy(c, r.names) : 0;
    csn_layer_record_release(&r);
    return rc < 0 ? csn_fail(err, CSN_NOMEM, "layers of the workspace") : CSN_OK;
}

void csn_cow_ended(const csn_runtime *rt)
{
    if (rt->cow && rt->cow->path)
        csn_layer_tree_release(rt->cow->path, rt->id);
}
