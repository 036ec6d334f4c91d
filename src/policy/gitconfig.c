/* gitconfig.c: a strict reader of git's configuration syntax with an allow-list of keys.
 *
 * An attacker controls the text. Invariants: this reader sees every key that git would see, and
 * refuses whatever git could read differently (control bytes, a byte order mark, old
 * spellings). Only keys in the table pass, with values of their kind: every release of git adds
 * keys that run programs, so a deny-list would always be incomplete. */
#include "policy/gitconfig.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"

#define TEXT_MAX  (1u << 20) /* real configs are far smaller */
#define VALUE_MAX 4096u
#define NAME_SIZE 64u

typedef enum value_kind {
    WORD,     /* true, 1, merges, or nothing: cannot be a path, an option or a command */
    TEXT,     /* shown or compared, never opened or run */
    REMOTE,   /* a remote's name, or its address */
    UPDATE,   /* submodule.*.update: `!command` would be run */
    WORKTREE, /* checked by the caller */
} value_kind;

typedef struct allowed {
    const char *section, *name; /* lower case; name "*": each */
    bool sub;                   /* [section "sub"] or plain [section] */
    value_kind kind;
} allowed;

/* clang-format off */
static const allowed table[] = {
    {"core", "repositoryformatversion", false, WORD}, {"core", "filemode", false, WORD},
    {"core", "bare", false, WORD},                    {"core", "logallrefupdates", false, WORD},
    {"core", "ignorecase", false, WORD},              {"core", "precomposeunicode", false, WORD},
    {"core", "symlinks", false, WORD},                {"core", "autocrlf", false, WORD},
    {"core", "eol", false, WORD},                     {"core", "safecrlf", false, WORD},
    {"core", "quotepath", false, WORD},               {"core", "abbrev", false, WORD},
    {"core", "compression", false, WORD},             {"core", "sparsecheckout", false, WORD},
    {"core", "sparsecheckoutcone", false, WORD},      {"core", "trustctime", false, WORD},
    {"core", "checkstat", false, WORD},               {"core", "preloadindex", false, WORD},
    {"core", "untrackedcache", false, WORD},          {"core", "longpaths", false, WORD},
    {"core", "worktree", false, WORKTREE},
    /* uploadpack, receivepack, vcs and proxy of a remote name programs and hosts */
    {"remote", "url", true, REMOTE},                  {"remote", "pushurl", true, REMOTE},
    {"remote", "fetch", true, TEXT},                  {"remote", "push", true, TEXT},
    {"remote", "tagopt", true, WORD},                 {"remote", "prune", true, WORD},
    {"remote", "prunetags", true, WORD},              {"remote", "mirror", true, WORD},
    {"remote", "skipdefaultupdate", true, WORD},      {"remote", "skipfetchall", true, WORD},
    {"remote", "promisor", true, WORD},               {"remote", "partialclonefilter", true, TEXT},
    {"remote", "gh-resolved", true, TEXT},            {"remote", "pushdefault", false, REMOTE},
    /* mergeoptions can choose a strategy, which is a program */
    {"branch", "remote", true, REMOTE},               {"branch", "pushremote", true, REMOTE},
    {"branch", "merge", true, TEXT},                  {"branch", "rebase", true, WORD},
    {"branch", "description", true, TEXT},            {"branch", "vscode-merge-base", true, TEXT},
    {"branch", "gh-merge-base", true, TEXT},          {"branch", "autosetupmerge", false, WORD},
    {"branch", "autosetuprebase", false, WORD},
    {"user", "name", false, TEXT},                    {"user", "email", false, TEXT},
    {"user", "useconfigonly", false, WORD},           {"author", "name", false, TEXT},
    {"author", "email", false, TEXT},                 {"committer", "name", false, TEXT},
    {"committer", "email", false, TEXT},              {"init", "defaultbranch", false, TEXT},
    {"submodule", "url", true, REMOTE},               {"submodule", "active", true, WORD},
    {"submodule", "update", true, UPDATE},            {"submodule", "branch", true, TEXT},
    {"submodule", "ignore", true, WORD},              {"submodule", "shallow", true, WORD},
    {"submodule", "fetchrecursesubmodules", true, WORD},
    {"submodule", "active", false, TEXT},             {"submodule", "recurse", false, WORD},
    {"submodule", "alternatelocation", false, WORD},
    {"submodule", "alternateerrorstrategy", false, WORD},
    {"extensions", "worktreeconfig", false, WORD},    {"extensions", "objectformat", false, WORD},
    {"extensions", "compatobjectformat", false, WORD},
    {"extensions", "refstorage", false, WORD},        {"extensions", "partialclone", false, REMOTE},
    {"extensions", "preciousobjects", false, WORD},   {"extensions", "noop", false, WORD},
    {"extensions", "relativeworktrees", false, WORD},
    {"pull", "rebase", false, WORD},                  {"pull", "ff", false, WORD},
    {"push", "default", false, WORD},                 {"push", "autosetupremote", false, WORD},
    {"push", "followtags", false, WORD},              {"fetch", "prune", false, WORD},
    {"fetch", "prunetags", false, WORD},              {"fetch", "parallel", false, WORD},
    {"fetch", "recursesubmodules", false, WORD},      {"merge", "conflictstyle", false, WORD},
    {"merge", "ff", false, WORD},                     {"merge", "renamelimit", false, WORD},
    {"rebase", "autosquash", false, WORD},            {"rebase", "autostash", false, WORD},
    {"rebase", "updaterefs", false, WORD},            {"rerere", "enabled", false, WORD},
    {"diff", "renames", false, WORD},                 {"diff", "algorithm", false, WORD},
    {"diff", "renamelimit", false, WORD},             {"diff", "submodule", false, WORD},
    {"commit", "gpgsign", false, WORD},               {"tag", "gpgsign", false, WORD},
    {"status", "showuntrackedfiles", false, WORD},    {"gc", "auto", false, WORD},
    {"gc", "autodetach", false, WORD},                {"index", "version", false, WORD},
    {"index", "threads", false, WORD},                {"index", "sparse", false, WORD},
    {"maintenance", "auto", false, WORD},             {"color", "ui", false, WORD},
    {"feature", "manyfiles", false, WORD},            {"lfs", "repositoryformatversion", false, WORD},
    {"receive", "denycurrentbranch", false, WORD},    {"receive", "denynonfastforwards", false, WORD},
    {"advice", "*", false, WORD},
};
/* clang-format on */

