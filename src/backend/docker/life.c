/* life.c: containers are made, found again, given more time and removed.
 *
 * Called by src/remote. A container's first process is the engine's small init; under it is the
 * holder, which does nothing but end: a sandbox that is not detached when its stdin closes,
 * which is a connection of ours (so it ends with the owner, however that ended); any other at
 * the end of its lifetime, if it has one. The engine removes what has ended (AutoRemove). Both
 * run as a user that nothing else inside is, and no command has a capability: they cannot be
 * stopped from inside. What can be left is a container that was made and never started, if we
 * are killed in between: the next one to be made removes it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/docker/docker.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json_write.h"
#include "remote/hijack.h"

#define BODY_MAX    (256u * 1024u)
#define ATTACH_MS   60000u
#define EXTEND_MS   30000u
#define STALE_S     600 /* made so long ago and never started: nobody will */
#define SWEEP_MS    5000u
#define FOREVER_S   2147483647ull
#define LABEL       "caisson"
#define LABEL_USER  "caisson.user"
#define NAME_PREFIX "caisson-"
#define IMAGE_MAX   255u
#define TIMER       "CAISSON_TIMER"
#define PIDS_OURS   3u /* init, holder, timer */

/* SECONDS: 0 for no limit. `&&`: a sleep that is killed ends nothing. */
#define COUNT_DOWN "[ \"$1\" = 0 ] || " TIMER "=1 sh -c 'sleep \"$1\" && kill 1' sh \"$1\" &\n"
static const char hold_tied[] = COUNT_DOWN "while read -r x; do :; done\n";
static const char hold_alone[] = COUNT_DOWN "exec sleep 2147483647\n";
/* SECONDS: the new timer runs before the old one is ended. */
static const char count_anew[] =
    "for f in $(grep -ls " TIMER "= /proc/[0-9]*/environ); do\n"
    "  p=${f#/proc/}; p=${p%/environ}; [ \"$p\" = $$ ] || kill \"$p\"; done 2>/dev/null\n"
    "echo ok; exec >/dev/null 2>&1; sleep \"$1\" && kill 1\n";

/* ---- what is asked for ------------------------------------------------------------------ */

bool csn_docker_image_fits(const char *image)
{
    size_t n = strspn(image, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                             "._-/:@");

    return n > 0 && image[n] == '\0' && n <= IMAGE_MAX && !strstr(image, "..");
}

const char *csn_docker_image(const csn_config *c)
{
    const char *named = getenv("CAISSON_DOCKER_IMAGE");

    return c->image ? c->image : named && *named ? named : NULL;
}

static bool tied(const csn_remote *r)
{
    return !r->found && !(r->config->flags & CSN_OPEN_DETACHED);
}

static bool set(uint64_t limit)
{
    return limit != 0 && limit != CSN_NO_LIMIT;
}

static uint64_t lifetime(const csn_config *c)
{
    return set(c->lifetime_ms) ? c->lifetime_ms : 0;
}

static uint64_t seconds(uint64_t ms)
{
    uint64_t s = ms / 1000 + (ms % 1000 != 0);

    return s < FOREVER_S ? s : FOREVER_S;
}

static void put_words(csn_json *j, const char *key, const char *const *words)
{
    csn_json_key(j, key);
    csn_json_array(j);
    for (size_t i = 0; words[i]; i++)
        csn_json_str(j, words[i]);
    csn_json_array_end(j);
}

static void put_limits(csn_json *j, const csn_config *c)
{
    if (set(c->memory_max)) {
        csn_json_kuint(j, "Memory", c->memory_max);
        csn_json_kuint(j, "MemorySwap", c->memory_max); /* both together: no swap */
    }
    if (set(c->pids_max))
        csn_json_kuint(j, "PidsLimit", c->pids_max + PIDS_OURS);
    if (set(c->cpu_milli))
        csn_json_kuint(j, "NanoCpus", c->cpu_milli * 1000000u);
    if (set(c->disk_max)) { /* an engine that cannot refuses */
        char size[24];
        snprintf(size, sizeof(size), "%llu", (unsigned long long)c->disk_max);
        csn_json_key(j, "StorageOpt");
        csn_json_object(j);
        csn_json_kstr(j, "size", size);
        csn_json_object_end(j);
    }
}

