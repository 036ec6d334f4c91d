/* denials.c: collects the denials of one command.
 *
 * The backend adds them through csn_deny_sink, the core directly. The command may have chosen
 * the texts: their number is bounded, and callers escape them before printing. Invariants:
 * every text is a copy; running out of memory is recorded and fails the call. */
#include "core/denials.h"

#include <errno.h>
#include <string.h>

#include "base/strv.h"

static bool copied(const char *from, const char *to)
{
    return !from || to;
}

int csn_denial_copy(csn_arena *a, const csn_denial *from, csn_denial *to)
{
    *to = (csn_denial){.op = csn_arena_strdup(a, from->op),
                       .target = csn_arena_strdup(a, from->target),
                       .resolved = csn_arena_strdup(a, from->resolved),
                       .rule = csn_arena_strdup(a, from->rule),
                       .source = csn_arena_strdup(a, from->source),
                       .hint = csn_arena_strdup(a, from->hint)};
    return to->op && copied(from->target, to->target) && copied(from->resolved, to->resolved) &&
                   copied(from->rule, to->rule) && copied(from->source, to->source) &&
                   copied(from->hint, to->hint)
               ? 0
               : ENOMEM;
}

static bool same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Of the network: the later one names no host, or the same host with a port (a lookup comes
 * before the connection that the program complains about). */
static bool covers(const csn_denial *first, const csn_denial *later)
{
    size_t len = first->target ? strlen(first->target) : 0;

    if (strcmp(first->op, "net") != 0 || strcmp(later->op, "net") != 0)
        return false;
    return !later->target || (len > 0 && strncmp(first->target, later->target, len) == 0 &&
                              later->target[len] == ':');
}

static bool is_known(const csn_denials *ds, const csn_denial *d)
{
    for (size_t i = 0; i < ds->count; i++) {
        const csn_denial *k = &ds->items[i];
        if (covers(k, d) ||
            (same(k->op, d->op) && same(k->target, d->target) && same(k->rule, d->rule)))
            return true;
    }
    return false;
}

void csn_denials_add(void *ctx, const csn_denial *d)
{
    csn_denials *ds = ctx;

    if (ds->failed || ds->count == CSN_DENIALS_MAX || !d->op || is_known(ds, d))
        return;
    if (!ds->items)
        ds->items = csn_arena_array(ds->arena, CSN_DENIALS_MAX, sizeof(*ds->items));
    if (!ds->items || csn_denial_copy(ds->arena, d, &ds->items[ds->count]) != 0)
        ds->failed = true;
    else
        ds->count++;
}

void csn_denials_add_live(void *ctx, const csn_denial *d)
{
    const csn_live_denials *live = ctx;
    size_t before = live->found->count;

    csn_denials_add(live->found, d);
    if (live->fn && live->found->count > before)
        live->fn(live->ctx, &live->found->items[before]);
}

void csn_denials_add_unrouted(csn_denials *ds, const csn_exec_end *end)
{
    static const csn_denial d = {.op = "net",
                                 .rule = "network none; the kernel does not tell the address",
                                 .source = "config.net",
                                 .hint = "--allow HOST:PORT"};

    if (end->unrouted)
        csn_denials_add(ds, &d);
}

void csn_denials_add_limit(csn_denials *ds, const csn_exec_end *end)
{
    static const struct {
        uint32_t how;
        const char *text; /* how its message starts */
        const char *name, *source, *hint;
    } rows[] = {{CSN_END_MEMORY, "", "memory", "config.memory_max", "--memory SIZE"},
                {CSN_END_PIDS, "", "pids", "config.pids_max", "--pids N"},
                {CSN_END_DISK, "file", "disk", "config.file_max", "--limit-file SIZE"},
                {CSN_END_DISK, "disk", "disk", "config.disk_max", "--disk SIZE"}};

    for (size_t i = 0; end->message[0] && i < sizeof(rows) / sizeof(rows[0]); i++) {
        csn_denial d = {.op = "limit",
                        .target = rows[i].name,
                        .rule = end->message,
                        .source = rows[i].source,
                        .hint = rows[i].hint};
        if (rows[i].how == end->how && csn_str_starts(end->message, rows[i].text))
            csn_denials_add(ds, &d);
    }
}

void csn_denials_add_env(csn_denials *ds, const char *const *env)
{
    static const csn_denial home = {.op = "env",
                                    .target = "HOME",
                                    .rule = "HOME is the sandbox's home",
                                    .source = "sandbox",
                                    .hint = "--home DIR when the sandbox is made"};

    for (size_t i = 0; env && env[i]; i++)
        if (csn_str_starts(env[i], "HOME="))
            csn_denials_add(ds, &home);
}
