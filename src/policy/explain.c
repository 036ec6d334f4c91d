/* explain.c: derive the denials from the output of a failed command.
 *
 * The command controls every byte of the text. Invariants: no denial without a fact (the
 * sandbox does not show that path, or the command may not use what it sees there); work is
 * bounded (the first and last 128 KiB, at most CSN_EXPLAIN_PROBES_MAX paths); text of the
 * command reaches a hint only as a quoted path or a host name of plain letters.
 *
 * Lines are read from the last to the first: a program prints the reason of its failure last,
 * and a noisy start must not use up the probes. */
#include "policy/explain.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/path.h"
#include "base/strv.h"
#include "policy/explain_internal.h"

#define LOOKED_AT    (256u * 1024u)
#define LINES_BEFORE 12u /* searched for the rest of a message */

typedef struct stretch {
    const char *start, *end;
} stretch;

/* Exists inside and on the host, writable only on the host. */
static bool is_held_back(const csn_explain_fact *f)
{
    return f->inside && !f->inside_writable && f->host && f->host_writable;
}

/* Absent inside, and writable on the host or unknown. */
static bool is_left_out(const csn_explain_fact *f)
{
    return f->hidden || (!f->inside && f->host && f->host_writable);
}

/* "cp: cannot create regular file '/data/': Not a directory": the directory is missing
 * inside. */
static bool is_into_dir(const csn_explain_state *w, csn_text_span s, const csn_probed_path *a)
{
    return s.at[s.len - 1] == '/' && (a->fact.dir || a->fact.hidden) &&
           csn_line_creates(&w->line);
}

static bool explain_missing(csn_explain_state *w, csn_text_span s, const csn_probed_path *a,
                            bool exec)
{
    bool into = is_into_dir(w, s, a);
    /* A path that exists on neither side is a denial only if it was to be created in a
     * directory that is missing inside. A shell does not print which operation failed; in /etc
     * it is reading, since no option permits to write there. */
    bool redirect = !exec && csn_line_is_redirect(&w->line) && !csn_path_below(a->path, "/etc");
    bool made = csn_line_creates(&w->line) || redirect;

    if (!into && !(made && a->fact.hidden) && csn_explain_deny_missing(w, s, a, exec))
        return true;
    if (!into && (a->fact.host || a->fact.inside || !made))
        return false;
    const char *named = a->fact.hidden && a->fact.resolved ? a->fact.resolved : a->path;
    const csn_probed_path *dir = into ? a : csn_explain_probe_above(w, named);
    if (!dir || !is_left_out(&dir->fact))
        return false;
    csn_explain_deny_write(w, s, dir, a->path);
    return true;
}

static bool explain_read_only(csn_explain_state *w, csn_text_span s, const csn_probed_path *a)
{
    const csn_probed_path *where = a;

    if (!a->fact.inside && !a->fact.host)
        where = csn_explain_probe_above(w, a->path);
    if (a->fact.hidden && where && !where->fact.hidden)
        where = a; /* to be created in a directory that the jail made */
    if (!where || (!is_held_back(&where->fact) && !is_left_out(&where->fact)))
        return false;
    csn_explain_deny_write(w, s, where, a->path);
    return true;
}

/* A refused permission is a denial only if the host would permit the access: a read of a path
 * that cannot be read inside, or a write in a line about writing. */
static bool explain_access(csn_explain_state *w, csn_text_span s, const csn_probed_path *a,
                           bool exec)
{
    if (!(a->fact.hidden && csn_line_creates(&w->line)) &&
        csn_explain_deny_missing(w, s, a, exec))
        return true;
    bool fresh = !a->fact.inside && !a->fact.host;
    return (fresh || csn_line_creates(&w->line)) && explain_read_only(w, s, a);
}

