/* lifecycle.c: the life of a remote sandbox: made when it is needed, found again, ended.
 *
 * Called by the core through the provider's ops table. The core opens a lazy backend exactly
 * once however many threads come first, and forgets an opening that failed; here an opening
 * that fails half-way ends what it made. A sandbox that is not detached ends with its handle;
 * if the owner is killed it ends by its lifetime, which the provider keeps. */
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
#include "base/path.h"
#include "os/statedir.h"
#include "remote/remote.h"

#define LIFETIME_MS 300000u
#define PROBE_MS    60000u
#define NOTE_MAX    (256u * 1024u)

static void remote_free(csn_remote *r)
{
    if (!r)
        return;
    if (r->kind->release)
        r->kind->release(r);
    csn_http_free(r->http);
    pthread_mutex_destroy(&r->lock);
    free(r->id);
    free(r->workdir);
    free(r->home);
    free(r->machine);
    free(r->rg_path);
    free(r);
}
CSN_DEFINE_CLEANUP(csn_remote, remote_free)

csn_status csn_remote_new(const csn_remote_kind *kind, const csn_config *config, const char *id,
                          const char *unix_path, bool find, void **ret_state, csn_error **err)
{
    CSN_CLEANUP(remote_freep) csn_remote *r = calloc(1, sizeof(*r));

    if (!r)
        return csn_fail(err, CSN_NOMEM, "open");
    r->kind = kind;
    r->config = config;
    r->stop_fd = -1;
    r->found = find;
    pthread_mutex_init(&r->lock, NULL);
    r->id = strdup(id);
    if (!r->id)
        return csn_fail(err, CSN_NOMEM, "open");
    csn_status st = csn_http_new("caisson", unix_path, &r->http, err);
    if (st == CSN_OK)
        *ret_state = CSN_STEAL(r);
    return st;
}

