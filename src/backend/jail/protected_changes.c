/* protected_changes.c: tracks the time from which changes count, and reports denied changes.
 *
 * A scan examines changes since the time `since`. While a process of the sandbox lives,
 * `since` does not move, because a process can change a mapped file without updating its
 * times. While none lives, the next command sets it to its start, so that changes by the
 * user do not count. All handles of a detached sandbox share it through a file in the
 * directory of the sandbox; a mark (protected_marks.c) keeps it if no scan follows. The output
 * of a command is hostile; it only selects among places that are known to be read-only. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "backend/jail/protected.h"
#include "base/log.h"
#include "base/path.h"
#include "search/changed.h"

static csn_protected *protected_of(const csn_runtime *rt)
{
    return rt->jail->protected;
}

/* ---- time of the last scan ---- */

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
        csn_log_debug("the time of the last scan cannot be written");
}

/* Needs the lock. Every process of the sandbox descends from the keeper, which reports after
 * each command whether others are left; otherwise /proc is read. Unknown counts as true. */
static bool has_processes(const csn_runtime *rt, csn_protected *g)
{
    char path[64], one;

    if (rt->spawns == rt->alone_after && !rt->connected && !rt->detached)
        return false;
    if (g->children < 0 && rt->keeper_pid > 0) {
        snprintf(path, sizeof(path), "/proc/%lld/task/%lld/children", (long long)rt->keeper_pid,
                 (long long)rt->keeper_pid);
        g->children = open(path, O_RDONLY | O_CLOEXEC);
    }
    return g->children < 0 || pread(g->children, &one, 1, 0) != 0;
}

/* Needs the lock. */
static void begin_change(csn_runtime *rt, csn_protected *g)
{
    bool shared = g->stamp >= 0;

    g->change_count++;
    csn_protected_stamp_read(g);
    if (g->clean && !(shared && has_processes(rt, g)))
        csn_changed_now(&g->since);
    if (g->clean || shared)
        csn_protected_marks_set(rt, g);
    g->clean = false;
    csn_protected_stamp_write(g);
}

/* The lock is not held during a scan. */
static void prepare(csn_runtime *rt, csn_protected *g)
{
    pthread_mutex_lock(&g->lock);
    bool prepared = g->prepared;
    pthread_mutex_unlock(&g->lock);
    if (!prepared)
        csn_protected_prepare(rt);
}

void csn_protected_note_change(csn_runtime *rt)
{
    csn_protected *g = protected_of(rt);

    if (g->tree_count == 0)
        return;
    prepare(rt, g);
    pthread_mutex_lock(&g->lock);
    if (g->clean || g->stamp >= 0)
        begin_change(rt, g);
    else
        g->change_count++;
    pthread_mutex_unlock(&g->lock);
}

static bool is_later(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

/* Scans after a command that began at `began`, or after a background process (NULL). `since`
 * moves to the start of the scan only if no process of the sandbox ran before, during and after
 * it. Another handle may have moved it beyond `began`. */
static int scan_after(csn_runtime *rt, csn_protected *g, const struct timespec *began,
                      const csn_deny_sink *denials)
{
    struct timespec start;

    pthread_mutex_lock(&g->scan_lock);
    pthread_mutex_lock(&g->lock);
    csn_protected_stamp_read(g);
    bool later = began && is_later(&g->since, began);
    struct timespec since = later ? *began : g->since;
    bool nothing = !began && g->clean;
    bool quiet = g->running == (began ? 1u : 0u) && !has_processes(rt, g);
    uint64_t change_count = g->change_count;
    pthread_mutex_unlock(&g->lock);
    csn_changed_now(&start);
    int rc = nothing ? -EALREADY : csn_protected_scan(rt, &since, denials);
    pthread_mutex_lock(&g->lock);
    if (began)
        g->running--; /* only now: another scan must not treat its changes as scanned */
    if (rc == 0) {
        bool shared = g->stamp >= 0; /* other handles may have started something */
        g->clean =
            quiet && change_count == g->change_count && !(shared && has_processes(rt, g));
        g->since = g->clean ? start : since;
        csn_protected_stamp_write(g);
        if (g->clean)
            csn_protected_marks_clear(g);
    }
    pthread_mutex_unlock(&g->lock);
    pthread_mutex_unlock(&g->scan_lock);
    return nothing ? 0 : rc;
}

void csn_protected_final_scan(csn_runtime *rt, const csn_deny_sink *denials)
{
    csn_protected *g = protected_of(rt);

    if (!g || g->tree_count == 0)
        return;
    pthread_mutex_lock(&g->scan_lock);
    pthread_mutex_lock(&g->lock);
    csn_protected_stamp_read(g);
    struct timespec since = g->since;
    bool clean = g->clean;
    g->clean = true;
    pthread_mutex_unlock(&g->lock);
    int rc = clean ? 0 : csn_protected_scan(rt, &since, denials);
    if (rc < 0) /* the mark stays: the next sandbox on this workspace scans it */
        csn_log_debug("workspace of '%s' could not be scanned at the end", rt->id);
    else if (!clean)
        csn_protected_marks_clear(g);
    pthread_mutex_unlock(&g->scan_lock);
}

/* ---- what earlier sandboxes left ---- */

static void keep_found(void *ctx, const csn_denial *d)
{
    csn_protected *g = ctx;
    csn_protected_found *one = csn_arena_alloc(g->arena, sizeof(*one));

    if (!one)
        return;
    *one = (csn_protected_found){.next = g->found,
                                 .denial = {.op = csn_arena_strdup(g->arena, d->op),
                                            .target = csn_arena_strdup(g->arena, d->target),
                                            .resolved = csn_arena_strdup(g->arena, d->resolved),
                                            .rule = csn_arena_strdup(g->arena, d->rule),
                                            .source = csn_arena_strdup(g->arena, d->source),
                                            .hint = csn_arena_strdup(g->arena, d->hint)}};
    g->found = one;
}

void csn_protected_finish(csn_runtime *rt)
{
    csn_protected *g = protected_of(rt);
    const csn_deny_sink sink = {keep_found, g};

    if (csn_protected_scan(rt, NULL, &sink) < 0)
        csn_log_debug("changes of an earlier sandbox could not be scanned; tried again after "
                      "each command");
}

/* Needs the lock. */
static void report_found(csn_protected *g, const csn_deny_sink *denials)
{
    for (; denials && g->found; g->found = g->found->next)
        denials->tell(denials->ctx, &g->found->denial);
}

/* ---- denials ---- */

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '-' || c == '.';
}