static bool explain_path(csn_explain_state *w, csn_phrase_kind what, csn_text_span s, bool exec)
{
    const csn_probed_path *a = csn_explain_probe_span(w, s);

    if (!a)
        return false;
    if (what == CSN_PHRASE_MISSING)
        return explain_missing(w, s, a, exec);
    return what == CSN_PHRASE_READ_ONLY ? explain_read_only(w, s, a)
                                        : explain_access(w, s, a, exec);
}

static csn_text_span span_of(const char *s)
{
    return (csn_text_span){s, strlen(s)};
}

/* The script exists; its interpreter may not. */
static void explain_interpreter(csn_explain_state *w, csn_text_span script)
{
    const csn_probed_path *a = csn_explain_probe_span(w, script);

    if (!a)
        return;
    if (csn_explain_deny_missing(w, script, a, true) || !a->fact.needs)
        return;
    csn_text_span needs = span_of(a->fact.needs);
    csn_explain_deny_missing(w, needs, csn_explain_probe_span(w, needs), true);
}

/* A bare name. The directories of the host's PATH that the sandbox does not show are not named:
 * the command does not know them. */
static void explain_name(csn_explain_state *w, csn_text_span name)
{
    const csn_explain_in *in = w->in;
    const csn_probed_path *a = csn_explain_search(w, name, in->path);
    bool same_path = in->path && in->host_path && strcmp(in->path, in->host_path) == 0;

    if (csn_explain_deny_missing(w, name, a, true) || !in->host_path || same_path)
        return;
    csn_denial d = {.op = "exec",
                    .target = csn_explain_span_text(w, name),
                    .rule = CSN_EXPLAIN_OUTSIDE,
                    .hint = "--read DIRECTORY"};
    csn_explain_deny(w, &d);
}

static void explain_command(csn_explain_state *w, csn_text_span name)
{
    if (name.len == 0)
        return;
    if (memchr(name.at, '/', name.len))
        explain_interpreter(w, name);
    else
        explain_name(w, name);
}

static void explain_library(csn_explain_state *w, csn_text_span name)
{
    if (name.len == 0)
        return;
    if (memchr(name.at, '/', name.len))
        csn_explain_deny_missing(w, name, csn_explain_probe_span(w, name), false);
    else
        csn_explain_deny_missing(w, name, csn_explain_search(w, name, w->in->libs), false);
}

/* rustup's programs look for toolchains in HOME, which is a different directory inside, so the
 * hint also sets RUSTUP_HOME. The shell of its reader knows the home. */
static void explain_toolchain(csn_explain_state *w)
{
    csn_denial d = {.op = "read",
                    .target = "~/.rustup",
                    .rule = CSN_EXPLAIN_OUTSIDE,
                    .hint = "--read \"$HOME/.rustup\" --env \"RUSTUP_HOME=$HOME/.rustup\""};

    csn_explain_deny(w, &d);
}

static void explain_net(csn_explain_state *w, const csn_phrase_match *match)
{
    char host[272];

    if (!w->in->net_rule)
        return;
    csn_host how = csn_line_host(&w->line, match, host, sizeof(host));
    if (how == CSN_HOST_NONE)
        w->nameless_net = true;
    if (how != CSN_HOST_NAMED)
        return;
    const char *refusal = csn_explain_host_refusal(host);
    csn_denial d = {.op = "net",
                    .target = csn_explain_strdup(w, host),
                    .rule = w->in->net_rule,
                    .source = "config.net",
                    .hint = refusal ? refusal : csn_explain_option(w, CSN_OP_NET, host)};
    csn_explain_deny(w, &d);
}

/* The size in the largest unit that divides it, in the syntax of the options. */
static const char *size_text(csn_explain_state *w, uint64_t n)
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

