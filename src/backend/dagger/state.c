/* state.c: creates, connects, replaces and restores the current container of a sandbox.
 *
 * Container ids are opaque strings of the engine. Invariants: the current container is replaced
 * only after the engine has confirmed the new one; the record is updated before a caller
 * receives the result of a command. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/dagger/dagger.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/strv.h"

#define CREATE_MS  600000u /* the image may have to be pulled */
#define CONNECT_MS 60000u
#define STEP_MS    120000u
#define TEXT_MAX   (512u * 1024u)

/* ---- the current container -------------------------------------------------------------- */

static csn_status set_container(csn_remote *r, const char *id, csn_error **err)
{
    pthread_mutex_lock(&r->lock);
    csn_status st = csn_remote_set_string(&csn_dagger_of(r)->container, id, err);
    pthread_mutex_unlock(&r->lock);
    return st;
}

/* False until the first record is written: until then no other process can use the sandbox. */
static bool is_recorded(const csn_remote *r)
{
    return r->recorded && csn_remote_shared(r);
}

csn_status csn_dagger_commit(csn_remote *r, const char *id, csn_error **err)
{
    csn_status st = set_container(r, id, err);

    return st == CSN_OK && is_recorded(r) ? csn_remote_commit(r, err) : st;
}

static csn_status recorded_container(csn_remote *r, char **ret, csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    csn_autobuf text = {0};

    csn_status st = csn_remote_read_record(r, &text, err);
    if (st < 0)
        return st;
    (void)csn_json_parse(text.data, text.len, "record", &root, NULL);
    const char *id = csn_dagger_id_at(root, "container");
    *ret = id ? strdup(id) : NULL;
    return *ret ? CSN_OK : csn_fail(err, CSN_IO, "the record of '%s' is damaged", r->id);
}

csn_status csn_dagger_current(csn_remote *r, char **ret, csn_error **err)
{
    if (is_recorded(r))
        return recorded_container(r, ret, err);
    pthread_mutex_lock(&r->lock);
    *ret = strdup(csn_dagger_of(r)->container);
    pthread_mutex_unlock(&r->lock);
    return *ret ? CSN_OK : csn_fail(err, CSN_NOMEM, "state of the sandbox");
}

csn_status csn_dagger_step_begin(csn_remote *r, uint64_t deadline_ns,
                                 const int32_t cancel_fds[3], csn_error **err)
{
    csn_dagger *d = csn_dagger_of(r);
    csn_autofree char *id = NULL;
    csn_status st = csn_step_lock_acquire(d->step_lock, r, deadline_ns, cancel_fds, err);

    if (st < 0 || !is_recorded(r))
        return st;
    st = recorded_container(r, &id, err);
    if (st == CSN_OK)
        st = set_container(r, id, err);
    if (st < 0)
        csn_step_lock_release(d->step_lock);
    return st;
}

/* ---- creating and connecting ------------------------------------------------------------ */

static csn_status create_error(const csn_dagger_response *a, const char *image, csn_status st,
                               csn_error **err)
{
    bool missing = strstr(a->message, "not found") || strstr(a->message, "pull access denied");

    if (!a->exec_error && !missing)
        return st;
    if (err) {
        csn_error_free(*err);
        *err = NULL;
    }
    if (missing)
        return csn_fail(err, CSN_NOT_FOUND, "image '%.200s': %s", image, a->message);
    return csn_fail(err, CSN_UNSUPPORTED,
                    "image '%.200s' has no sh, or its user cannot create " CSN_DAGGER_WORKDIR,
                    image);
}

static csn_status set_state(csn_remote *r, const char *id, const csn_jval *user,
                            csn_error **err)
{
    const char *name = csn_jval_string(user);
    csn_status st = csn_remote_set_string(&csn_dagger_of(r)->user, name ? name : "", err);

    return st == CSN_OK ? set_container(r, id, err) : st;
}

static csn_status create_container(csn_remote *r, csn_error **err)
{
    const char *image = r->config->image ? r->config->image : CSN_DAGGER_IMAGE;
    csn_auto_dagger_response a = {0};
    csn_autobuf selection;

    csn_buf_init(&selection, TEXT_MAX);
    int e = csn_dagger_append(
        &selection,
        "container { from(address: ?) { withExec(args: [\"/bin/sh\", \"-c\", \"mkdir "
        "-p " CSN_DAGGER_WORKDIR " && test -w " CSN_DAGGER_WORKDIR
        "\"]) { withWorkdir(path: \"" CSN_DAGGER_WORKDIR "\") { user sync } } } }",
        image);
    if (e != 0)
        return csn_fail_errno(err, e, "image");
    const csn_dagger_query q = {.what = "create a container",
                                .selection = selection.data,
                                .retry = CSN_HTTP_ONCE,
                                .deadline_ns = csn_deadline_in(CREATE_MS)};
    csn_status st = csn_dagger_send(r, &q, &a, err);
    if (st < 0)
        return create_error(&a, image, st, err);
    const csn_jval *made = csn_dagger_at(a.data, "container.from.withExec.withWorkdir");
    const char *id = csn_dagger_id_at(made, "sync");
    if (!id)
        return csn_fail(err, CSN_IO, "%s: the engine returned no id", q.what);
    return set_state(r, id, csn_jval_get(made, "user"), err);
}

/* The error to return if the engine does not have a container. */
typedef struct missing {
    csn_status st;
    const char *text;
} missing;
static const missing no_snapshot = {CSN_NOT_FOUND, "the engine does not have this snapshot"};
static const missing no_sandbox = {CSN_GONE, "the engine no longer has the sandbox"};

