/* explain.c: from what a failed command printed to the grants it lacked.
 *
 * Called by the core once after a command that failed in a sandbox with walls. The command
 * controls every byte of the text, the host's user everything else. What must hold: no denial
 * without a fact (the host has it, this user could use it there, the sandbox keeps it back);
 * bounded work (the first and last 128 KiB, at most CSN_EXPLAIN_ASKS questions); no text of the
 * command reaches a hint but as a path that exists or a host name of plain letters.
 *
 * Lines are read from the last to the first: what a program prints last is what it failed of,
 * and the questions must not be used up by a noisy start. */
#include "policy/explain.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/path.h"
#include "base/strv.h"
#include "policy/explain_parts.h"

#define LOOKED_AT    (256u * 1024u)
#define LINES_BEFORE 12u /* of a message that takes several lines */

/* A stretch of whole lines. */
typedef struct stretch {
    const char *start, *end;
} stretch;

/* Something that is there for both, and writable only on the host. */
static bool is_held_back(const csn_explain_fact *f)
{
    return f->inside && !f->inside_writable && f->host && f->host_writable;
}

/* Something that is writable on the host, and not there inside. */
static bool is_left_out(const csn_explain_fact *f)
{
    return !f->inside && f->host && f->host_writable;
}

/* "cp: cannot create regular file '/data/': Not a directory": what is in the way of a write is
 * that the directory is missing. */
static bool is_into_dir(const csn_explaining *w, csn_scrap s, const csn_asked *a)
{
    return s.at[s.len - 1] == '/' && a->fact.dir && csn_line_creates(&w->line);
}

static bool judge_missing(csn_explaining *w, csn_scrap s, const csn_asked *a, bool exec)
{
    bool into = is_into_dir(w, s, a);

    if (!into && csn_explain_deny_missing(w, s, a, exec))
        return true;
    /* What was to be made needs a directory, or those above it: only then is a path that is
     * nowhere ours. A shell does not say what it wanted with it. */
    bool made = csn_line_creates(&w->line) || (!exec && csn_line_is_redirect(&w->line));
    if (!into && (a->fact.host || a->fact.inside || !made))
        return false;
    const csn_asked *dir = into ? a : csn_explain_ask_above(w, a->path);
    if (!dir || !is_left_out(&dir->fact))
        return false;
    csn_explain_deny_write(w, s, dir, a->path);
    return true;
}

static bool judge_read_only(csn_explaining *w, csn_scrap s, const csn_asked *a)
{
    const csn_asked *where = a;

    if (!a->fact.inside && !a->fact.host)
        where = csn_explain_ask_above(w, a->path);
    if (!where || (!is_held_back(&where->fact) && !is_left_out(&where->fact)))
        return false;
    csn_explain_deny_write(w, s, where, a->path);
    return true;
}

/* Permissions of files are the command's own business, unless the host would have allowed it:
 * a read of what cannot be read here, or a write where the line says that it was one. */
static bool judge_access(csn_explaining *w, csn_scrap s, const csn_asked *a, bool exec)
{
    if (csn_explain_deny_missing(w, s, a, exec))
        return true;
    bool fresh = !a->fact.inside && !a->fact.host;
    return (fresh || csn_line_creates(&w->line)) && judge_read_only(w, s, a);
}

static bool judge(csn_explaining *w, csn_says what, csn_scrap s, bool exec)
{
    const csn_asked *a = csn_explain_ask_scrap(w, s);

    if (!a)
        return false;
    if (what == CSN_SAYS_MISSING)
        return judge_missing(w, s, a, exec);
    return what == CSN_SAYS_READ_ONLY ? judge_read_only(w, s, a) : judge_access(w, s, a, exec);
}

static csn_scrap scrap_of(const char *s)
{
    return (csn_scrap){s, strlen(s)};
}

/* A script that is there, but not what its first line names. */
static void explain_interpreter(csn_explaining *w, csn_scrap script)
{
    const csn_asked *a = csn_explain_ask_scrap(w, script);

    if (!a)
        return;
    if (csn_explain_deny_missing(w, script, a, true) || !a->fact.needs)
        return;
    csn_scrap needs = scrap_of(a->fact.needs);
    csn_explain_deny_missing(w, needs, csn_explain_ask_scrap(w, needs), true);
}