/* The command's need is unknown, so the hint offers twice the limit. */
static void explain_limit(csn_explain_state *w, const char *name, uint64_t max,
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

static void deny_syscall(csn_explain_state *w, const char *target)
{
    csn_denial d = {.op = "syscall", .target = target, .rule = "system call refused"};
    csn_explain_deny(w, &d);
}

static void explain_syscall(csn_explain_state *w)
{
    const char *call = csn_line_syscall(&w->line);

    if (call && w->in->refuses && w->in->refuses(w->in->ctx, call))
        deny_syscall(w, call);
}

/* Removes the last line from the stretch and returns it without its separator. A carriage
 * return separates too, as progress bars use it. */
static csn_text_span last_line(stretch *s)
{
    const char *end = s->end, *start = end;

    while (start > s->start && start[-1] != '\n' && start[-1] != '\r')
        start--;
    s->end = start > s->start ? start - 1 : start;
    return (csn_text_span){start, (size_t)(end - start)};
}

/* Is `words` in one of the lines before? A traceback names the caller above the error. */
static bool lines_contain(stretch rest, const char *words)
{
    for (unsigned i = 0; i < LINES_BEFORE && rest.end > rest.start; i++) {
        csn_text_span l = last_line(&rest);
        if (memmem(l.at, l.len, words, strlen(words)))
            return true;
        if (l.len >= 9 && memcmp(l.at, "Traceback", 9) == 0)
            break;
    }
    return false;
}

static bool explain_paths(csn_explain_state *w, const csn_line *l,
                          const csn_phrase_match *match, bool exec)
{
    csn_text_span paths[CSN_SPANS_MAX];
    size_t n = csn_line_paths(l, match, paths);

    for (size_t i = 0; i < n; i++)
        if (explain_path(w, match->what, paths[i], exec))
            return true;
    return false;
}

/* Rust programs print a chain of causes: the path is in a line above "(os error 2)". */
static void explain_cause(csn_explain_state *w, const csn_phrase_match *match, stretch rest)
{
    for (unsigned i = 0; i < 4 && rest.end > rest.start; i++) {
        csn_text_span raw = last_line(&rest);
        if (!csn_line_set(&w->before, raw.at, raw.len) || !memchr(raw.at, '/', raw.len))
            continue;
        csn_phrase_match all = {.what = match->what, .at = w->before.len, .end = w->before.len};
        explain_paths(w, &w->before, &all, false);
        return;
    }
}

static void explain_file(csn_explain_state *w, const csn_phrase_match *match, stretch rest)
{
    const csn_line *l = &w->line;
    bool script = memmem(l->low, l->len, "bad interpreter", 15) != NULL;
    bool exec = script || (w->in->exit_code == 126 && match->what == CSN_PHRASE_ACCESS) ||
                (w->in->exit_code == 127 && csn_line_is_shell(l));
    bool runs = csn_line_is_runner(l) && csn_str_starts(l->low + match->at, "no such file");

    if (explain_paths(w, l, match, exec || runs))
        return;
    if (memmem(l->low, l->len, "(os error", 9) && strspn(l->text, " ") == match->at)
        explain_cause(w, match, rest);
    if (match->what != CSN_PHRASE_MISSING)
        return;
    if (runs || script || lines_contain(rest, "_execute_child")) {
        csn_text_span names[CSN_SPANS_MAX];
        /* Only in these lines is a bare name a command. A path may be a script without
         * interpreter. */
        if (csn_line_paths(l, match, names) > 0)
            explain_command(w, names[0]);
    }
}

static void explain_line(csn_explain_state *w, stretch rest)
{
    const csn_explain_in *in = w->in;

    if (csn_explain_advise(w))
        return;
    csn_phrase_match match = csn_line_find_phrase(&w->line);
    switch (match.what) {
    case CSN_PHRASE_NONE:
        break;
    case CSN_PHRASE_NO_COMMAND:
    case CSN_PHRASE_NO_INTERPRETER:
        explain_command(w, csn_line_name(&w->line, &match));
        break;
    case CSN_PHRASE_NO_TOOLCHAIN:
        explain_toolchain(w);
        break;
    case CSN_PHRASE_NO_LIBRARY:
        explain_library(w, csn_line_name(&w->line, &match));
        break;
    case CSN_PHRASE_MISSING:
    case CSN_PHRASE_READ_ONLY:
    case CSN_PHRASE_ACCESS:
        explain_file(w, &match, rest);
        break;
    case CSN_PHRASE_NOT_PERMITTED:
        explain_syscall(w);
        break;
    case CSN_PHRASE_NET:
        explain_net(w, &match);
        break;
    case CSN_PHRASE_DISK:
        explain_limit(w, "disk", in->disk_max, "--disk");
        break;
    case CSN_PHRASE_FILE:
        explain_limit(w, "file", in->file_max, "--limit-file");
        break;
    case CSN_PHRASE_MEMORY:
        explain_limit(w, "memory", in->memory_max, "--memory");
        break;
    case CSN_PHRASE_PIDS:
        explain_limit(w, "pids", in->pids_max, "--pids");
        break;
    }
}

static void explain_stretch(csn_explain_state *w, stretch s)
{
    while (s.end > s.start && w->count < CSN_EXPLAIN_DENIALS_MAX && !w->out_of_memory) {
        csn_text_span raw = last_line(&s);
        /* the shortest phrase has five bytes */
        if (raw.len >= 5 && csn_line_set(&w->line, raw.at, raw.len))
            explain_line(w, s);
    }
}

/* A partial line is skipped: the rest of its path would be a different path. */
static stretch whole_lines(const char *data, size_t from, size_t to, bool from_cut, bool to_cut)
{
    while (from_cut && from < to && data[from] != '\n')
        from++;
    while (to_cut && to > from && data[to - 1] != '\n')
        to--;
    return (stretch){data + from, data + to};
}

static void explain_text(csn_explain_state *w, const csn_explain_text *t, size_t budget)
{
    bool cut = t->cut;
    size_t half = budget / 2, head = t->head;

    if (!t->data || t->len == 0)
        return;
    if (!cut && t->len <= budget) {
        explain_stretch(w, (stretch){t->data, t->data + t->len});
        return;
    }
    if (!cut || head > t->len)
        head = cut ? t->len : half;
    size_t tail = t->len - head < half ? head : t->len - half;
    head = head < half ? head : half;
    explain_stretch(w, whole_lines(t->data, tail, t->len, true, false));
    explain_stretch(w, whole_lines(t->data, 0, head, false, true));
}

/* Denials that follow from the exit status alone. */
static void explain_end(csn_explain_state *w)
{
    const csn_explain_in *in = w->in;
    csn_text_span argv0 = in->argv0 ? span_of(in->argv0) : (csn_text_span){"", 0};

    if (w->nameless_net) {
        csn_denial d = {
            .op = "net", .rule = in->net_rule, .source = "config.net", .hint = "--allow HOST"};
        bool named = false;
        for (size_t i = 0; i < w->count; i++)
            named = named || strcmp(w->items[i].op, "net") == 0;
        if (!named)
            csn_explain_deny(w, &d);
    }
    if (!csn_span_is_clean(argv0))
        argv0.len = 0;
    if (in->signal == SIGSYS || in->exit_code == 128 + SIGSYS)
        deny_syscall(w, argv0.len > 0 ? csn_explain_span_text(w, argv0) : NULL);
    if (in->exit_code == 127 && w->count == 0)
        explain_command(w, argv0);
}

csn_status csn_explain(const csn_explain_in *in, csn_explain_out *ret, csn_error **err)
{
    CSN_CLEANUP(csn_arena_freep) csn_arena *arena = NULL;
    bool both = in->err.len > 0 && in->out.len > 0;

    if (!in->cwd || in->cwd[0] != '/' || !in->probe)
        return csn_fail(err, CSN_INVALID, "explain: cwd must be absolute and probe set");
    if (in->exit_code == 0 && in->signal == 0) {
        *ret = (csn_explain_out){.count = 0};
        return CSN_OK;
    }
    csn_autofree csn_explain_state *w = calloc(1, sizeof(*w));
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
