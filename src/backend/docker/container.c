/* container.c: creates, connects to, extends and removes containers.
 *
 * Process 1 of a container is the engine's init, which starts the main process. The container
 * ends when the main process ends. In a sandbox that is not detached, the main process ends
 * when its stdin is closed; stdin is a connection of this process, so the container ends even
 * if the owner is killed. A timer ends the container after the lifetime, if there is one. The
 * engine removes ended containers (AutoRemove). Main process and timer run as a dedicated user
 * and commands have no capabilities, so commands cannot signal them.
 *
 * Invariants: create is sent at most once; remove is idempotent. If this process is killed
 * between create and start, a container that never ran is left behind; a later create removes
 * it. */
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
#define STALE_S     600 /* age at which a container that never started counts as abandoned */
#define SWEEP_MS    5000u
#define FOREVER_S   2147483647ull
#define LABEL       "caisson"
#define LABEL_USER  "caisson.user"
#define NAME_PREFIX "caisson-"
#define IMAGE_MAX   255u
#define TIMER_VAR   "CAISSON_TIMER"
#define EXTRA_PIDS  3u /* init, main process, timer */

/* SECONDS; 0: no limit. `&&`: killing the timer does not end the container. */
#define START_TIMER                                                                            \
    "[ \"$1\" = 0 ] || " TIMER_VAR "=1 sh -c 'sleep \"$1\" && kill 1' sh \"$1\" &\n"
static const char main_until_eof[] = START_TIMER "while read -r x; do :; done\n";
static const char main_forever[] = START_TIMER "exec sleep 2147483647\n";
/* SECONDS: kills the old timer and becomes the new one. */
static const char restart_timer[] =
    "for f in $(grep -ls " TIMER_VAR "= /proc/[0-9]*/environ); do\n"
    "  p=${f#/proc/}; p=${p%/environ}; [ \"$p\" = $$ ] || kill \"$p\"; done 2>/dev/null\n"
    "echo ok; exec >/dev/null 2>&1; sleep \"$1\" && kill 1\n";

/* ---- the create request ----------------------------------------------------------------- */

bool csn_docker_image_valid(const char *image)
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

static bool ends_with_owner(const csn_remote *r)
{
    return !csn_remote_shared(r);
}

static bool is_set(uint64_t limit)
{
    return limit != 0 && limit != CSN_NO_LIMIT;
}

static uint64_t lifetime_ms(const csn_config *c)
{
    return is_set(c->lifetime_ms) ? c->lifetime_ms : 0;
}

static uint64_t timer_seconds(uint64_t ms)
{
    uint64_t s = csn_remote_seconds(ms);

    return s < FOREVER_S ? s : FOREVER_S;
}

static void json_limits(csn_json *j, const csn_config *c)
{
    if (is_set(c->memory_max)) {
        csn_json_kuint(j, "Memory", c->memory_max);
        csn_json_kuint(j, "MemorySwap", c->memory_max); /* equal: no swap */
    }
    if (is_set(c->pids_max))
        csn_json_kuint(j, "PidsLimit", c->pids_max + EXTRA_PIDS);
    if (is_set(c->cpu_milli))
        csn_json_kuint(j, "NanoCpus", c->cpu_milli * 1000000u);
    if (is_set(c->disk_max)) { /* an engine without support refuses to create the container */
        char size[24];
        snprintf(size, sizeof(size), "%llu", (unsigned long long)c->disk_max);
        csn_json_key(j, "StorageOpt");
        csn_json_object(j);
        csn_json_kstr(j, "size", size);
        csn_json_object_end(j);
    }
}

static void json_mounts(csn_json *j, const csn_docker *d)
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

static void json_host_config(csn_json *j, const csn_remote *r)
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
    csn_remote_json_strings(j, "CapDrop", all);
    csn_remote_json_strings(j, "SecurityOpt", security);
    csn_json_key(j, "LogConfig");
    csn_json_object(j);
    csn_json_kstr(j, "Type", "none");
    csn_json_object_end(j);
    json_limits(j, c);
    json_mounts(j, csn_docker_of(r));
    csn_json_object_end(j);
}