/* ---- values ---- */

static bool is_word(const char *v)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-";
    return v[strspn(v, plain)] == '\0';
}

/* `scheme::rest` and unknown schemes run git-remote-scheme; a host that starts with a dash
 * would be an option of ssh. */
static bool is_harmless_url(const char *url)
{
    static const char *const schemes[] = {"http", "https",   "ssh",    "git",
                                          "file", "git+ssh", "ssh+git"};
    const char *sep = strstr(url, "://");

    if (url[0] == '-' || strstr(url, "::") || strstr(url, "@-") || strstr(url, "://-"))
        return false;
    if (!sep)
        return true; /* a name, a path, or host:path over ssh */
    for (size_t i = 0; i < sizeof(schemes) / sizeof(*schemes); i++)
        if (strlen(schemes[i]) == (size_t)(sep - url) &&
            strncmp(url, schemes[i], (size_t)(sep - url)) == 0)
            return true;
    return false;
}

static bool is_update(const char *v)
{
    static const char *const ways[] = {"checkout", "rebase", "merge", "none"};

    for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
        if (strcmp(v, ways[i]) == 0)
            return true;
    return false;
}

/* ---- the syntax ---- */

typedef struct parser {
    const char *at, *end;
    size_t line;
    char section[NAME_SIZE]; /* lower case; "": none yet */
    bool sub;                /* it has a subsection; which one does not matter */
    char name[NAME_SIZE];
    csn_buf value;
    bool has_value; /* `name` alone means true */
    bool lenient;   /* accept old and odd syntax as git does */
    char **ret_worktree;
} parser;

/* The next byte, "\r\n" as "\n", or -1. The end of the text also ends a line. */
static int next(parser *p)
{
    if (p->at == p->end)
        return -1;
    if (*p->at == '\r' && p->at + 1 < p->end && p->at[1] == '\n')
        p->at++;
    p->line += *p->at == '\n';
    return (unsigned char)*p->at++;
}

static bool at_line_end(int c)
{
    return c == '\n' || c < 0;
}

static bool is_blank(int c)
{
    return c == ' ' || c == '\t';
}

static bool is_key_char(int c)
{
    return c < 0x80 && (isalnum(c) || c == '-');
}