/* The path in a line, as whole components: a target may have a name as short as `x`. */
static const char *find_path(const char *line, size_t len, const char *path, size_t n)
{
    const char *end = line + len;

    for (const char *at = line; (at = memmem(at, (size_t)(end - at), path, n)); at++)
        if ((at == line || !is_name_byte(at[-1])) && (at + n == end || !is_name_byte(at[n])))
            return at;
    return NULL;
}

/* True if a line of the output names the place in an error about a read-only or busy file. */
static bool is_refused_in(const csn_output *text, const csn_protected_place *p)
{
    static const char *const words[] = {"resource busy", "Read-only file system"};
    const char *end = (const char *)text->data + text->len;
    size_t n = strlen(p->path);

    for (const char *line = text->data; line && line < end;) {
        const char *eol = memchr(line, '\n', (size_t)(end - line));
        size_t len = (size_t)((eol ? eol : end) - line);
        bool is_error = memmem(line, len, words[0], strlen(words[0])) ||
                        memmem(line, len, words[1], strlen(words[1]));
        const char *at = is_error ? find_path(line, len, p->path, n) : NULL;
        /* Files in a directory that is only pinned can be changed. */
        if (at && (p->rule || at + n == line + len || at[n] != '/'))
            return true;
        line += len + 1;
    }
    return false;
}

static void report_refused(const csn_protected *g, const csn_deny_sink *denials,
                           const csn_output *out, const csn_output *text)
{
    static const char pinned[] = "a directory with protected files cannot be moved or removed";

    for (size_t i = 0; i < g->tree_count; i++) {
        const csn_protected_tree *t = &g->trees[i];
        for (size_t n = 0; n < t->place_count; n++) {
            const csn_protected_place *p = &t->places[n];
            if (!p->absent && !p->link && (is_refused_in(out, p) || is_refused_in(text, p)))
                csn_protected_report(denials, t, p->path, p->rule ? p->rule : pinned, NULL);
        }
    }
}

/* Filters the general explanation, which would treat a protected file as part of a read-only
 * share and suggest a grant that is too wide. */
typedef struct filter {
    const csn_protected *g;
    const csn_deny_sink *next;
} filter;

static void report_others(void *ctx, const csn_denial *d)
{
    const filter *f = ctx;
    const char *path = d->resolved ? d->resolved : d->target;

    for (size_t i = 0; path && strcmp(d->op, "write") == 0 && i < f->g->tree_count; i++) {
        const char *below = csn_path_below(path, f->g->trees[i].inside);
        if (below && csn_protected_rule(&f->g->trees[i], below, CSN_OP_TREE, NULL) &&
            !csn_protected_is_excepted(f->g, path))
            return;
    }
    f->next->tell(f->next->ctx, d);
}

csn_status csn_protected_explain(void *state, const csn_exec_req *req, const csn_exec_end *end,
                                 const csn_output *out, const csn_output *text, csn_error **err)
{
    filter f = {.g = protected_of(state), .next = req->denials};
    const csn_deny_sink others = {report_others, &f};
    csn_exec_req own = *req;

    if (!req->denials)
        return CSN_OK;
    report_refused(f.g, req->denials, out, text);
    own.denials = &others;
    return csn_jail_explain(state, &own, end, out, text, err);
}

/* ---- commands ---- */

void csn_protected_command_begin(csn_runtime *rt, struct timespec *ret_began)
{
    csn_protected *g = protected_of(rt);

    if (g->tree_count == 0)
        return;
    prepare(rt, g);
    csn_changed_now(ret_began);
    pthread_mutex_lock(&g->lock);
    begin_change(rt, g);
    g->running++;
    pthread_mutex_unlock(&g->lock);
}

int csn_protected_command_end(csn_runtime *rt, const struct timespec *began,
                              const csn_deny_sink *denials)
{
    csn_protected *g = protected_of(rt);

    if (g->tree_count == 0)
        return 0;
    pthread_mutex_lock(&g->lock);
    report_found(g, denials);
    pthread_mutex_unlock(&g->lock);
    return scan_after(rt, g, began, denials);
}

void csn_protected_rescan(void *state, const csn_deny_sink *denials)
{
    csn_protected *g = protected_of(state);

    if (g->tree_count > 0)
        (void)scan_after(state, g, NULL, denials);
}
