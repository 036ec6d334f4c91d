/* call.c: begins and ends every public call.
 *
 * csn_call_begin refuses a handle that is closing or gone, opens a lazy backend once for all
 * threads (after a failure the next call tries again), and counts the call, so that close and
 * destroy can wait for it. It begins an operation with an effect in the audit log, and refuses
 * one that could not be recorded. csn_call_end writes the audit line. The lock is not held
 * during a call of the backend. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "core/audit_in_flight.h"
#include "core/internal.h"
#include "core/open.h"
#include "core/result.h"

static csn_status refuse(csn_sandbox *sb, csn_error **err)
{
    if (sb->gone)
        return csn_fail(err, CSN_GONE, "sandbox %s has ended", sb->id);
    return csn_fail(err, CSN_CANCELLED, "sandbox %s is being closed", sb->id);
}

/* With the lock held: stores the failure for threads that waited for this opening. */
static void note_failure(csn_sandbox *sb, csn_status st, const csn_error *why)
{
    const char *text = csn_error_message(why);

    free(sb->open_why);
    sb->open_why = text ? strdup(text) : NULL;
    sb->open_status = st;
    sb->open_failures++;
}

/* With the lock held: opens the backend, or waits for the thread that is opening it. If that
 * opening fails, the waiting threads fail too instead of trying again one after the other. */
static csn_status ensure_open(csn_sandbox *sb, csn_error **err)
{
    unsigned failures = sb->open_failures;
    csn_error *why = NULL;

    while (sb->opening && !sb->closing && !sb->gone)
        pthread_cond_wait(&sb->idle, &sb->lock);
    if (sb->closing || sb->gone)
        return refuse(sb, err);
    if (sb->opened)
        return CSN_OK;
    if (sb->open_failures != failures)
        return csn_fail(err, sb->open_status, "%s",
                        sb->open_why ? sb->open_why : "the sandbox could not be opened");
    sb->opening = true;
    pthread_mutex_unlock(&sb->lock);
    csn_status st = csn_sandbox_start(sb, &why);
    pthread_mutex_lock(&sb->lock);
    sb->opening = false;
    sb->opened = st == CSN_OK;
    if (st < 0)
        note_failure(sb, st, why);
    if (st < 0 && err)
        *err = CSN_STEAL(why);
    csn_error_free(why);
    pthread_cond_broadcast(&sb->idle);
    return st;
}

/* The call is over: close and destroy need not wait for it. */
static void count_down(csn_sandbox *sb)
{
    pthread_mutex_lock(&sb->lock);
    sb->running--;
    pthread_cond_broadcast(&sb->idle);
    pthread_mutex_unlock(&sb->lock);
}

/* The path of the call's errors: that of the first path that was joined, or the target of an
 * operation whose target is a path. A command, a pattern or a list of rules is none. */
static const char *error_path(const csn_call *c)
{
    static const char *const no_path[] = {"exec",     "start",       "glob",
                                          "grep",     "network_set", "would_allow",
                                          "wait_log", "rollback",    "snapshot"};

    if (c->path_count > 0)
        return c->asked[0];
    for (size_t i = 0; i < sizeof(no_path) / sizeof(no_path[0]); i++)
        if (strcmp(c->event.op, no_path[i]) == 0)
            return NULL;
    return c->event.target;
}

csn_status csn_call_begin(csn_call *c, csn_sandbox *sb, const char *op, const char *target,
                          csn_error **err)
{
    if (!sb)
        return csn_fail(err, CSN_INVALID, "%s: no sandbox given", op);
    *c = (csn_call){.sb = sb, .started_ns = csn_now_ns()};
    c->event = (csn_audit_event){.op = op, .target = target};

    pthread_mutex_lock(&sb->lock);
    csn_status st = ensure_open(sb, err);
    if (st == CSN_OK) {
        sb->running++;
        c->stop_fds[0] = sb->stop_fd;
        c->stop_fds[1] = -1;
        c->fs = (csn_fs){.ops = sb->ops, .state = sb->state, .cancel_fds = c->stop_fds};
    }
    pthread_mutex_unlock(&sb->lock);
    if (st == CSN_OK && csn_audit_has_effect(op)) {
        st = csn_audit_begin(sb->audit, err);
        c->event.begun = st == CSN_OK;
        if (st < 0)
            count_down(sb);
    }
    return st == CSN_OK ? st : csn_error_note(st, err, op, error_path(c));
}