csn_status csn_remote_begin(const csn_remote_kind *kind, const csn_config *config,
                            const char *id, bool find, void **ret_state, csn_error **err)
{
    void *state = NULL;
    csn_status st = csn_remote_new(kind, config, id, NULL, find, &state, err);

    if (st == CSN_OK)
        st = kind->configure(state, err);
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

/* ---- what is inside --------------------------------------------------------------------- */

/* Four NUL-ended answers: working directory, home, machine, ripgrep; and what $1 says. */
static const char probe[] =
    "pwd -P | tr -d '\\n'; printf '\\000%s\\000%s\\000%s\\000' \"$HOME\" "
    "\"$(uname -m)\" \"$(command -v rg)\"\neval \"$1\"\n";

static char *next_answer(const csn_buf *b, size_t *at)
{
    const char *start = b->data + *at;
    const char *end = *at < b->len ? memchr(start, '\0', b->len - *at) : NULL;

    if (!end)
        return NULL;
    *at += (size_t)(end - start) + 1;
    return strdup(start);
}

static csn_status look_inside(csn_remote *r, csn_error **err)
{
    bool text = (r->kind->flags & CSN_REMOTE_TEXT) != 0;
    const char *const args[] = {text ? csn_remote_coder_test : "", NULL};
    const csn_remote_script s = {
        .text = probe, .args = args, .deadline_ns = csn_deadline_in(PROBE_MS), .reads = true};
    csn_autobuf out;
    size_t at = 0;
    int code = -1;

    csn_buf_init(&out, 4 * (size_t)CSN_PATH_MAX);
    csn_status st = csn_remote_ask(r, &s, &out, &code, err);
    if (st < 0)
        return st;
    r->workdir = next_answer(&out, &at);
    r->home = next_answer(&out, &at);
    r->machine = next_answer(&out, &at);
    r->rg_path = next_answer(&out, &at);
    if (!r->workdir || r->workdir[0] != '/' || !r->home || !r->machine || !r->rg_path)
        return csn_fail(err, CSN_UNAVAILABLE, "the sandbox's sh cannot tell where it is");
    if (text && strcmp(out.data + at, "265\n") != 0)
        return csn_fail(err, CSN_UNSUPPORTED,
                        "the sandbox's awk does not tell a signal from an exit");
    if (r->home[0] != '/') {
        free(r->home);
        r->home = NULL;
    }
    if (r->rg_path[0] != '/') {
        free(r->rg_path);
        r->rg_path = NULL;
    }
    return CSN_OK;
}

/* ---- the note --------------------------------------------------------------------------- */

int csn_remote_note_dir(const csn_remote *r, bool make)
{
    csn_autofree char *sub = NULL;

    if (asprintf(&sub, "sandboxes/%s", r->id) < 0) {
        sub = NULL;
        return -ENOMEM;
    }
    return make ? csn_statedir_open(CSN_DIR_STATE, sub, NULL)
                : csn_statedir_find(CSN_DIR_STATE, sub, NULL);
}

csn_status csn_remote_read_note(csn_remote *r, csn_buf *out, csn_error **err)
{
    csn_autofd int dir = csn_remote_note_dir(r, false);
    csn_autofd int fd = dir < 0 ? -1 : openat(dir, CSN_STATE_NOTE, O_RDONLY | O_CLOEXEC);
    char buf[4096];
    ssize_t n = -1;

    csn_buf_init(out, NOTE_MAX);
    while (fd >= 0 && (n = read(fd, buf, sizeof(buf))) > 0)
        if (csn_buf_append(out, buf, (size_t)n) != 0)
            return csn_fail(err, CSN_IO, "the record of '%s' is too long", r->id);
    if (fd < 0 || n < 0 || out->len == 0)
        return csn_fail(err, CSN_GONE, "nothing is known of where sandbox '%s' is", r->id);
    r->noted = true;
    return CSN_OK;
}

/* The sandbox is on record now: with what another process finds it by. Once it was, a record
 * that is missing has been removed with the sandbox, and is not made again. */
csn_status csn_remote_commit(void *state, csn_error **err)
{
    csn_remote *r = state;
    csn_autobuf text;
    char tmp[64];

    csn_buf_init(&text, NOTE_MAX);
    int e = r->kind->note(r, &text);
    csn_autofd int dir = csn_remote_note_dir(r, !r->noted);
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
    r->noted = true;
    return CSN_OK;
}

/* ---- making, finding, ending ------------------------------------------------------------ */

static csn_status come_to_be(csn_remote *r, csn_error **err)
{
    csn_autobuf text;

    csn_buf_init(&text, NOTE_MAX);
    csn_status st = r->found ? csn_remote_read_note(r, &text, err) : CSN_OK;
    if (st == CSN_OK)
        st = r->found ? r->kind->find(r, text.data, err) : r->kind->make(r, err);
    if (st < 0)
        return csn_wrap(st, err, "%s a sandbox of '%s'", r->found ? "find" : "make",
                        r->kind->name);
    r->there = true;
    st = look_inside(r, err);
    if (st < 0)
        return csn_wrap(st, err, "look into the sandbox");
    csn_remote_ensure_rg(r);
    return CSN_OK;
}

/* Nobody else has the state yet: no lock is needed until it is there. */
csn_status csn_remote_ready(void *state, csn_error **err)
{
    return come_to_be(state, err);
}

csn_status csn_remote_destroy(void *state, csn_error **err)
{
    csn_remote *r = state;

    pthread_mutex_lock(&r->lock);
    bool first = r->there && !r->over;
    r->over = true;
    pthread_mutex_unlock(&r->lock);
    csn_status st = first ? r->kind->end(r, err) : CSN_OK;
    if (st == CSN_OK)
        return st;
    pthread_mutex_lock(&r->lock);
    r->over = false; /* close tries again */
    pthread_mutex_unlock(&r->lock);
    return csn_wrap(st, err, "end the sandbox");
}

void csn_remote_close(void *state)
{
    csn_remote *r = state;

    if (!r)
        return;
    if (!r->found && !(r->config->flags & CSN_OPEN_DETACHED))
        (void)csn_remote_destroy(r, NULL);
    remote_free(r);
}

csn_status csn_remote_extend(void *state, uint64_t ms, csn_error **err)
{
    csn_remote *r = state;

    return csn_wrap(r->kind->extend(r, ms, err), err, "extend");
}

csn_status csn_remote_info(void *state, csn_info_result *ret, csn_error **err)
{
    csn_remote *r = state;
    csn_status st = r->there ? CSN_OK : come_to_be(r, err);

    if (st < 0)
        return st;
    if (!ret->layers) {
        ret->layers = r->kind->layers;
        ret->layer_count = r->kind->layer_count;
    }
    ret->workdir = r->workdir;
    ret->home = r->home;
    ret->rg_path = r->rg_path;
    pthread_mutex_lock(&r->lock);
    ret->expires_ms = r->expires_ms;
    pthread_mutex_unlock(&r->lock);
    return CSN_OK;
}

/* ---- for providers ---------------------------------------------------------------------- */

uint64_t csn_remote_lifetime_ms(const csn_config *c)
{
    return c->lifetime_ms ? c->lifetime_ms : LIFETIME_MS;
}

void csn_remote_expires_in(csn_remote *r, uint64_t ms)
{
    pthread_mutex_lock(&r->lock);
    r->expires_ms = csn_wall_ms() + (int64_t)(ms < INT64_MAX / 2 ? ms : INT64_MAX / 2);
    pthread_mutex_unlock(&r->lock);
}

csn_status csn_remote_no_credential(const csn_remote_kind *kind, csn_error **err)
{
    csn_status st = csn_fail(err, CSN_AUTH, "backend '%s' needs a credential: %s is not set",
                             kind->name, kind->secrets[0]);

    return csn_error_advise(st, err, "set %s%s%s", kind->secrets[0],
                            kind->secrets[1] ? " or " : "",
                            kind->secrets[1] ? kind->secrets[1] : "");
}

csn_status csn_remote_refused(const csn_remote *r, int status, const char *what,
                              const char *said, csn_error **err)
{
    csn_autofree char *words = said ? csn_path_printable(said) : NULL;
    const char *colon = words ? ": " : "";
    const char *text = words ? words : "";
    csn_status st = status == 400 || status == 422   ? CSN_INVALID
                    : status == 401                  ? CSN_AUTH
                    : status == 403                  ? CSN_DENIED
                    : status == 404                  ? CSN_NOT_FOUND
                    : status == 409                  ? CSN_CONFLICT
                    : status == 410                  ? CSN_GONE
                    : status == 413                  ? CSN_TOO_LARGE
                    : status == 429 || status >= 500 ? CSN_UNAVAILABLE
                                                     : CSN_IO;

    if (status == 507)
        return csn_fail_errno(err, ENOSPC, "%s", what);
    if (st == CSN_AUTH) {
        st = csn_fail(err, st, "%s: '%s' refused the credential%s%.300s", what, r->kind->name,
                      colon, text);
        return csn_error_advise(st, err, "look at %s", r->kind->secrets[0]);
    }
    if (status == 429)
        return csn_fail(err, st, "%s: '%s' says: too many requests%s%.300s", what,
                        r->kind->name, colon, text);
    return csn_fail(err, st, "%s: '%s' answered with status %d%s%.300s", what, r->kind->name,
                    status, colon, text);
}

csn_status csn_remote_check(const csn_remote_kind *kind, const csn_config *c, uint32_t can,
                            csn_error **err)
{
    const struct {
        uint32_t need;
        bool set;
        const char *what;
    } table[] = {
        {CSN_REMOTE_IMAGE, c->image != NULL, "an image"},
        {CSN_REMOTE_NET, c->network != NULL, "a network of its own"},
        {CSN_REMOTE_NET_OUT, c->net_allow || c->net_deny, "network rules"},
        {0, c->packages != NULL, "package-manager presets"},
        {CSN_REMOTE_PUBLISH, c->publish != NULL, "published ports"},
        {0, c->host_ports != NULL, "ports of this host"},
        {CSN_REMOTE_MEMORY, c->memory_max != 0, "a limit on memory"},
        {CSN_REMOTE_PIDS, c->pids_max != 0, "a limit on processes"},
        {CSN_REMOTE_CPU, c->cpu_milli != 0, "a limit on cpu"},
        {CSN_REMOTE_DISK, c->disk_max != 0, "a limit on disk"},
        {0, c->file_max != 0, "a limit on the size of files"},
        {0, c->lifetime_ms != 0 && !kind->extend, "a lifetime"},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (table[i].set && !(table[i].need & can))
            return csn_fail(err, CSN_UNSUPPORTED, "backend '%s' cannot honour %s", kind->name,
                            table[i].what);
    return CSN_OK;
}
