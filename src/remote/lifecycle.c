/* lifecycle.c: creates, connects, records and destroys remote sandboxes.
 *
 * The core opens a lazy backend exactly once and retries a failed opening with a new state.
 * Invariants: a failed opening destroys the sandbox that it created; destroy is idempotent; a
 * record that was removed is never written again. A sandbox that is not detached is destroyed
 * with its handle; if the owning process is killed, the provider ends the sandbox after its
 * lifetime. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "os/statedir.h"
#include "remote/base64_stream.h"
#include "remote/internal.h"

#define PROBE_MS   60000u
#define RECORD_MAX (256u * 1024u)

static void remote_free(csn_remote *r)
{
    if (!r)
        return;
    if (r->provider->release)
        r->provider->release(r);
    csn_http_free(r->http);
    pthread_mutex_destroy(&r->lock);
    free(r->id);
    free(r->workdir);
    free(r->home);
    free(r->arch);
    free(r->rg_path);
    free(r);
}
CSN_DEFINE_CLEANUP(csn_remote, remote_free)

csn_status csn_remote_new(const csn_remote_provider *provider, const csn_config *config,
                          const char *id, const char *unix_path, bool connect, void **ret_state,
                          csn_error **err)
{
    CSN_CLEANUP(remote_freep) csn_remote *r = calloc(1, sizeof(*r));

    if (!r)
        return csn_fail(err, CSN_NOMEM, "open");
    r->provider = provider;
    r->config = config;
    r->stop_fd = -1;
    r->connected = connect;
    pthread_mutex_init(&r->lock, NULL);
    r->id = strdup(id);
    if (!r->id)
        return csn_fail(err, CSN_NOMEM, "open");
    csn_status st = csn_http_new("caisson", unix_path, &r->http, err);
    if (st == CSN_OK)
        *ret_state = CSN_STEAL(r);
    return st;
}

csn_status csn_remote_open(const csn_remote_provider *provider, const csn_config *config,
                           const char *id, bool connect, void **ret_state, csn_error **err)
{
    void *state = NULL;
    csn_status st = csn_remote_new(provider, config, id, NULL, connect, &state, err);

    if (st == CSN_OK)
        st = provider->configure(state, err);
    if (st < 0)
        csn_remote_close(state);
    else
        *ret_state = state;
    return st;
}

void csn_remote_set_stop_fd(void *state, int32_t stop_fd)
{
    csn_remote *r = state;

    r->stop_fd = stop_fd;
}

/* ---- probing ---------------------------------------------------------------------------- */

/* Prints working directory, home, architecture and ripgrep, each followed by NUL; then the
 * output of the script $1. */
static const char probe_script[] =
    "pwd -P | tr -d '\\n'; printf '\\000%s\\000%s\\000%s\\000' \"$HOME\" "
    "\"$(uname -m)\" \"$(command -v rg)\"\neval \"$1\"\n";

static char *next_field(const csn_buf *b, size_t *at)
{
    const char *start = b->data + *at;
    const char *end = *at < b->len ? memchr(start, '\0', b->len - *at) : NULL;

    if (!end)
        return NULL;
    *at += (size_t)(end - start) + 1;
    return strdup(start);
}

static void discard_unless_absolute(char **path)
{
    if ((*path)[0] != '/')
        free(CSN_STEAL(*path));
}

static csn_status probe_sandbox(csn_remote *r, csn_error **err)
{
    bool text = (r->provider->flags & CSN_REMOTE_TEXT_ONLY) != 0;
    const char *const args[] = {text ? csn_base64_stream_probe : "", NULL};
    const csn_remote_script s = {.text = probe_script,
                                 .args = args,
                                 .deadline_ns = csn_deadline_in(PROBE_MS),
                                 .read_only = true};
    csn_autobuf out;
    size_t at = 0;
    int code = -1;

    csn_buf_init(&out, 4 * (size_t)CSN_PATH_MAX);
    csn_status st = csn_remote_run_script(r, &s, &out, &code, err);
    if (st < 0)
        return st;
    r->workdir = next_field(&out, &at);
    r->home = next_field(&out, &at);
    r->arch = next_field(&out, &at);
    r->rg_path = next_field(&out, &at);
    if (!r->workdir || r->workdir[0] != '/' || !r->home || !r->arch || !r->rg_path)
        return csn_fail(err, CSN_UNAVAILABLE,
                        "/bin/sh of the sandbox does not work: no answer to the probe");
    if (text && strcmp(out.data + at, "265\n") != 0)
        return csn_fail(err, CSN_UNSUPPORTED,
                        "awk of the sandbox cannot tell a signal from an exit code");
    discard_unless_absolute(&r->home);
    discard_unless_absolute(&r->rg_path);
    return CSN_OK;
}

/* ---- the record ------------------------------------------------------------------------- */

int csn_remote_record_dir(const csn_remote *r, bool create)
{
    csn_autofree char *sub = NULL;

    if (asprintf(&sub, "sandboxes/%s", r->id) < 0) {
        sub = NULL;
        return -ENOMEM;
    }
    return create ? csn_statedir_open(CSN_DIR_STATE, sub, NULL)
                  : csn_statedir_find(CSN_DIR_STATE, sub, NULL);
}