static void put_mounts(csn_json *j, const csn_docker *d)
{
    csn_json_key(j, "Mounts");
    csn_json_array(j);
    for (size_t i = 0; i < d->mount_count; i++) {
        csn_json_object(j);
        csn_json_kstr(j, "Type", "bind");
        csn_json_kstr(j, "Source", d->mounts[i].host);
        csn_json_kstr(j, "Target", d->mounts[i].inside);
        csn_json_kbool(j, "ReadOnly", !d->mounts[i].writable);
        csn_json_object_end(j);
    }
    csn_json_array_end(j);
}

static void put_host_config(csn_json *j, const csn_remote *r)
{
    static const char *const all[] = {"ALL", NULL};
    static const char *const security[] = {"no-new-privileges", NULL};
    const csn_config *c = r->config;
    bool open = c->network && strcmp(c->network, "all") == 0;

    csn_json_key(j, "HostConfig");
    csn_json_object(j);
    csn_json_kbool(j, "Init", true);
    csn_json_kbool(j, "AutoRemove", true);
    csn_json_kbool(j, "Privileged", false);
    csn_json_kstr(j, "NetworkMode", open ? "bridge" : "none");
    put_words(j, "CapDrop", all);
    put_words(j, "SecurityOpt", security);
    csn_json_key(j, "LogConfig");
    csn_json_object(j);
    csn_json_kstr(j, "Type", "none");
    csn_json_object_end(j);
    put_limits(j, c);
    put_mounts(j, csn_docker_of(r));
    csn_json_object_end(j);
}

static void put_labels(csn_json *j, const csn_remote *r)
{
    csn_json_key(j, "Labels");
    csn_json_object(j);
    csn_json_kstr(j, LABEL, r->id);
    csn_json_kstr(j, LABEL_USER, csn_docker_of(r)->user);
    if (r->config->name)
        csn_json_kstr(j, "caisson.name", r->config->name);
    csn_json_object_end(j);
}

static void put_no_check(csn_json *j)
{
    static const char *const none[] = {"NONE", NULL};

    csn_json_key(j, "Healthcheck");
    csn_json_object(j);
    put_words(j, "Test", none);
    csn_json_object_end(j);
}

static int put_create(const csn_remote *r, const char *image, csn_buf *b)
{
    char time[24];
    const char *const holder[] = {"/bin/sh", "-c", tied(r) ? hold_tied : hold_alone,
                                  "sh",      time, NULL};
    const csn_docker *d = csn_docker_of(r);
    csn_json j;

    snprintf(time, sizeof(time), "%llu", (unsigned long long)seconds(lifetime(r->config)));
    csn_json_begin(&j, b);
    csn_json_object(&j);
    csn_json_kstr(&j, "Image", image);
    csn_json_kstr(&j, "User", CSN_DOCKER_HOLDER);
    put_words(&j, "Entrypoint", holder);
    csn_json_kbool(&j, "OpenStdin", tied(r));
    csn_json_kbool(&j, "StdinOnce", tied(r));
    if (d->has_check)
        put_no_check(&j);
    put_labels(&j, r);
    if (d->mount_count > 0)
        csn_json_kstr(&j, "WorkingDir", d->mounts[0].inside);
    put_host_config(&j, r);
    csn_json_object_end(&j);
    return csn_json_end(&j);
}

/* ---- removing --------------------------------------------------------------------------- */

/* `which`: an id or a name that is ours. Not there: CSN_OK. */
static csn_status remove_container(csn_remote *r, const char *which, csn_error **err)
{
    csn_autores res = {0};
    csn_autofree char *path = NULL;
    csn_docker_call c = {.method = "DELETE",
                         .what = "remove the container",
                         .repeat = CSN_HTTP_SAFE,
                         .always = true};

    if (asprintf(&path, "/containers/%s?force=true&v=true", which) < 0) {
        path = NULL;
        return csn_fail(err, CSN_NOMEM, "%s", c.what);
    }
    c.path = path;
    csn_status st = csn_docker_do(r, &c, &res, err);
    /* 409: it is being removed by somebody else */
    if (st == CSN_OK && res.status / 100 != 2 && res.status != 404 && res.status != 409)
        st = csn_docker_refused(r, &res, c.what, err);
    return st;
}