static void json_labels(csn_json *j, const csn_remote *r)
{
    csn_json_key(j, "Labels");
    csn_json_object(j);
    csn_json_kstr(j, LABEL, r->id);
    csn_json_kstr(j, LABEL_USER, csn_docker_of(r)->user);
    if (r->config->name)
        csn_json_kstr(j, "caisson.name", r->config->name);
    csn_json_object_end(j);
}

static void json_no_healthcheck(csn_json *j)
{
    static const char *const none[] = {"NONE", NULL};

    csn_json_key(j, "Healthcheck");
    csn_json_object(j);
    csn_remote_json_strings(j, "Test", none);
    csn_json_object_end(j);
}

static int create_body(const csn_remote *r, const char *image, csn_buf *b)
{
    char time_s[24];
    const char *const entrypoint[] = {
        "/bin/sh", "-c",   ends_with_owner(r) ? main_until_eof : main_forever,
        "sh",      time_s, NULL};
    const csn_docker *d = csn_docker_of(r);
    csn_json j;

    snprintf(time_s, sizeof(time_s), "%llu",
             (unsigned long long)timer_seconds(lifetime_ms(r->config)));
    csn_json_begin(&j, b);
    csn_json_object(&j);
    csn_json_kstr(&j, "Image", image);
    csn_json_kstr(&j, "User", CSN_DOCKER_MAIN_USER);
    csn_remote_json_strings(&j, "Entrypoint", entrypoint);
    csn_json_kbool(&j, "OpenStdin", ends_with_owner(r));
    csn_json_kbool(&j, "StdinOnce", ends_with_owner(r));
    if (d->has_healthcheck)
        json_no_healthcheck(&j);
    json_labels(&j, r);
    if (d->mount_count > 0)
        csn_json_kstr(&j, "WorkingDir", d->mounts[0].inside);
    else if (d->own_workdir)
        csn_json_kstr(&j, "WorkingDir", CSN_DOCKER_WORKDIR);
    json_host_config(&j, r);
    csn_json_object_end(&j);
    return csn_json_end(&j);
}

/* ---- removing --------------------------------------------------------------------------- */

/* Removes a container by id or name. CSN_OK if there is none. */
static csn_status remove_container(csn_remote *r, const char *name, csn_error **err)
{
    csn_autores res = {0};
    const csn_docker_call c = {.what = "remove the container",
                               .method = "DELETE",
                               .path = "/containers",
                               .id = name,
                               .action = "?force=true&v=true",
                               .retry = CSN_HTTP_IDEMPOTENT,
                               .ignore_stop = true};
    csn_status st = csn_docker_request(r, &c, &res, err);

    /* 409: the engine is removing it already */
    if (st == CSN_OK && res.status / 100 != 2 && res.status != 404 && res.status != 409)
        st = csn_remote_response_error(r, &res, c.what, err);
    return st;
}

csn_status csn_docker_destroy(csn_remote *r, csn_error **err)
{
    csn_docker *d = csn_docker_of(r);

    if (d->stdin_fd >= 0)
        close(csn_steal_fd(&d->stdin_fd));
    return d->container ? remove_container(r, d->container, err) : CSN_OK;
}

/* Removes containers that any caisson process has abandoned. Best effort. */
static void remove_abandoned(csn_remote *r)
{
    static const char path[] = "/containers/json?all=true&filters=%7B%22label%22%3A%5B%22" LABEL
                               "%22%5D%2C%22status%22%3A%5B%22created%22%5D%7D";
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    csn_autores res = {0};
    const csn_docker_call c = {.method = "GET",
                               .path = path,
                               .what = "list",
                               .deadline_ns = csn_deadline_in(SWEEP_MS)};

    if (csn_docker_request(r, &c, &res, NULL) < 0 || res.status != 200 ||
        csn_remote_parse(&res, c.what, &root, NULL) < 0)
        return;
    for (size_t i = 0; i < csn_jval_count(root); i++) {
        const csn_jval *one = csn_jval_at(root, i);
        const char *id = csn_jval_string(csn_jval_get(one, "Id"));
        int64_t created = INT64_MAX / 2;
        if (csn_jget_i64(one, "Created", &created, NULL) == CSN_OK && csn_docker_id_valid(id) &&
            created + STALE_S < csn_wall_ms() / 1000)
            (void)remove_container(r, id, NULL);
    }
}