static bool bytes_are_plain(const char *s, size_t len)
{
    if (len > TEXT_MAX || (len >= 3 && memcmp(s, "\xef\xbb\xbf", 3) == 0))
        return false;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '\r' ? i + 1 == len || s[i + 1] != '\n'
                      : (c < ' ' && c != '\n' && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

/* A name of key characters that starts with c, lower case; returns the byte after it, or -2. */
static int read_name(parser *p, int c, char *out)
{
    size_t n = 0;

    for (; c >= 0 && is_key_char(c); c = next(p)) {
        if (n + 1 >= NAME_SIZE)
            return -2;
        out[n++] = (char)tolower(c);
    }
    out[n] = '\0';
    return n > 0 ? c : -2;
}

/* After the `[`: `name]` or `name "any text"]`. The old form [name.sub] is refused: git does
 * not write it any more, and it disguises keys. */
static bool read_section(parser *p)
{
    int c = read_name(p, next(p), p->section);

    p->sub = false;
    if (c == ']')
        return true;
    if (p->lenient && c == '.') {
        p->sub = true;
        while (c != ']' && !at_line_end(c))
            c = next(p);
        return c == ']';
    }
    if (!is_blank(c))
        return false;
    while (is_blank(c))
        c = next(p);
    if (c != '"')
        return false;
    for (c = next(p); c != '"'; c = next(p)) {
        if (c == '\\')
            c = next(p);
        if (at_line_end(c))
            return false;
    }
    p->sub = true;
    return next(p) == ']';
}

/* The byte that an escape in a value stands for; 0: line continuation, -1: error. */
static int read_escape(parser *p)
{
    int c = next(p);

    if (c == '\n')
        return 0;
    if (c == 't')
        return '\t';
    if (p->lenient && (c == 'n' || c == 'b'))
        return c == 'n' ? '\n' : '\b';
    return c == '\\' || c == '"' ? c : -1; /* \n and \b do not occur in real values */
}

/* After the `=`: quotes, escapes, continuation lines, comments; outer blanks are removed. */
static bool read_value(parser *p)
{
    bool quoted = false;
    size_t blanks = 0;

    for (int c = next(p); !at_line_end(c); c = next(p)) {
        if (is_blank(c) && !quoted) {
            blanks += p->value.len > 0;
            continue;
        }
        if (!quoted && (c == ';' || c == '#')) {
            while (!at_line_end(c))
                c = next(p);
            return true;
        }
        for (; blanks > 0; blanks--)
            if (csn_buf_putc(&p->value, ' ') != 0)
                return false;
        if (c == '"') {
            quoted = !quoted;
            continue;
        }
        if (c == '\\' && (c = read_escape(p)) <= 0) {
            if (c < 0)
                return false;
            continue;
        }
        if (csn_buf_putc(&p->value, (char)c) != 0)
            return false;
    }
    return !quoted;
}

/* `name`, or `name = value`. */
static bool read_variable(parser *p, int c)
{
    c = read_name(p, c, p->name);
    while (is_blank(c))
        c = next(p);
    p->value.len = 0;
    p->has_value = c == '=';
    if (p->has_value)
        return read_value(p);
    return c != -2 && at_line_end(c);
}

/* ---- the check ---- */

static const char *value_of(const parser *p)
{
    return p->value.len > 0 ? p->value.data : "";
}

static bool take_worktree(parser *p)
{
    if (!p->ret_worktree || !p->has_value || *p->ret_worktree)
        return false; /* set twice: refuse instead of choosing */
    *p->ret_worktree = strdup(value_of(p));
    return *p->ret_worktree != NULL;
}

static bool value_is_fine(parser *p, value_kind kind)
{
    switch (kind) {
    case WORD:
        return is_word(value_of(p));
    case TEXT:
        return p->has_value;
    case REMOTE:
        return p->has_value && is_harmless_url(value_of(p));
    case UPDATE:
        return p->has_value && is_update(value_of(p));
    case WORKTREE:
        return take_worktree(p);
    }
    return false;
}

static bool variable_is_fine(parser *p)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        const allowed *a = &table[i];
        if (a->sub == p->sub && strcmp(a->section, p->section) == 0 &&
            (strcmp(a->name, p->name) == 0 || a->name[0] == '*'))
            return value_is_fine(p, a->kind);
    }
    return false;
}