csn_status csn_docker_end(csn_remote *r, csn_error **err)
{
    csn_docker *d = csn_docker_of(r);

    if (d->tie >= 0)
        close(csn_steal_fd(&d->tie));
    return d->container ? remove_container(r, d->container, err) : CSN_OK;
}

/* Those of ours, whoever's, that were made and never started. Only a courtesy. */
static void sweep(csn_remote *r)
{
    static const char path[] = "/containers/json?all=true&filters=%7B%22label%22%3A%5B%22" LABEL
                               "%22%5D%2C%22status%22%3A%5B%22created%22%5D%7D";
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    csn_autores res = {0};
    const csn_docker_call c = {.method = "GET",
                               .path = path,
                               .what = "list",
                               .deadline_ns = csn_deadline_in(SWEEP_MS)};

    if (csn_docker_do(r, &c, &res, NULL) < 0 || res.status != 200 ||
        csn_docker_json(&res, c.what, &root, NULL) < 0)
        return;
    for (size_t i = 0; i < csn_jval_count(root); i++) {
        const csn_jval *one = csn_jval_at(root, i);
        const char *id = csn_jval_string(csn_jval_get(one, "Id"));
        int64_t made = INT64_MAX / 2;
        if (csn_jget_i64(one, "Created", &made, NULL) == CSN_OK && csn_docker_id_fits(id) &&
            made + STALE_S < csn_wall_ms() / 1000)
            (void)remove_container(r, id, NULL);
    }
}

/* ---- making ----------------------------------------------------------------------------- */

static csn_status no_image(const char *image, csn_error **err)
{
    csn_status st =
        csn_fail(err, CSN_NOT_FOUND, "the container engine has no image '%s'", image);

    return csn_error_advise(st, err, "docker pull %s", image);
}

/* The image's user, but for shared directories the caller: files there stay the caller's. */
static csn_status set_user(csn_docker *d, const char *of_image, csn_error **err)
{
    free(d->user);
    d->user = NULL;
    if (d->mount_count == 0)
        d->user = strdup(of_image && *of_image ? of_image : "0");
    else if (asprintf(&d->user, "%u:%u", (unsigned)getuid(), (unsigned)getgid()) < 0)
        d->user = NULL;
    return d->user ? CSN_OK : csn_fail(err, CSN_NOMEM, "open");
}

/* Is it there, and what does it say of itself? */
static csn_status ask_image(csn_remote *r, const char *image, csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    csn_autores res = {0};
    char path[IMAGE_MAX + 32];
    const csn_docker_call c = {
        .method = "GET", .path = path, .what = "look for the image", .repeat = CSN_HTTP_SAFE};

    snprintf(path, sizeof(path), "/images/%s/json", image);
    csn_status st = csn_docker_do(r, &c, &res, err);
    if (st == CSN_OK && res.status == 404)
        return no_image(image, err);
    if (st == CSN_OK && res.status != 200)
        st = csn_docker_refused(r, &res, c.what, err);
    if (st == CSN_OK)
        st = csn_docker_json(&res, c.what, &root, err);
    if (st < 0)
        return st;
    const csn_jval *config = csn_jval_get(root, "Config");
    csn_docker_of(r)->has_check = csn_jval_get(config, "Healthcheck") != NULL;
    return set_user(csn_docker_of(r), csn_jval_string(csn_jval_get(config, "User")), err);
}

/* An engine that cannot limit says so in passing, and makes the container all the same. */
static csn_status check_warnings(const csn_config *c, const csn_jval *root, csn_error **err)
{
    const csn_jval *list = csn_jval_get(root, "Warnings");

    if (!set(c->memory_max) && !set(c->pids_max) && !set(c->cpu_milli))
        return CSN_OK;
    for (size_t i = 0; csn_jval_is_array(list) && i < csn_jval_count(list); i++) {
        const char *text = csn_jval_string(csn_jval_at(list, i));
        if (text && strcasestr(text, "discarded"))
            return csn_fail(err, CSN_UNSUPPORTED, "the container engine cannot limit: %.300s",
                            text);
    }
    return CSN_OK;
}

static csn_status take_container(csn_remote *r, const csn_http_res *res, csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    csn_docker *d = csn_docker_of(r);
    csn_status st = csn_docker_json(res, "make a container", &root, err);
    const char *id = csn_jval_string(csn_jval_get(root, "Id"));

    if (st == CSN_OK && !csn_docker_id_fits(id))
        st = csn_fail(err, CSN_IO, "the engine names no container");
    if (st == CSN_OK)
        st = check_warnings(r->config, root, err);
    if (st < 0)
        return st;
    free(d->container);
    d->container = strdup(id);
    return d->container ? CSN_OK : csn_fail(err, CSN_NOMEM, "open");
}