static void explain_command(csn_explaining *w, csn_scrap name)
{
    if (name.len == 0)
        return;
    if (memchr(name.at, '/', name.len))
        explain_interpreter(w, name);
    else
        csn_explain_deny_missing(w, name, csn_explain_search(w, name, w->in->host_path), true);
}

static void explain_library(csn_explaining *w, csn_scrap name)
{
    if (name.len == 0)
        return;
    if (memchr(name.at, '/', name.len))
        csn_explain_deny_missing(w, name, csn_explain_ask_scrap(w, name), false);
    else
        csn_explain_deny_missing(w, name, csn_explain_search(w, name, w->in->host_libs), false);
}

/* rustup's programs look for their toolchains in the home, which is another one inside: a grant
 * alone does not help. Only a path that a shell takes as it is becomes part of the hint. */
static void explain_toolchain(csn_explaining *w)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-";
    const char *home = w->in->host_home;
    const char *dir = home ? csn_arena_printf(w->arena, "%s/.rustup", home) : NULL;
    const csn_asked *a =
        dir && dir[strspn(dir, plain)] == '\0' ? csn_explain_ask(w, dir) : NULL;

    if (!a || !a->fact.host || !a->fact.dir || !a->fact.host_readable || a->fact.rule)
        return;
    bool there = a->fact.inside && a->fact.inside_readable;
    const char *grant = there ? "" : csn_explain_option(w, CSN_OP_READ, dir);
    csn_denial d = {.op = "read",
                    .target = dir,
                    .resolved = dir,
                    .rule = there ? "the home inside is another one" : "not granted",
                    .hint = csn_arena_printf(w->arena, "%s%s--env RUSTUP_HOME=%s",
                                             grant ? grant : "", there ? "" : " ", dir)};
    w->out_of_memory = w->out_of_memory || !d.hint;
    csn_explain_deny(w, &d);
}

static void explain_net(csn_explaining *w, const csn_said *said)
{
    char host[272];

    if (!w->in->net_rule)
        return;
    csn_host how = csn_line_host(&w->line, said, host, sizeof(host));
    if (how == CSN_HOST_NONE)
        w->nameless_net = true;
    if (how != CSN_HOST_NAMED)
        return;
    const char *refusal = csn_explain_host_refusal(host);
    csn_denial d = {.op = "net",
                    .target = csn_explain_keep(w, host),
                    .rule = w->in->net_rule,
                    .source = "config.net",
                    .hint = refusal ? refusal : csn_explain_option(w, CSN_OP_NET, host)};
    csn_explain_deny(w, &d);
}

/* Sizes in the largest unit that shows them whole, as the options take them. */
static const char *size_text(csn_explaining *w, uint64_t n)
{
    static const char units[] = {'\0', 'K', 'M', 'G', 'T'};
    size_t u = 0;

    while (n >= 1024 && n % 1024 == 0 && u + 1 < sizeof(units)) {
        n /= 1024;
        u++;
    }
    const char *text = csn_arena_printf(w->arena, "%" PRIu64 "%.1s", n, &units[u]);
    w->out_of_memory = w->out_of_memory || !text;
    return text ? text : "";
}

/* How much would be enough is not known: twice as much is a start. */
static void explain_limit(csn_explaining *w, const char *name, uint64_t max,
                          const char *option_name)
{
    if (max == 0)
        return;
    const char *now = size_text(w, max),
               *more = size_text(w, max > UINT64_MAX / 2 ? max : 2 * max);
    csn_denial d = {.op = "limit",
                    .target = name,
                    .rule = csn_arena_printf(w->arena, "%s limit %s", name, now),
                    .source = csn_arena_printf(w->arena, "config.%s_max", name),
                    .hint = csn_arena_printf(w->arena, "%s %s", option_name, more)};

    w->out_of_memory = w->out_of_memory || !d.rule || !d.source || !d.hint;
    csn_explain_deny(w, &d);
}

static void deny_syscall(csn_explaining *w, const char *target)
{
    csn_denial d = {.op = "syscall", .target = target, .rule = "system call refused"};
    csn_explain_deny(w, &d);
}