char *csn_sandbox_workdir(csn_sandbox *sb)
{
    pthread_mutex_lock(&sb->lock);
    char *copy = sb->workdir ? strdup(sb->workdir) : NULL;
    pthread_mutex_unlock(&sb->lock);
    return copy;
}

csn_status csn_call_path(csn_call *c, const char *asked, const char **ret, csn_error **err)
{
    char *joined = NULL;

    if (!asked || !*asked)
        return csn_fail(err, CSN_INVALID, "invalid path: it is empty");
    csn_autofree char *workdir = csn_sandbox_workdir(c->sb);
    csn_status st = csn_path_join(workdir ? workdir : ".", c->sb->home, asked, &joined, err);
    if (st < 0)
        return st;
    c->asked[c->path_count] = asked;
    c->paths[c->path_count++] = joined;
    *ret = joined;
    return CSN_OK;
}

csn_status csn_call_rephrase(const csn_call *c, csn_status st, csn_error **err)
{
    for (unsigned i = 0; i < c->path_count; i++)
        csn_error_rephrase(st, err, c->paths[i], c->asked[i]);
    return st;
}

csn_status csn_call_end(csn_call *c, csn_status st, csn_error **err)
{
    csn_sandbox *sb = c->sb;

    csn_call_rephrase(c, st, err);
    const csn_denial *d = err && *err && st < 0 ? csn_error_denial(*err) : NULL;

    c->event.status = st;
    c->event.duration_ns = csn_now_ns() - c->started_ns;
    if (d)
        c->event.rule = d->rule ? d->rule : "outside";
    if (st < 0)
        csn_error_note(st, err, c->event.op, error_path(c));
    csn_error *audit_err = NULL;
    csn_status logged = c->quiet ? CSN_OK : csn_audit_append(sb->audit, &c->event, &audit_err);
    /* An operation with an effect is done: its own result is the truth, and the log counts a
     * gap. A read fails and returns nothing. */
    if (logged < 0 && st == CSN_OK && !c->event.begun) {
        st = logged;
        if (err) {
            *err = audit_err;
            audit_err = NULL;
        }
    }
    csn_error_free(audit_err);
    csn_log_debug("%s sandbox=%s status=%s us=%llu", c->event.op, sb->id, csn_status_name(st),
                  (unsigned long long)(c->event.duration_ns / 1000));
    for (unsigned i = 0; i < c->path_count; i++)
        free(c->paths[i]);
    count_down(sb);
    return st;
}

csn_status csn_call_return(csn_call *c, csn_status st, void *result, void *ret, csn_error **err)
{
    st = csn_call_end(c, st, err);
    if (st == CSN_OK && ret)
        memcpy(ret, &result, sizeof(result));
    else
        csn_result_free(result);
    return st;
}

csn_status csn_opts_take(const void *opts, void *out, size_t size, const char *what,
                         csn_error **err)
{
    uint32_t given = 0;

    memset(out, 0, size);
    if (!opts)
        return CSN_OK;
    memcpy(&given, opts, sizeof(given));
    if (given < 2 * sizeof(uint32_t))
        return csn_fail(err, CSN_INVALID, "%s: size is %u; set it to sizeof of the struct",
                        what, given);
    const unsigned char *bytes = opts;
    for (size_t i = size; i < given; i++)
        if (bytes[i] != 0)
            return csn_fail(err, CSN_UNSUPPORTED,
                            "%s: made for a newer version and uses a field this one lacks",
                            what);
    memcpy(out, opts, given < size ? given : size);
    return CSN_OK;
}

csn_status csn_flags_check(uint32_t flags, uint32_t known, const char *what, csn_error **err)
{
    if ((flags & ~known) == 0)
        return CSN_OK;
    return csn_fail(err, CSN_INVALID, "%s: unknown or unsupported flags 0x%x", what,
                    flags & ~known);
}