/* ---- creating --------------------------------------------------------------------------- */

static csn_status no_image(const char *image, csn_error **err)
{
    csn_status st =
        csn_fail(err, CSN_NOT_FOUND, "the container engine has no image '%s'", image);

    return csn_error_advise(st, err, "docker pull %s", image);
}

/* Selects the image's user or, with mounts, the caller's uid, so that new files in the mounts
 * belong to the caller. */
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

/* "/" is what builders record for an image that names no working directory. */
static bool names_workdir(const csn_jval *config)
{
    const char *dir = csn_jval_string(csn_jval_get(config, "WorkingDir"));

    return dir && *dir && strcmp(dir, "/") != 0;
}

/* Checks that the engine has the image; reads its user, working directory and health check. */
static csn_status inspect_image(csn_remote *r, const char *image, csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    csn_autores res = {0};
    const csn_docker_call c = {.what = "inspect the image",
                               .method = "GET",
                               .path = "/images",
                               .id = image,
                               .action = "/json",
                               .retry = CSN_HTTP_IDEMPOTENT};

    csn_status st = csn_docker_request(r, &c, &res, err);
    if (st == CSN_OK && res.status == 404)
        return no_image(image, err);
    if (st == CSN_OK && res.status != 200)
        st = csn_remote_response_error(r, &res, c.what, err);
    if (st == CSN_OK)
        st = csn_remote_parse(&res, c.what, &root, err);
    if (st < 0)
        return st;
    const csn_jval *config = csn_jval_get(root, "Config");
    csn_docker *d = csn_docker_of(r);
    d->has_healthcheck = csn_jval_get(config, "Healthcheck") != NULL;
    d->own_workdir = d->mount_count == 0 && !names_workdir(config);
    return set_user(d, csn_jval_string(csn_jval_get(config, "User")), err);
}

/* Fails if the engine cannot enforce a limit: it returns a warning and creates the container
 * anyway. */
static csn_status check_warnings(const csn_config *c, const csn_jval *root, csn_error **err)
{
    const csn_jval *list = csn_jval_get(root, "Warnings");

    if (!is_set(c->memory_max) && !is_set(c->pids_max) && !is_set(c->cpu_milli))
        return CSN_OK;
    for (size_t i = 0; csn_jval_is_array(list) && i < csn_jval_count(list); i++) {
        const char *text = csn_jval_string(csn_jval_at(list, i));
        if (text && strcasestr(text, "discarded"))
            return csn_fail(err, CSN_UNSUPPORTED,
                            "the container engine cannot enforce a limit: %.300s", text);
    }
    return CSN_OK;
}

static csn_status read_created(csn_remote *r, const csn_http_res *res, csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    csn_docker *d = csn_docker_of(r);
    csn_status st = csn_remote_parse(res, "create a container", &root, err);
    const char *id = csn_jval_string(csn_jval_get(root, "Id"));

    if (st == CSN_OK && !csn_docker_id_valid(id))
        st = csn_fail(err, CSN_IO, "the engine returned no container id");
    if (st == CSN_OK)
        st = check_warnings(r->config, root, err);
    if (st < 0)
        return st;
    return csn_remote_set_string(&d->container, id, err);
}

static csn_status create_error(csn_remote *r, const char *image, const csn_http_res *res,
                               csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;

    if (res->status == 404)
        return no_image(image, err);
    (void)csn_remote_parse(res, "error", &root, NULL);
    const char *message = csn_jval_string(csn_jval_get(root, "message"));
    if (message && r->config->disk_max && strstr(message, "storage-opt"))
        return csn_fail(err, CSN_UNSUPPORTED, "the container engine cannot limit the disk: %s",
                        message);
    return csn_remote_response_error(r, res, "create a container", err);
}