/* Checks that the engine has the container; the response has its `user`. */
static csn_status look_up(csn_remote *r, const char *id, const missing *if_missing,
                          csn_dagger_response *a, csn_error **err)
{
    const csn_dagger_query q = {.what = "find the container",
                                .container = id,
                                .selection = "user sync",
                                .retry = CSN_HTTP_IDEMPOTENT,
                                .deadline_ns = csn_deadline_in(CONNECT_MS)};
    csn_status st = csn_dagger_send(r, &q, a, err);

    if (st == CSN_OK && !csn_dagger_id_at(a->data, "sync"))
        return csn_fail(err, if_missing->st, "%s", if_missing->text);
    if (st == CSN_IO && a->message[0])
        return csn_wrap(if_missing->st, err, "%s", if_missing->text);
    return st;
}

static csn_status use_container(csn_remote *r, const char *id, const missing *if_missing,
                                csn_error **err)
{
    csn_auto_dagger_response a = {0};
    csn_status st = look_up(r, id, if_missing, &a, err);

    return st == CSN_OK ? set_state(r, id, csn_jval_get(a.data, "user"), err) : st;
}

/* Starts from an image or a snapshot. */
csn_status csn_dagger_create(csn_remote *r, csn_error **err)
{
    const char *image = r->config->image;
    csn_status st = csn_dagger_session_open(r, err);

    if (st == CSN_OK && image && csn_str_starts(image, CSN_DAGGER_SNAPSHOT))
        st = use_container(r, image + strlen(CSN_DAGGER_SNAPSHOT), &no_snapshot, err);
    else if (st == CSN_OK)
        st = create_container(r, err);
    if (st < 0)
        csn_dagger_session_stop(csn_dagger_of(r));
    return st;
}

csn_status csn_dagger_connect(csn_remote *r, const char *record, csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;

    (void)csn_json_parse(record, strlen(record), "record", &root, NULL);
    const char *id = csn_dagger_id_at(root, "container");
    if (!id)
        return csn_fail(err, CSN_GONE, "the record of sandbox %s is damaged", r->id);
    csn_status st = csn_jval_has(root, "pid")
                        ? csn_dagger_session_attach(csn_dagger_of(r), root, err)
                        : csn_dagger_session_open(r, err);
    return st == CSN_OK ? use_container(r, id, &no_sandbox, err) : st;
}

int csn_dagger_write_record(const csn_remote *r, csn_buf *out)
{
    const csn_dagger *d = csn_dagger_of(r);
    csn_json j;

    csn_json_begin(&j, out);
    csn_json_object(&j);
    csn_json_kstr(&j, "container", d->container);
    if (d->session.pid > 0) {
        csn_json_kuint(&j, "port", d->session.port);
        csn_json_kstr(&j, "token", d->session.token);
        csn_json_kuint(&j, "pid", (uint64_t)d->session.pid);
        csn_json_kuint(&j, "born", d->session.start_time);
    }
    csn_json_object_end(&j);
    return csn_json_end(&j);
}

/* Needs no request for the container: the engine garbage-collects it. */
csn_status csn_dagger_destroy(csn_remote *r, csn_error **err)
{
    (void)err;
    csn_dagger_session_stop(csn_dagger_of(r));
    return CSN_OK;
}

void csn_dagger_release(csn_remote *r)
{
    csn_dagger *d = csn_dagger_of(r);

    if (!d)
        return;
    csn_dagger_session_release(d);
    csn_step_lock_free(d->step_lock);
    free(d->container);
    free(d->user);
    free(d);
    r->data = NULL;
}

/* ---- snapshots -------------------------------------------------------------------------- */

csn_status csn_dagger_snapshot(void *state, char **ret, csn_error **err)
{
    csn_autofree char *id = NULL;
    csn_status st = csn_dagger_current(state, &id, err);

    if (st == CSN_OK && asprintf(ret, CSN_DAGGER_SNAPSHOT "%s", id) < 0) {
        *ret = NULL;
        st = csn_fail(err, CSN_NOMEM, "snapshot");
    }
    return st;
}

/* With the step lock held. Refuses a snapshot with another user: it belongs to another
 * image. */
static csn_status restore(csn_remote *r, const char *id, csn_error **err)
{
    csn_auto_dagger_response a = {0};
    csn_status st = look_up(r, id, &no_snapshot, &a, err);

    if (st < 0)
        return st;
    const char *user = csn_jval_string(csn_jval_get(a.data, "user"));
    if (strcmp(user ? user : "", csn_dagger_of(r)->user) != 0)
        return csn_fail(err, CSN_INVALID, "the snapshot was taken from another sandbox");
    return csn_dagger_commit(r, id, err);
}

csn_status csn_dagger_rollback(void *state, const char *snapshot, csn_error **err)
{
    csn_remote *r = state;
    const int32_t stop[] = {r->stop_fd, -1, -1};

    if (!csn_str_starts(snapshot, CSN_DAGGER_SNAPSHOT))
        return csn_fail(err, CSN_INVALID, "'%.100s' is not a snapshot of backend 'dagger'",
                        snapshot);
    csn_status st = csn_dagger_step_begin(r, csn_deadline_in(STEP_MS), stop, err);
    if (st < 0)
        return st;
    st = restore(r, snapshot + strlen(CSN_DAGGER_SNAPSHOT), err);
    csn_step_lock_release(csn_dagger_of(r)->step_lock);
    return st;
}
