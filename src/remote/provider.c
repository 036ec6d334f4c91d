/* provider.c: helper functions for several providers.
 *
 * Environment, JSON, error mapping, uploads and the state of a response stream. Servers are not
 * trusted: their messages are printed escaped and truncated. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/path.h"
#include "remote/remote.h"

#define ID_MAX 128u

/* ---- strings ---------------------------------------------------------------------------- */

const char *csn_remote_getenv(const char *name)
{
    const char *v = getenv(name);

    return v && *v ? v : NULL;
}

csn_status csn_remote_set_string(char **field, const char *value, csn_error **err)
{
    char *copy = value ? strdup(value) : NULL;

    if (value && !copy)
        return csn_fail(err, CSN_NOMEM, "remote sandbox");
    free(*field);
    *field = copy;
    return CSN_OK;
}

char *csn_remote_trim_url(const char *url)
{
    size_t len = strlen(url);

    while (len > 0 && url[len - 1] == '/')
        len--;
    return strndup(url, len);
}

bool csn_remote_id_valid(const char *id)
{
    size_t n =
        id ? strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") : 0;

    return n > 0 && id[n] == '\0' && n <= ID_MAX;
}

bool csn_remote_header_valid(const char *text)
{
    for (; text && *text; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

char *csn_remote_basic_auth(const char *user)
{
    csn_autofree char *pair = NULL, *base64 = NULL;
    char *header = NULL;

    if (asprintf(&pair, "%s:", user) < 0)
        pair = NULL;
    base64 = pair ? malloc(csn_base64_size(strlen(pair)) + 1) : NULL;
    if (!base64)
        return NULL;
    csn_base64_encode(pair, strlen(pair), base64);
    return asprintf(&header, "Authorization: Basic %s", base64) < 0 ? NULL : header;
}

int csn_remote_random_id(char id[32])
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    unsigned char raw[20];

    if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
        return errno;
    for (size_t i = 0; i < sizeof(raw); i++)
        id[i] = digits[raw[i] % 36];
    id[sizeof(raw)] = '\0';
    return 0;
}

/* ---- JSON ------------------------------------------------------------------------------- */

void csn_remote_json_strings(csn_json *j, const char *key, const char *const *list)
{
    csn_json_key(j, key);
    csn_json_array(j);
    for (size_t i = 0; list && list[i]; i++)
        csn_json_str(j, list[i]);
    csn_json_array_end(j);
}

void csn_remote_json_env(csn_json *j, const char *const *env)
{
    csn_json_object(j);
    for (size_t i = 0; env && env[i]; i++) {
        size_t name = strcspn(env[i], "=");
        csn_autofree char *key = strndup(env[i], name);
        bool repeated = false;
        for (size_t k = i + 1; env[k] && !repeated; k++)
            repeated = strncmp(env[k], env[i], name + 1) == 0;
        if (key && !repeated)
            csn_json_kstr(j, key, env[i] + name + 1);
        j->err = key ? j->err : ENOMEM;
    }
    csn_json_object_end(j);
}

csn_status csn_remote_parse(const csn_http_res *res, const char *what, csn_jval **ret,
                            csn_error **err)
{
    csn_status st =
        csn_json_parse(res->body.len ? res->body.data : "", res->body.len, what, ret, err);

    return st == CSN_INVALID ? csn_wrap(CSN_IO, err, "the response is not JSON") : st;
}

/* ---- errors ----------------------------------------------------------------------------- */

static csn_status status_code(int status)
{
    switch (status) {
    case 400:
    case 422:
        return CSN_INVALID;
    case 401:
        return CSN_AUTH;
    case 403:
        return CSN_DENIED;
    case 404:
        return CSN_NOT_FOUND;
    case 409:
        return CSN_CONFLICT;
    case 410:
        return CSN_GONE;
    case 413:
        return CSN_TOO_LARGE;
    default:
        return status == 429 || status >= 500 ? CSN_UNAVAILABLE : CSN_IO;
    }
}

csn_status csn_remote_http_error(const csn_remote *r, int status, const char *what,
                                 const char *message, csn_error **err)
{
    csn_autofree char *printable = message ? csn_path_printable(message) : NULL;
    const char *colon = printable ? ": " : "", *text = printable ? printable : "";
    const char *name = r->provider->name;
    csn_status st = status_code(status);

    if (status == 507)
        return csn_fail_errno(err, ENOSPC, "%s", what);
    if (st == CSN_AUTH) {
        st = csn_fail(err, st, "%s: '%s' rejected the credential%s%.300s", what, name, colon,
                      text);
        return csn_error_advise(st, err, "check %s", r->provider->credentials[0]);
    }
    if (status == 429)
        return csn_fail(err, st, "%s: '%s' has received too many requests%s%.300s", what, name,
                        colon, text);
    return csn_fail(err, st, "%s: '%s' answered with status %d%s%.300s", what, name, status,
                    colon, text);
}

csn_status csn_remote_response_error(const csn_remote *r, const csn_http_res *res,
                                     const char *what, csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;

    (void)csn_remote_parse(res, what, &root, NULL);
    return csn_remote_http_error(r, res->status, what,
                                 csn_jval_string(csn_jval_get(root, "message")), err);
}

csn_status csn_remote_gone(const csn_remote *r, csn_error **err)
{
    return csn_fail(err, CSN_GONE, "sandbox %s has ended", r->id);
}

csn_status csn_remote_unknown(const csn_remote *r, csn_error **err)
{
    const char *const *key = r->provider->credentials;

    while (key[1] && !csn_remote_getenv(*key))
        key++;
    csn_status st = csn_fail(err, CSN_NOT_FOUND,
                             "'%s' knows no sandbox %s with the key in %s: it has ended, or it "
                             "belongs to another key or team",
                             r->provider->name, r->id, *key);
    return csn_error_advise(st, err,
                            "set %s to the key that created it, or remove the record: "
                            "caisson list --forget",
                            *key);
}

csn_status csn_remote_missing_credential(const csn_remote_provider *provider, csn_error **err)
{
    const char *const *names = provider->credentials;
    csn_status st = csn_fail(err, CSN_AUTH, "backend '%s' needs a credential: %s is not set",
                             provider->name, names[0]);

    return csn_error_advise(st, err, "set %s%s%s", names[0], names[1] ? " or " : "",
                            names[1] ? names[1] : "");
}

/* ---- lifetime --------------------------------------------------------------------------- */

uint64_t csn_remote_lifetime_ms(const csn_config *c)
{
    return c->lifetime_ms ? c->lifetime_ms : CSN_LIFETIME_MS_DEFAULT;
}

uint64_t csn_remote_seconds(uint64_t ms)
{
    return ms / 1000 + (ms % 1000 != 0);
}

void csn_remote_expires_in(csn_remote *r, uint64_t ms)
{
    pthread_mutex_lock(&r->lock);
    r->expires_ms = csn_wall_ms() + (int64_t)(ms < INT64_MAX / 2 ? ms : INT64_MAX / 2);
    pthread_mutex_unlock(&r->lock);
}

/* ---- uploads ---------------------------------------------------------------------------- */

/* Falls back to a memfd where the file system does not support unnamed files. */
static int open_unnamed(void)
{
    const char *dir = getenv("TMPDIR");
    int fd = open(dir && *dir == '/' ? dir : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    return fd >= 0 ? fd : memfd_create("caisson-upload", MFD_CLOEXEC);
}

static int write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno != EINTR)
            return errno;
        data += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

csn_status csn_remote_spool(const csn_source *content, int *ret_fd, uint64_t *ret_size,
                            csn_error **err)
{
    csn_autofd int fd = open_unnamed();
    uint64_t size = 0;
    char buf[65536];

    if (fd < 0)
        return csn_fail_errno(err, errno, "upload");
    for (;;) {
        int64_t n = content->read(content->ctx, buf, sizeof(buf));
        if (n < 0 || n > (int64_t)sizeof(buf))
            return csn_fail(err, CSN_IO, "upload: the content cannot be read");
        if (n == 0)
            break;
        int e = write_all(fd, buf, (size_t)n);
        if (e != 0)
            return csn_fail_errno(err, e, "upload");
        size += (uint64_t)n;
    }
    *ret_fd = csn_steal_fd(&fd);
    *ret_size = size;
    return CSN_OK;
}

/* ---- the response stream of a command --------------------------------------------------- */

int csn_remote_output_fail(csn_remote_output *o, csn_status st)
{
    o->error = st;
    return 1;
}

int csn_remote_output_body(void *output, const void *data, size_t len)
{
    csn_remote_output *o = output;
    csn_status st = csn_stream_parser_feed(&o->parser, data, len, &o->why);

    if (st < 0)
        o->error = st;
    if (st < 0 || o->parser.stopped)
        return CSN_HTTP_STOP;
    return o->drain && !o->exit->ended ? CSN_HTTP_DRAIN : 0;
}

uint64_t csn_remote_output_interrupt(void *output, csn_status why)
{
    csn_remote_output *o = output;

    o->interrupted = true;
    return o->cmd->on_interrupt(o->cmd->ctx, why);
}