/* *ret_understood: a refused key, not a syntax error, stopped the reading. */
static bool all_is_fine(parser *p, bool *ret_understood)
{
    int c;

    *ret_understood = true;
    while ((c = next(p)) >= 0) {
        if (is_blank(c) || c == '\n')
            continue;
        *ret_understood = false;
        if (c == '#' || c == ';') {
            while (!at_line_end(c))
                c = next(p);
        } else if (c == '[') {
            if (!read_section(p))
                return false;
        } else {
            if (c >= 0x80 || !isalpha(c) || !p->section[0] || !read_variable(p, c))
                return false;
            *ret_understood = true;
            if (!variable_is_fine(p))
                return false;
        }
    }
    return true;
}

static char *explain(const parser *p, bool understood)
{
    char *out = NULL;
    int n = understood ? asprintf(&out, "%s.%s%s", p->section, p->sub ? "*." : "", p->name)
                       : asprintf(&out, "line %zu is not understood", p->line);

    return n < 0 ? NULL : out;
}

bool csn_gitconfig_is_harmless(const char *text, size_t len, char **ret_key,
                               char **ret_worktree)
{
    parser p = {.at = text, .end = text + len, .line = 1, .ret_worktree = ret_worktree};
    bool understood = false;

    csn_buf_init(&p.value, VALUE_MAX);
    if (ret_worktree)
        *ret_worktree = NULL;
    bool fine = bytes_are_plain(text, len) && all_is_fine(&p, &understood);
    csn_buf_release(&p.value);
    if (!fine && ret_key)
        *ret_key = explain(&p, understood);
    if (!fine && ret_worktree) {
        free(*ret_worktree);
        *ret_worktree = NULL;
    }
    return fine;
}

/* ---- what a config refers to ---- */

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);

    return n >= m && strcmp(name + n - m, end) == 0;
}

/* False: the key names neither a config nor a program. */
static bool use_of(parser *p, csn_gitconfig_use *ret)
{
    if (!p->has_value)
        return false;
    *ret = CSN_GITCONFIG_INCLUDE;
    if (strcmp(p->section, p->sub ? "includeif" : "include") == 0)
        return strcmp(p->name, "path") == 0;
    *ret = CSN_GITCONFIG_HOOKS;
    if (strcmp(p->section, "core") == 0 && strcmp(p->name, "hookspath") == 0)
        return true;
    *ret = CSN_GITCONFIG_PROGRAM;
    return strcmp(p->section, "alias") != 0 && !ends_with(p->name, "file") &&
           !ends_with(p->name, "template") && !variable_is_fine(p);
}

void csn_gitconfig_uses(const char *text, size_t len,
                        void (*fn)(void *ctx, csn_gitconfig_use use, const char *value),
                        void *ctx)
{
    parser p = {.at = text, .end = text + len, .lenient = true};
    csn_gitconfig_use use;
    int c;

    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        p.at += 3;
    csn_buf_init(&p.value, VALUE_MAX);
    while ((c = next(&p)) >= 0) {
        bool fine = is_blank(c) || c == '\n';
        if (c == '[')
            fine = read_section(&p);
        else if (c < 0x80 && isalpha(c) && (fine = read_variable(&p, c)) && use_of(&p, &use))
            fn(ctx, use, value_of(&p));
        while (!fine && p.at[-1] != '\n' && next(&p) >= 0)
            ; /* a comment or unreadable: try the next line */
    }
    csn_buf_release(&p.value);
}

/* ---- a rebase in progress ---- */

bool csn_gittodo_is_harmless(const char *text, size_t len)
{
    static const char *const words[] = {
        "pick",  "p", "reword", "r", "edit",       "e", "squash", "s",
        "fixup", "f", "drop",   "d", "label",      "l", "reset",  "t",
        "merge", "m", "break",  "b", "update-ref", "u", "noop",
    };
    const char *end = text + len;

    if (len > TEXT_MAX || (len > 0 && memchr(text, '\0', len)))
        return false;
    while (text < end) {
        const char *eol = memchr(text, '\n', (size_t)(end - text));
        eol = eol ? eol : end;
        while (text < eol && (is_blank(*text) || *text == '\r'))
            text++;
        size_t n = 0, known = text == eol || *text == '#';
        while (text + n < eol && !is_blank(text[n]) && text[n] != '\r')
            n++;
        for (size_t i = 0; !known && i < sizeof(words) / sizeof(*words); i++)
            known = strlen(words[i]) == n && memcmp(words[i], text, n) == 0;
        if (!known)
            return false;
        text = eol < end ? eol + 1 : end;
    }
    return true;
}