static void explain_syscall(csn_explaining *w)
{
    const char *call = csn_line_syscall(&w->line);

    if (call && w->in->refuses && w->in->refuses(w->in->ctx, call))
        deny_syscall(w, call);
}

/* Cuts the last line off the stretch, without what separates it. Carriage returns separate too:
 * progress bars are written over. */
static csn_scrap last_line(stretch *s)
{
    const char *end = s->end, *start = end;

    while (start > s->start && start[-1] != '\n' && start[-1] != '\r')
        start--;
    s->end = start > s->start ? start - 1 : start;
    return (csn_scrap){start, (size_t)(end - start)};
}

/* Does one of the lines before say so? A traceback names the caller above the error. */
static bool was_said(stretch rest, const char *words)
{
    for (unsigned i = 0; i < LINES_BEFORE && rest.end > rest.start; i++) {
        csn_scrap l = last_line(&rest);
        if (memmem(l.at, l.len, words, strlen(words)))
            return true;
        if (l.len >= 9 && memcmp(l.at, "Traceback", 9) == 0)
            break;
    }
    return false;
}

static bool explain_paths(csn_explaining *w, const csn_line *l, const csn_said *said, bool exec)
{
    csn_scrap paths[CSN_SCRAPS];
    size_t n = csn_line_paths(l, said, paths);

    for (size_t i = 0; i < n; i++)
        if (judge(w, said->what, paths[i], exec))
            return true;
    return false;
}

/* Rust programs print a chain of causes: the path is in a line above "(os error 2)". */
static void explain_cause(csn_explaining *w, const csn_said *said, stretch rest)
{
    for (unsigned i = 0; i < 4 && rest.end > rest.start; i++) {
        csn_scrap raw = last_line(&rest);
        if (!csn_line_take(&w->before, raw.at, raw.len) || !memchr(raw.at, '/', raw.len))
            continue;
        csn_said all = {.what = said->what, .at = w->before.len, .end = w->before.len};
        explain_paths(w, &w->before, &all, false);
        return;
    }
}

static void explain_file(csn_explaining *w, const csn_said *said, stretch rest)
{
    const csn_line *l = &w->line;
    bool script = memmem(l->low, l->len, "bad interpreter", 15) != NULL;
    bool exec = script || (w->in->exit_code == 126 && said->what == CSN_SAYS_ACCESS) ||
                (w->in->exit_code == 127 && csn_line_is_shell(l));
    bool runs = csn_line_is_runner(l) && csn_str_starts(l->low + said->at, "no such file");

    if (explain_paths(w, l, said, exec || runs))
        return;
    if (memmem(l->low, l->len, "(os error", 9) && strspn(l->text, " ") == said->at)
        explain_cause(w, said, rest);
    if (said->what != CSN_SAYS_MISSING)
        return;
    if (runs || script || was_said(rest, "_execute_child")) {
        csn_scrap names[CSN_SCRAPS];
        /* A bare name is a command only here; elsewhere it is a file that is not there. One
         * with a slash may be a script that is there, without what it needs. */
        if (csn_line_paths(l, said, names) > 0)
            explain_command(w, names[0]);
    }
}

static void explain_line(csn_explaining *w, stretch rest)
{
    const csn_explain_in *in = w->in;
    csn_said said = csn_line_says(&w->line);

    switch (said.what) {
    case CSN_SAYS_NOTHING:
        break;
    case CSN_SAYS_NO_COMMAND:
    case CSN_SAYS_NO_INTERPRETER:
        explain_command(w, csn_line_name(&w->line, &said));
        break;
    case CSN_SAYS_NO_TOOLCHAIN:
        explain_toolchain(w);
        break;
    case CSN_SAYS_NO_LIBRARY:
        explain_library(w, csn_line_name(&w->line, &said));
        break;
    case CSN_SAYS_MISSING:
    case CSN_SAYS_READ_ONLY:
    case CSN_SAYS_ACCESS:
        explain_file(w, &said, rest);
        break;
    case CSN_SAYS_NOT_PERMITTED:
        explain_syscall(w);
        break;
    case CSN_SAYS_NET:
        explain_net(w, &said);
        break;
    case CSN_SAYS_DISK:
        explain_limit(w, "disk", in->disk_max, "--disk");
        break;
    case CSN_SAYS_FILE:
        explain_limit(w, "file", in->file_max, "--limit-file");
        break;
    case CSN_SAYS_MEMORY:
        explain_limit(w, "memory", in->memory_max, "--memory");
        break;
    case CSN_SAYS_PIDS:
        explain_limit(w, "pids", in->pids_max, "--pids");
        break;
    }
}