static csn_status create_refused(csn_remote *r, const char *image, const csn_http_res *res,
                                 csn_error **err)
{
    csn_autofree char *said = csn_docker_words(res);

    if (res->status == 404)
        return no_image(image, err);
    if (said && r->config->disk_max && strstr(said, "storage-opt"))
        return csn_fail(err, CSN_UNSUPPORTED, "the container engine cannot limit the disk: %s",
                        said);
    return csn_docker_refused(r, res, "make a container", err);
}

/* The name is known before the id: by it the container is found if the answer is lost. */
static csn_status create(csn_remote *r, const char *image, csn_error **err)
{
    csn_autofree char *path = NULL;
    csn_autores res = {0};
    csn_autobuf body;
    csn_docker_call c = {
        .method = "POST", .what = "make a container", .body = &body, .repeat = CSN_HTTP_ONCE};

    csn_buf_init(&body, BODY_MAX);
    int e = put_create(r, image, &body);
    if (e == 0 && asprintf(&path, "/containers/create?name=" NAME_PREFIX "%s", r->id) < 0) {
        path = NULL;
        e = ENOMEM;
    }
    if (e != 0)
        return csn_fail_errno(err, e, "%s", c.what);
    c.path = path;
    csn_status st = csn_docker_do(r, &c, &res, err);
    if (st == CSN_OK && res.status / 100 != 2)
        st = create_refused(r, image, &res, err);
    else if (st == CSN_OK)
        st = take_container(r, &res, err);
    if (st < 0 && res.sent && res.status / 100 != 4)
        (void)remove_container(r, strstr(path, NAME_PREFIX), NULL);
    return st;
}

/* Before it starts: then there is no moment in which it would outlive us. */
static csn_status tie(csn_remote *r, csn_error **err)
{
    csn_docker *d = csn_docker_of(r);
    const int32_t stop[] = {r->stop_fd};
    csn_autores res = {0};
    char path[128];
    const csn_hijack_req q = {.unix_path = d->socket,
                              .path = path,
                              .input_fd = -1,
                              .deadline_ns = csn_deadline_in(ATTACH_MS),
                              .cancel_fds = stop,
                              .cancel_count = 1};

    snprintf(path, sizeof(path), "/containers/%.64s/attach?stream=true&stdin=true",
             d->container);
    csn_status st = csn_hijack_open(&q, &res, &d->tie, err);
    if (st == CSN_OK && d->tie < 0)
        st = csn_docker_refused(r, &res, "attach to the container", err);
    return st;
}

static csn_status start(csn_remote *r, csn_error **err)
{
    csn_autores res = {0};
    char path[128];
    const csn_docker_call c = {
        .method = "POST", .path = path, .what = "start the container", .repeat = CSN_HTTP_ONCE};

    snprintf(path, sizeof(path), "/containers/%.64s/start", csn_docker_of(r)->container);
    csn_status st = csn_docker_do(r, &c, &res, err);
    if (st == CSN_OK && res.status / 100 != 2)
        st = csn_docker_refused(r, &res, c.what, err);
    return st;
}

csn_status csn_docker_make(csn_remote *r, csn_error **err)
{
    const char *image = csn_docker_image(r->config);

    sweep(r);
    csn_status st = ask_image(r, image, err);
    if (st == CSN_OK)
        st = create(r, image, err);
    if (st < 0)
        return st;
    if (tied(r))
        st = tie(r, err);
    if (st == CSN_OK)
        st = start(r, err);
    if (st < 0)
        (void)csn_docker_end(r, NULL);
    else if (lifetime(r->config))
        csn_remote_expires_in(r, lifetime(r->config));
    return st;
}

/* ---- one that is there ------------------------------------------------------------------ */

int csn_docker_note(const csn_remote *r, csn_buf *out)
{
    const csn_docker *d = csn_docker_of(r);

    return csn_buf_printf(out, "%s %lld %s", d->container, (long long)r->expires_ms, d->socket);
}