csn_status csn_remote_read_record(csn_remote *r, csn_buf *out, csn_error **err)
{
    csn_autofd int dir = csn_remote_record_dir(r, false);
    csn_autofd int fd = dir < 0 ? -1 : openat(dir, CSN_STATE_NOTE, O_RDONLY | O_CLOEXEC);
    char buf[4096];
    ssize_t n = -1;

    csn_buf_init(out, RECORD_MAX);
    while (fd >= 0 && (n = read(fd, buf, sizeof(buf))) > 0)
        if (csn_buf_append(out, buf, (size_t)n) != 0)
            return csn_fail(err, CSN_IO, "the record of '%s' is too long", r->id);
    if (fd < 0 || n < 0 || out->len == 0)
        return csn_fail(err, CSN_GONE, "sandbox '%s' has no record of where it runs", r->id);
    r->recorded = true;
    return CSN_OK;
}

/* If the record was written before and is missing now, the sandbox has been destroyed. */
csn_status csn_remote_commit(void *state, csn_error **err)
{
    csn_remote *r = state;
    csn_autobuf text;
    char tmp[64];

    csn_buf_init(&text, RECORD_MAX);
    int e = r->provider->write_record(r, &text);
    csn_autofd int dir = csn_remote_record_dir(r, !r->recorded);
    if (e == 0 && dir == -ENOENT)
        return csn_fail(err, CSN_GONE, "sandbox '%s' has been destroyed", r->id);
    if (e != 0 || dir < 0)
        return csn_fail_errno(err, e ? e : -dir, "record of '%s'", r->id);
    snprintf(tmp, sizeof(tmp), "." CSN_STATE_NOTE ".%ld", (long)gettid());
    csn_autofd int fd = openat(dir, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, text.data, text.len) != (ssize_t)text.len ||
        renameat(dir, tmp, dir, CSN_STATE_NOTE) < 0) {
        e = errno;
        unlinkat(dir, tmp, 0);
        return csn_fail_errno(err, e, "record of '%s'", r->id);
    }
    r->recorded = true;
    return CSN_OK;
}

/* ---- opening and ending ----------------------------------------------------------------- */

static csn_status create_or_connect(csn_remote *r, csn_error **err)
{
    csn_autobuf text;

    csn_buf_init(&text, RECORD_MAX);
    csn_status st = r->connected ? csn_remote_read_record(r, &text, err) : CSN_OK;
    if (st == CSN_OK)
        st = r->connected ? r->provider->connect(r, text.data, err)
                          : r->provider->create(r, err);
    if (st < 0)
        return csn_wrap(st, err, "%s a sandbox of '%s'", r->connected ? "connect to" : "create",
                        r->provider->name);
    r->exists = true;
    st = probe_sandbox(r, err);
    if (st < 0)
        return csn_wrap(st, err, "probe the sandbox");
    csn_remote_install_ripgrep(r);
    return CSN_OK;
}

/* Needs no lock: no other thread has the state yet. */
csn_status csn_remote_ready(void *state, csn_error **err)
{
    return create_or_connect(state, err);
}

csn_status csn_remote_destroy(void *state, csn_error **err)
{
    csn_remote *r = state;

    pthread_mutex_lock(&r->lock);
    bool first = r->exists && !r->destroyed;
    r->destroyed = true;
    pthread_mutex_unlock(&r->lock);
    csn_status st = first ? r->provider->destroy(r, err) : CSN_OK;
    if (st == CSN_OK)
        return st;
    pthread_mutex_lock(&r->lock);
    r->destroyed = false; /* csn_remote_close tries again */
    pthread_mutex_unlock(&r->lock);
    return csn_wrap(st, err, "destroy the sandbox");
}

/* A sandbox that is unknown to the server is destroyed nevertheless, but a 404 proves nothing:
 * the error says so and the record stays. */
static csn_status destroy_recorded(csn_remote *r, csn_error **err)
{
    csn_error *why = NULL;
    csn_autobuf text;

    csn_buf_init(&text, RECORD_MAX);
    csn_status st = csn_remote_read_record(r, &text, err);
    if (st == CSN_OK)
        st = r->provider->connect(r, text.data, err);
    if (st != CSN_OK && st != CSN_NOT_FOUND)
        return st;
    csn_status ended = r->provider->destroy(r, &why);
    if (ended == CSN_OK)
        return st == CSN_OK ? st : csn_wrap(CSN_UNAVAILABLE, err, "destroy the sandbox");
    if (err) {
        csn_error_free(*err);
        *err = CSN_STEAL(why);
    }
    csn_error_free(why);
    return ended;
}

csn_status csn_remote_force_destroy(const csn_remote_provider *provider,
                                    const csn_config *config, const char *id, csn_error **err)
{
    void *state = NULL;
    csn_status st = csn_remote_open(provider, config, id, true, &state, err);

    if (st == CSN_OK)
        st = destroy_recorded(state, err);
    csn_remote_close(state);
    return st;
}

void csn_remote_close(void *state)
{
    csn_remote *r = state;

    if (!r)
        return;
    if (!csn_remote_shared(r))
        (void)csn_remote_destroy(r, NULL);
    remote_free(r);
}

csn_status csn_remote_extend(void *state, uint64_t ms, csn_error **err)
{
    csn_remote *r = state;

    return csn_wrap(r->provider->extend(r, ms, err), err, "extend");
}

csn_status csn_remote_info(void *state, csn_info_result *ret, csn_error **err)
{
    csn_remote *r = state;
    csn_status st = r->exists ? CSN_OK : create_or_connect(r, err);

    if (st < 0)
        return st;
    if (!ret->layers) {
        ret->layers = r->provider->layers;
        ret->layer_count = r->provider->layer_count;
    }
    ret->workdir = r->workdir;
    ret->home = r->home;
    ret->rg_path = r->rg_path;
    pthread_mutex_lock(&r->lock);
    ret->expires_ms = r->expires_ms;
    pthread_mutex_unlock(&r->lock);
    return CSN_OK;
}