static void explain_stretch(csn_explaining *w, stretch s)
{
    while (s.end > s.start && w->count < CSN_EXPLAIN_DENIALS && !w->out_of_memory) {
        csn_scrap raw = last_line(&s);
        /* the shortest phrase has five letters */
        if (raw.len >= 5 && csn_line_take(&w->line, raw.at, raw.len))
            explain_line(w, s);
    }
}

/* Half a line is none: the part of a path that is left would be another path. */
static stretch whole_lines(const char *data, size_t from, size_t to, bool from_cut, bool to_cut)
{
    while (from_cut && from < to && data[from] != '\n')
        from++;
    while (to_cut && to > from && data[to - 1] != '\n')
        to--;
    return (stretch){data + from, data + to};
}

static void explain_text(csn_explaining *w, const csn_explain_text *t, size_t budget)
{
    bool cut = t->cut;
    size_t half = budget / 2, head = t->head, tail = t->len;

    if (!t->data || t->len == 0)
        return;
    if (!cut && t->len <= budget) {
        explain_stretch(w, (stretch){t->data, t->data + t->len});
        return;
    }
    if (!cut || head > t->len)
        head = cut ? t->len : half;
    tail = t->len - head < half ? head : t->len - half;
    head = head < half ? head : half;
    explain_stretch(w, whole_lines(t->data, tail, t->len, true, false));
    explain_stretch(w, whole_lines(t->data, 0, head, false, true));
}

/* What needs no text: how it ended, and the program that could not be started. */
static void explain_end(csn_explaining *w)
{
    const csn_explain_in *in = w->in;
    csn_scrap argv0 = in->argv0 ? scrap_of(in->argv0) : (csn_scrap){"", 0};

    if (w->nameless_net) {
        csn_denial d = {
            .op = "net", .rule = in->net_rule, .source = "config.net", .hint = "--allow HOST"};
        bool named = false;
        for (size_t i = 0; i < w->count; i++)
            named = named || strcmp(w->items[i].op, "net") == 0;
        if (!named)
            csn_explain_deny(w, &d);
    }
    if (!csn_scrap_clean(argv0))
        argv0.len = 0;
    if (in->signal == SIGSYS || in->exit_code == 128 + SIGSYS)
        deny_syscall(w, argv0.len > 0 ? csn_explain_scrap_text(w, argv0) : NULL);
    if (in->exit_code == 127 && w->count == 0)
        explain_command(w, argv0);
}

csn_status csn_explain(const csn_explain_in *in, csn_explain_out *ret, csn_error **err)
{
    CSN_CLEANUP(csn_arena_freep) csn_arena *arena = NULL;
    bool both = in->err.len > 0 && in->out.len > 0;

    if (!in->cwd || in->cwd[0] != '/' || !in->look)
        return csn_fail(err, CSN_INVALID, "explain: no working directory, or nobody to ask");
    if (in->exit_code == 0 && in->signal == 0) {
        *ret = (csn_explain_out){.count = 0};
        return CSN_OK;
    }
    csn_autofree csn_explaining *w = calloc(1, sizeof(*w));
    arena = csn_arena_new();
    if (!w || !arena)
        return csn_fail(err, CSN_NOMEM, "explain");
    w->in = in;
    w->arena = arena;
    explain_text(w, &in->out, both ? LOOKED_AT / 2 : LOOKED_AT);
    explain_text(w, &in->err, both ? LOOKED_AT / 2 : LOOKED_AT);
    explain_end(w);
    if (w->out_of_memory)
        return csn_fail(err, CSN_NOMEM, "explain");
    *ret = (csn_explain_out){.count = w->count};
    for (size_t i = 0; i < w->count; i++)
        ret->items[i] = w->items[w->count - 1 - i];
    ret->arena = CSN_STEAL(arena);
    return CSN_OK;
}

void csn_explain_release(csn_explain_out *out)
{
    csn_arena_free(out->arena);
    *out = (csn_explain_out){.count = 0};
}
