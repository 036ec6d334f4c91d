/* protected_changes.c: from when on changes count, and what a command was refused.
 *
 * Called for every command. Changes count from the moment after which nothing of the sandbox
 * was unobserved: as long as a process of it lives, that stays where it is, because what such a
 * process has mapped it can change without leaving a time; while none does, it is the start of
 * the next command, so that what the user does meanwhile is the user's. Other
 * processes may have the same sandbox: the head of a small file in its runtime directory says
 * the same to all of them. What a command prints is hostile: it only chooses among the places
 * that are known to be read-only. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "backend/jail/protected.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/path.h"
#include "search/changed.h"

static csn_protected *guard_of(const csn_runtime *k)
{
    return k->jail->protected;
}

/* ---- since when ---- */

void csn_protected_stamp_read(csn_protected *g)
{
    csn_protected_stamp s;

    if (g->stamp < 0 || pread(g->stamp, &s, sizeof(s), 0) != sizeof(s))
        return;
    g->since = (struct timespec){.tv_sec = s.sec, .tv_nsec = (long)s.nsec};
    g->clean = s.clean != 0;
}

void csn_protected_stamp_write(const csn_protected *g)
{
    const csn_protected_stamp s = {
        .sec = g->since.tv_sec, .nsec = g->since.tv_nsec, .clean = g->clean};

    if (g->stamp >= 0 && pwrite(g->stamp, &s, sizeof(s), 0) != sizeof(s))
        csn_log_debug("the note of what was looked at cannot be written");
}

/* With the lock held. Every process of the sandbox is a child of its keeper or below one. Not
 * known counts as yes. The keeper knows it after each command; whoever else is asked keeps a
 * buffer for the answer. */
static bool something_runs(const csn_runtime *k, csn_protected *g)
{
    char path[64], one;

    if (k->spawns == k->alone_after && !k->connected && !k->detached)
        return false;
    if (g->children < 0 && k->keeper_pid > 0) {
        snprintf(path, sizeof(path), "/proc/%lld/task/%lld/children", (long long)k->keeper_pid,
                 (long long)k->keeper_pid);
        g->children = open(path, O_RDONLY | O_CLOEXEC);
    }
    return g->children < 0 || pread(g->children, &one, 1, 0) != 0;
}

/* With the lock held: something of the sandbox is going to change files. */
static void begin(csn_runtime *k, csn_protected *g)
{
    bool shared = g->stamp >= 0;

    g->begun++;
    csn_protected_stamp_read(g);
    if (g->clean && !(shared && something_runs(k, g)))
        csn_changed_now(&g->since);
    g->clean = false;
    csn_protected_stamp_write(g);
}

void csn_protected_note_change(csn_runtime *k)
{
    csn_protected *g = guard_of(k);

    if (g->tree_count == 0)
        return;
    pthread_mutex_lock(&g->lock);
    if (g->clean || g->stamp >= 0)
        begin(k, g);
    else
        g->begun++;
    pthread_mutex_unlock(&g->lock);
}