/* If the response is lost, the container is removed by its name, which caisson chooses. */
static csn_status create(csn_remote *r, const char *image, csn_error **err)
{
    char name[128];
    csn_autores res = {0};
    csn_autobuf body;
    const csn_docker_call c = {.what = "create a container",
                               .method = "POST",
                               .path = "/containers/create?name=",
                               .action = name,
                               .body = &body,
                               .retry = CSN_HTTP_ONCE};

    csn_buf_init(&body, BODY_MAX);
    snprintf(name, sizeof(name), NAME_PREFIX "%s", r->id);
    int e = create_body(r, image, &body);
    if (e != 0)
        return csn_fail_errno(err, e, "%s", c.what);
    csn_status st = csn_docker_request(r, &c, &res, err);
    if (st == CSN_OK && res.status / 100 != 2)
        st = create_error(r, image, &res, err);
    else if (st == CSN_OK)
        st = read_created(r, &res, err);
    if (st < 0 && res.sent && res.status / 100 != 4)
        (void)remove_container(r, name, NULL);
    return st;
}

/* Called before the container starts, so that it cannot outlive this process. */
static csn_status attach_stdin(csn_remote *r, csn_error **err)
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
    csn_status st = csn_hijack_open(&q, &res, &d->stdin_fd, err);
    if (st == CSN_OK && d->stdin_fd < 0)
        st = csn_remote_response_error(r, &res, "attach to the container", err);
    return st;
}

static csn_status start_container(csn_remote *r, csn_error **err)
{
    csn_autores res = {0};
    const csn_docker_call c = {.what = "start the container",
                               .method = "POST",
                               .path = "/containers",
                               .id = csn_docker_of(r)->container,
                               .action = "/start",
                               .retry = CSN_HTTP_ONCE};
    csn_status st = csn_docker_request(r, &c, &res, err);

    if (st == CSN_OK && res.status / 100 != 2)
        st = csn_remote_response_error(r, &res, c.what, err);
    return st;
}

/* The engine creates working directories for root. */
static bool is_root(const char *user)
{
    size_t n = strcspn(user, ":");

    return (n == 1 && user[0] == '0') || (n == 4 && strncmp(user, "root", n) == 0);
}

csn_status csn_docker_create(csn_remote *r, csn_error **err)
{
    const char *image = csn_docker_image(r->config);

    remove_abandoned(r);
    csn_status st = inspect_image(r, image, err);
    if (st == CSN_OK)
        st = create(r, image, err);
    if (st < 0)
        return st;
    if (csn_docker_of(r)->own_workdir && !is_root(csn_docker_of(r)->user))
        st = csn_docker_open_workdir(r, err);
    if (st == CSN_OK && ends_with_owner(r))
        st = attach_stdin(r, err);
    if (st == CSN_OK)
        st = start_container(r, err);
    if (st < 0)
        (void)csn_docker_destroy(r, NULL);
    else if (lifetime_ms(r->config))
        csn_remote_expires_in(r, lifetime_ms(r->config));
    return st;
}

/* ---- existing containers ---------------------------------------------------------------- */

int csn_docker_write_record(const csn_remote *r, csn_buf *out)
{
    const csn_docker *d = csn_docker_of(r);

    return csn_buf_printf(out, "%s %lld %s", d->container, (long long)r->expires_ms, d->socket);
}

/* Refuses another engine: it does not have the container and would report the sandbox as
 * gone. */
static csn_status same_engine(const csn_docker *d, const char *socket, csn_error **err)
{
    if (strcmp(socket, d->socket) == 0)
        return CSN_OK;
    csn_status st = csn_fail(err, CSN_UNAVAILABLE,
                             "the sandbox belongs to the container engine at %.200s, not to %s",
                             socket, d->socket);
    return csn_error_advise(st, err, "set DOCKER_HOST to unix://%s", socket);
}

