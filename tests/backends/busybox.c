/* busybox.c: a backend in the poorest sandbox we mean to serve: one static busybox and nothing
 * else, no /dev, no /proc, no /etc.
 *
 * The conformance suite and the tests of core/fallback run on it to see that derived file
 * operations lean on POSIX tools only. Root just calls chroot(2); an ordinary user first gets a
 * user namespace of his own in the forked child, in which he stays himself. */
#include "backends/busybox.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/spawn.h"
#include "backends/why.h"

typedef struct root {
    char *dir;
    bool userns;
    char uid_map[48], gid_map[48];
} root;

/* ---- in the child ----------------------------------------------------------------------- */

static int put_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return errno;
    ssize_t n = write(fd, text, strlen(text));
    int e = n < 0 ? errno : 0;
    close(fd);
    return e;
}

static int enter(const void *ctx)
{
    const root *r = ctx;
    int e = 0;

    if (r->userns) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
            return errno;
        e = put_file("/proc/self/setgroups", "deny");
        if (e == 0)
            e = put_file("/proc/self/uid_map", r->uid_map);
        if (e == 0)
            e = put_file("/proc/self/gid_map", r->gid_map);
        if (e != 0)
            return e;
    }
    return chroot(r->dir) != 0 || chdir("/") != 0 ? errno : 0;
}

static const char *const inside_env[] = {"PATH=/bin", "HOME=/room", NULL};

static csn_status busybox_exec(void *state, const csn_exec_req *req, const csn_sink *sink,
                               csn_exec_end *ret, csn_error **err)
{
    const csn_test_place place = {
        .env = inside_env, .cwd = "/room", .enter = enter, .enter_ctx = state};

    return csn_test_spawn(&place, req, sink, ret, err);
}

/* ---- making the root -------------------------------------------------------------------- */

static int copy(const char *from, const char *to)
{
    char chunk[65536];
    ssize_t n = -1;

    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = in < 0 ? -1 : open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    while (out >= 0 && (n = read(in, chunk, sizeof(chunk))) > 0)
        if (write(out, chunk, (size_t)n) != n)
            break;
    int e = out >= 0 && n == 0 ? 0 : errno ? errno : EIO;
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    return e;
}

typedef struct applets {
    char text[16384];
    size_t len;
} applets;

static int keep(void *ctx, int stream, const void *data, size_t len)
{
    applets *a = ctx;

    if (stream != CSN_STDOUT || a->len + len >= sizeof(a->text))
        return CSN_SINK_MORE;
    memcpy(a->text + a->len, data, len);
    a->len += len;
    return CSN_SINK_MORE;
}

/* Runs argv inside; true when it exits 0. What it printed is in a. */
static bool run_inside(root *r, const char *const *argv, applets *a)
{
    csn_exec_req req = {
        .size = sizeof(req), .argv = argv, .input_fd = -1, .cancel_fds = {-1, -1}};
    csn_exec_end end = {.size = sizeof(end)};
    const csn_sink sink = {.write = keep, .ctx = a};
    csn_error *err = NULL;

    csn_status st = busybox_exec(r, &req, &sink, &end, &err);
    if (st < 0 || end.how != CSN_END_EXITED || end.exit_code != 0) {
        csn_test_backend_set_why(r->userns ? "no chroot in a user namespace" : "no chroot",
                                 st < 0 ? csn_error_message(err) : end.message);
        csn_error_free(err);
        return false;
    }
    return true;
}

static bool link_applets(root *r)
{
    static const char *const list[] = {"/bin/busybox", "--list", NULL};
    static const char *const probe[] = {"sh", "-c", "exit 0", NULL};
    applets a = {.len = 0};
    char path[4200];
    char *rest = a.text;

    if (!run_inside(r, list, &a))
        return false;
    for (char *name; (name = strsep(&rest, "\n")) != NULL;) {
        if (!name[0] || strcmp(name, "busybox") == 0)
            continue;
        snprintf(path, sizeof(path), "%s/bin/%s", r->dir, name);
        if (symlink("busybox", path) != 0 && errno != EEXIST) {
            csn_test_backend_set_why(path, strerrordesc_np(errno));
            return false;
        }
    }
    return run_inside(r, probe, &a);
}

static bool make_root(root *r)
{
    static const char *const sources[] = {"/bin/busybox", "/usr/bin/busybox"};
    static const struct {
        const char *name;
        mode_t mode;
    } dirs[] = {{"bin", 0755}, {"tmp", 01777}, {"room", 0755}};
    char path[4200];
    int e = ENOENT;

    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", r->dir, dirs[i].name);
        if (mkdir(path, 0755) != 0 || chmod(path, dirs[i].mode) != 0) {
            csn_test_backend_set_why(path, strerrordesc_np(errno));
            return false;
        }
    }
    snprintf(path, sizeof(path), "%s/bin/busybox", r->dir);
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]) && e != 0; i++) {
        errno = 0;
        e = copy(sources[i], path);
    }
    if (e != 0)
        csn_test_backend_set_why("no busybox (Debian: busybox-static)", strerrordesc_np(e));
    return e == 0 && link_applets(r);
}

/* ---- the backend ------------------------------------------------------------------------ */

static csn_status busybox_open(const csn_config *config, const char *id, void *register_data,
                               void **ret_state, csn_error **err)
{
    (void)config;
    (void)id;
    (void)err;
    *ret_state = register_data;
    return CSN_OK;
}

static void busybox_close(void *state)
{
    (void)state;
}

static const csn_backend_ops ops = {
    .size = sizeof(csn_backend_ops),
    .caps = CSN_CAP_USAGE,
    .name = "busybox",
    .isolation = "none",
    .options = CSN_OPTION_WORKSPACE, /* its root */
    .open = busybox_open,
    .close = busybox_close,
    .exec = busybox_exec,
};

const csn_backend_ops *csn_test_busybox_ops(const char *root_dir, void **ret_state)
{
    root *r = calloc(1, sizeof(*r));

    signal(SIGPIPE, SIG_IGN);
    if (!r || !(r->dir = strdup(root_dir))) {
        csn_test_backend_set_why("busybox backend", "out of memory");
        free(r);
        return NULL;
    }
    r->userns = geteuid() != 0;
    snprintf(r->uid_map, sizeof(r->uid_map), "%u %u 1", geteuid(), geteuid());
    snprintf(r->gid_map, sizeof(r->gid_map), "%u %u 1", getegid(), getegid());
    if (!make_root(r)) {
        csn_test_busybox_free(r);
        return NULL;
    }
    *ret_state = r;
    return &ops;
}

void csn_test_busybox_free(void *state)
{
    root *r = state;

    if (r)
        free(r->dir);
    free(r);
}

int csn_test_register_busybox(const char *root_dir)
{
    static void *state; /* for as long as the process lives */
    csn_error *err = NULL;

    const csn_backend_ops *o = csn_test_busybox_ops(root_dir, &state);
    if (o && csn_register_backend(o, state, &err) < 0) {
        csn_test_backend_set_why("busybox backend", csn_error_message(err));
        csn_error_free(err);
        csn_test_busybox_free(state);
        o = NULL;
    }
    return o ? 0 : -1;
}