static bool is_later(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

/* After a command, which began at `began`, or after a process in the background (NULL). Only
 * when nothing of the sandbox ran while we looked is everything known; and who ran at the start
 * may have ended since. Another process may have moved the common moment beyond our beginning
 * meanwhile. */
static void look(csn_runtime *k, csn_protected *g, const struct timespec *began,
                 const csn_deny_sink *denials)
{
    struct timespec start;

    pthread_mutex_lock(&g->scan_lock);
    pthread_mutex_lock(&g->lock);
    csn_protected_stamp_read(g);
    bool later = began && is_later(&g->since, began);
    struct timespec since = later ? *began : g->since;
    bool nothing = !began && g->clean;
    bool quiet = g->running == (began ? 1u : 0u) && !something_runs(k, g);
    uint64_t begun = g->begun;
    pthread_mutex_unlock(&g->lock);
    csn_changed_now(&start);
    int rc = nothing ? -EALREADY : csn_protected_scan(k, &since, denials);
    pthread_mutex_lock(&g->lock);
    if (began)
        g->running--; /* not before: nobody else's scan may take what it did for looked at */
    if (rc == 0) {
        bool shared = g->stamp >= 0; /* then others may have begun something, too */
        g->clean = quiet && begun == g->begun && !(shared && something_runs(k, g));
        g->since = g->clean ? start : since;
        csn_protected_stamp_write(g);
    }
    pthread_mutex_unlock(&g->lock);
    pthread_mutex_unlock(&g->scan_lock);
}

void csn_protected_final_scan(csn_runtime *k)
{
    csn_protected *g = guard_of(k);

    if (!g || g->tree_count == 0)
        return;
    pthread_mutex_lock(&g->scan_lock);
    pthread_mutex_lock(&g->lock);
    csn_protected_stamp_read(g);
    struct timespec since = g->since;
    bool clean = g->clean;
    g->clean = true;
    pthread_mutex_unlock(&g->lock);
    if (!clean && csn_protected_scan(k, &since, NULL) < 0)
        csn_log_debug("workspace of '%s' could not be looked through at the end", k->id);
    pthread_mutex_unlock(&g->scan_lock);
}

/* ---- what it was refused ---- */

/* Is the place named in a line that says it cannot be changed? */
static bool is_named(const csn_output *text, const csn_protected_place *p)
{
    static const char *const words[] = {"resource busy", "Read-only file system"};
    const char *end = (const char *)text->data + text->len;
    size_t n = strlen(p->path);

    for (const char *line = text->data; line && line < end;) {
        const char *eol = memchr(line, '\n', (size_t)(end - line));
        size_t len = (size_t)((eol ? eol : end) - line);
        bool says = memmem(line, len, words[0], strlen(words[0])) ||
                    memmem(line, len, words[1], strlen(words[1]));
        const char *at = says ? memmem(line, len, p->path, n) : NULL;
        /* Of a directory that is only held in place, what is in it can be changed. */
        if (at && (p->rule || at + n == line + len || at[n] != '/'))
            return true;
        line += len + 1;
    }
    return false;
}

static void tell_refused(const csn_protected *g, const csn_deny_sink *denials,
                         const csn_output *out, const csn_output *text)
{
    static const char pinned[] = "a directory with protected files: it stays where it is";

    for (size_t i = 0; i < g->tree_count; i++) {
        const csn_protected_tree *t = &g->trees[i];
        for (size_t n = 0; n < t->place_count; n++) {
            const csn_protected_place *p = &t->places[n];
            if (!p->absent && (is_named(out, p) || is_named(text, p)))
                csn_protected_report(denials, t, p->path, p->rule ? p->rule : pinned, NULL);
        }
    }
}

/* Stands before the sink of the general explanation, which takes a protected file for one of a
 * read-only directory and offers too much. */
typedef struct filter {
    const csn_protected *g;
    const csn_deny_sink *next;
} filter;

static void tell_others(void *ctx, const csn_denial *d)
{
    const filter *f = ctx;
    const char *path = d->resolved ? d->resolved : d->target;

    for (size_t i = 0; path && strcmp(d->op, "write") == 0 && i < f->g->tree_count; i++) {
        const char *below = csn_path_below(path, f->g->trees[i].inside);
        if (below && csn_protected_rule(&f->g->trees[i], below, CSN_OP_TREE) &&
            !csn_protected_is_excepted(f->g, path))
            return;
    }
    f->next->tell(f->next->ctx, d);
}

csn_status csn_protected_explain(void *state, const csn_exec_req *req, const csn_exec_end *end,
                                 const csn_output *out, const csn_output *text, csn_error **err)
{
    filter f = {.g = guard_of(state), .next = req->denials};
    const csn_deny_sink others = {tell_others, &f};
    csn_exec_req own = *req;

    if (!req->denials)
        return CSN_OK;
    tell_refused(f.g, req->denials, out, text);
    own.denials = &others;
    return csn_jail_explain(state, &own, end, out, text, err);
}

/* ---- commands ---- */

void csn_protected_command_begin(csn_runtime *k, struct timespec *ret_began)
{
    csn_protected *g = guard_of(k);

    if (g->tree_count == 0)
        return;
    csn_changed_now(ret_began);
    pthread_mutex_lock(&g->lock);
    begin(k, g);
    g->running++;
    pthread_mutex_unlock(&g->lock);
}

void csn_protected_command_end(csn_runtime *k, const struct timespec *began,
                               const csn_deny_sink *denials)
{
    if (guard_of(k)->tree_count > 0)
        look(k, guard_of(k), began, denials);
}

void csn_protected_rescan(void *state, const csn_deny_sink *denials)
{
    csn_protected *g = guard_of(state);

    if (g->tree_count > 0)
        look(state, g, NULL, denials);
}