static csn_status read_inspected(csn_remote *r, const csn_http_res *res, csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    csn_docker *d = csn_docker_of(r);
    csn_status st = csn_remote_parse(res, "find the container", &root, err);
    const csn_jval *labels = csn_jval_get(csn_jval_get(root, "Config"), "Labels");
    const char *id = csn_jval_string(csn_jval_get(labels, LABEL));
    const char *user = csn_jval_string(csn_jval_get(labels, LABEL_USER));
    bool running = false;

    if (st == CSN_OK)
        st = csn_jget_bool(csn_jval_get(root, "State"), "Running", &running, err);
    if (st == CSN_OK && (!running || !id || !user || strcmp(id, r->id) != 0))
        st = csn_remote_gone(r, err);
    if (st < 0)
        return st;
    return csn_remote_set_string(&d->user, user, err);
}

/* CSN_GONE: the container does not exist or does not run. */
static csn_status inspect(csn_remote *r, const char *id, csn_error **err)
{
    csn_autores res = {0};
    const csn_docker_call c = {.what = "find the container",
                               .method = "GET",
                               .path = "/containers",
                               .id = id,
                               .action = "/json",
                               .retry = CSN_HTTP_IDEMPOTENT};
    csn_status st = csn_docker_request(r, &c, &res, err);

    if (st < 0)
        return st;
    if (res.status == 404)
        return csn_remote_gone(r, err);
    if (res.status != 200)
        return csn_remote_response_error(r, &res, c.what, err);
    return read_inspected(r, &res, err);
}

bool csn_docker_has_ended(csn_remote *r)
{
    return inspect(r, csn_docker_of(r)->container, NULL) == CSN_GONE;
}

csn_status csn_docker_connect(csn_remote *r, const char *record, csn_error **err)
{
    csn_docker *d = csn_docker_of(r);
    long long expires = 0;
    char id[65] = "";
    int used = 0;

    if (sscanf(record, "%64s %lld %n", id, &expires, &used) != 2 || !csn_docker_id_valid(id))
        return csn_fail(err, CSN_GONE, "the record of sandbox %s is damaged", r->id);
    csn_status st = same_engine(d, record + used, err);
    if (st == CSN_OK)
        st = inspect(r, id, err);
    if (st < 0)
        return st;
    if (expires > csn_wall_ms())
        csn_remote_expires_in(r, (uint64_t)(expires - csn_wall_ms()));
    return csn_remote_set_string(&d->container, id, err);
}

/* Ends the request once the timer has printed "ok". */
static int on_timer_output(void *ctx, int stream, const void *data, size_t len)
{
    bool *ok = ctx;

    *ok = stream == CSN_STDOUT && len >= 2 && memcmp(data, "ok", 2) == 0;
    return 1;
}

csn_status csn_docker_extend(csn_remote *r, uint64_t ms, csn_error **err)
{
    static const char *const env[] = {TIMER_VAR "=1", NULL};
    char time_s[24];
    const char *const argv[] = {"/bin/sh", "-c", restart_timer, "sh", time_s, NULL};
    csn_remote_exit x = {.exit_code = -1};
    bool ok = false;
    const csn_remote_cmd cmd = {.argv = argv,
                                .env = env,
                                .detached = true,
                                .input_fd = -1,
                                .deadline_ns = csn_deadline_in(EXTEND_MS),
                                .cancel_fds = {r->stop_fd, -1, -1},
                                .on_output = on_timer_output,
                                .ctx = &ok};

    snprintf(time_s, sizeof(time_s), "%llu", (unsigned long long)timer_seconds(ms));
    csn_status st = csn_docker_run_as(r, CSN_DOCKER_MAIN_USER, &cmd, &x, err);
    if (st == CSN_OK && !ok)
        st = csn_fail(err, CSN_IO, "the timer of the container cannot be restarted");
    if (st < 0)
        return st;
    csn_remote_expires_in(r, ms);
    return ends_with_owner(r) ? CSN_OK : csn_remote_commit(r, err);
}