/* Another engine would say that there is no such container, and be believed. */
static csn_status same_engine(const csn_docker *d, const char *socket, csn_error **err)
{
    if (strcmp(socket, d->socket) == 0)
        return CSN_OK;
    csn_status st = csn_fail(err, CSN_UNAVAILABLE,
                             "the sandbox is of the container engine at %.200s, and %s is "
                             "another",
                             socket, d->socket);
    return csn_error_advise(st, err, "set DOCKER_HOST to unix://%s", socket);
}

static csn_status take_inspected(csn_remote *r, const csn_http_res *res, csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    csn_docker *d = csn_docker_of(r);
    csn_status st = csn_docker_json(res, "find the container", &root, err);
    const csn_jval *labels = csn_jval_get(csn_jval_get(root, "Config"), "Labels");
    const char *ours = csn_jval_string(csn_jval_get(labels, LABEL));
    const char *user = csn_jval_string(csn_jval_get(labels, LABEL_USER));
    bool running = false;

    if (st == CSN_OK)
        st = csn_jget_bool(csn_jval_get(root, "State"), "Running", &running, err);
    if (st == CSN_OK && (!running || !ours || !user || strcmp(ours, r->id) != 0))
        st = csn_fail(err, CSN_GONE, "sandbox %s has ended", r->id);
    if (st < 0)
        return st;
    free(d->user);
    d->user = strdup(user);
    return d->user ? CSN_OK : csn_fail(err, CSN_NOMEM, "open");
}

csn_status csn_docker_find(csn_remote *r, const char *note, csn_error **err)
{
    csn_docker *d = csn_docker_of(r);
    csn_autores res = {0};
    long long expires = 0;
    char id[65] = "", path[128];
    int used = 0;
    const csn_docker_call c = {
        .method = "GET", .path = path, .what = "find the container", .repeat = CSN_HTTP_SAFE};

    if (sscanf(note, "%64s %lld %n", id, &expires, &used) != 2 || !csn_docker_id_fits(id))
        return csn_fail(err, CSN_GONE, "what is on record is not the id of a container");
    csn_status st = same_engine(d, note + used, err);
    if (st < 0)
        return st;
    snprintf(path, sizeof(path), "/containers/%s/json", id);
    st = csn_docker_do(r, &c, &res, err);
    if (st == CSN_OK && res.status == 404)
        return csn_fail(err, CSN_GONE, "sandbox %s has ended", r->id);
    if (st == CSN_OK && res.status != 200)
        st = csn_docker_refused(r, &res, c.what, err);
    if (st == CSN_OK)
        st = take_inspected(r, &res, err);
    if (st < 0)
        return st;
    free(d->container);
    d->container = strdup(id);
    if (expires > csn_wall_ms())
        csn_remote_expires_in(r, (uint64_t)(expires - csn_wall_ms()));
    return d->container ? CSN_OK : csn_fail(err, CSN_NOMEM, "open");
}

/* The timer says one word, and is then left alone. */
static int hear_ok(void *ctx, int stream, const void *data, size_t len)
{
    bool *ok = ctx;

    *ok = stream == CSN_STDOUT && len >= 2 && memcmp(data, "ok", 2) == 0;
    return 1;
}

csn_status csn_docker_extend(csn_remote *r, uint64_t ms, csn_error **err)
{
    static const char *const env[] = {TIMER "=1", NULL};
    char time[24];
    const char *const argv[] = {"/bin/sh", "-c", count_anew, "sh", time, NULL};
    csn_remote_exit x = {.exit_code = -1};
    bool ok = false;
    const csn_remote_cmd cmd = {.argv = argv,
                                .env = env,
                                .let_go = true,
                                .input_fd = -1,
                                .deadline_ns = csn_deadline_in(EXTEND_MS),
                                .cancel_fds = {r->stop_fd, -1, -1},
                                .on_output = hear_ok,
                                .ctx = &ok};

    snprintf(time, sizeof(time), "%llu", (unsigned long long)seconds(ms));
    csn_status st = csn_docker_run_as(r, CSN_DOCKER_HOLDER, &cmd, &x, err);
    if (st == CSN_OK && !ok)
        st = csn_fail(err, CSN_IO, "the container does not count anew");
    if (st < 0)
        return st;
    csn_remote_expires_in(r, ms);
    return tied(r) ? CSN_OK : csn_remote_commit(r, err);
}
