/* shfollow.c: words that make commands of their arguments, and what is found.
 *
 * Called by shwords.c for every command word. `exec rm`, `command rm`, `eval 'rm x'` and `trap
 * 'rm x' EXIT` run rm although another word stands first; where their arguments are literal
 * they are read on, where not, the line is uncertain. The arguments are the agent's. What must
 * hold: a word reached this way never counts as a call of a function (exec and command look
 * past functions); an option that is not known to be harmless is not skipped in silence. */
#include "policy/shlex.h"

#include <errno.h>
#include <string.h>

#include "base/limits.h"
#include "base/strv.h"

#define SHOWN_BYTES 80u

/* Words whose arguments matter. */
static const char *const followed[] = {"exec",   "command", "builtin", "eval", "trap",
                                       "printf", "test",    "[",       "set",  NULL};
static const char *const evaluators[] = {
    "let",  "declare", "typeset", "local",   "export",    "readonly", "unset",
    "read", "getopts", "wait",    "mapfile", "readarray", NULL};

bool csn_shfollow_wants(const char *word)
{
    return csn_strv_has(followed, word);
}

/* Notes on the way what else the word means for the rest of the line. */
bool csn_shfollow_report(csn_shcur *s, const char *word, const char *start,
                         bool may_be_function)
{
    size_t len = (size_t)(s->cur - start);
    bool function = word && may_be_function && s->scan->functions &&
                    csn_strv_has((const char *const *)s->scan->functions, word);

    if (word && strcmp(word, "unset") == 0)
        s->scan->unsets = true;
    if (word && csn_strv_has(evaluators, word))
        s->scan->evaluates = true;
    return csn_shlex_found(s, word, start, len < SHOWN_BYTES ? len : SHOWN_BYTES, function);
}

void csn_shargs_release(csn_shargs *a)
{
    for (size_t i = 0; i < a->count; i++)
        free(a->items[i]);
    free(a->items);
}

/* NULL stands for an argument whose text only the shell will know. */
bool csn_shfollow_keep(csn_shcur *s, csn_shargs *a, const csn_shword *w)
{
    if (a->count == a->cap) {
        size_t cap = a->cap ? a->cap * 2 : 8;
        char **grown = reallocarray(a->items, cap, sizeof(*grown));
        if (!grown)
            return csn_shlex_nomem(s);
        a->items = grown;
        a->cap = cap;
    }
    bool known = csn_shword_known(w);
    char *copy = known ? strdup(w->text.data ? w->text.data : "") : NULL;
    if (known && !copy)
        return csn_shlex_nomem(s);
    a->items[a->count++] = copy;
    return true;
}

/* eval joins its arguments with blanks and reads the result as a line. */
static bool follow_eval(csn_shcur *s, const csn_shargs *a, size_t from, const char *start)
{
    csn_autobuf text;

    csn_buf_init(&text, CSN_ARGV_BYTES_MAX);
    for (size_t i = from; i < a->count; i++) {
        if (!a->items[i])
            return csn_shfollow_report(s, NULL, start, false);
        if (csn_buf_puts(&text, a->items[i]) != 0 || csn_buf_putc(&text, ' ') != 0)
            return csn_shlex_nomem(s);
    }
    return csn_shwords_text(s, text.data ? text.data : "");
}

/* The handler of trap is a command line, unless it resets, or stands alone and is a signal. */
static bool follow_trap(csn_shcur *s, const csn_shargs *a, size_t from, const char *start)
{
    while (from < a->count && a->items[from] && a->items[from][0] == '-' &&
           a->items[from][1] != '\0')
        if (strcmp(a->items[from++], "--") == 0)
            break;
    if (from >= a->count)
        return true;
    if (!a->items[from])
        return csn_shfollow_report(s, NULL, start, false);
    if (strcmp(a->items[from], "-") == 0 || from + 1 == a->count)
        return true;
    return csn_shwords_text(s, a->items[from]);
}

/* History expansion would make other text of what was read here. */
static bool follow_set(csn_shcur *s, const csn_shargs *a, size_t from, const char *start)
{
    for (; from < a->count; from++) {
        const char *arg = a->items[from];
        if (arg && (strcmp(arg, "--") == 0 || strcmp(arg, "-") == 0))
            return true;
        if (!arg || strstr(arg, "hist") ||
            ((arg[0] == '-' || arg[0] == '+') && strchr(arg, 'H')))
            return csn_shfollow_report(s, NULL, start, false);
    }
    return true;
}

/* exec, command, builtin: moves *from to the command; false when there is none to run. */
static bool skip_options(const char *word, const csn_shargs *a, size_t *from)
{
    bool is_exec = strcmp(word, "exec") == 0;

    for (; *from < a->count; ++*from) {
        const char *option = a->items[*from];
        if (!option || option[0] != '-' || option[1] == '\0')
            break;
        const char *name = is_exec ? strchr(option, 'a') : NULL;
        if (strcmp(option, "--") == 0) {
            ++*from;
            break;
        }
        if (!is_exec && strpbrk(option, "vV")) /* command -v only tells */
            return false;
        if (name && name[1] == '\0') /* exec -a NAME; in -aNAME it is there already */
            ++*from;
    }
    return *from < a->count;
}

/* A chain of prefixes (command exec rm) is walked to its end, each word reported. */
bool csn_shfollow_run(csn_shcur *s, const char *word, const csn_shargs *a, size_t from,
                      const char *start)
{
    for (;;) {
        if (strcmp(word, "eval") == 0)
            return follow_eval(s, a, from, start);
        if (strcmp(word, "trap") == 0)
            return follow_trap(s, a, from, start);
        if (strcmp(word, "set") == 0)
            return follow_set(s, a, from, start);
        if (strcmp(word, "exec") != 0 && strcmp(word, "command") != 0 &&
            strcmp(word, "builtin") != 0)
            break;
        if (!skip_options(word, a, &from))
            return true;
        if (!a->items[from])
            return csn_shfollow_report(s, NULL, start, false);
        word = a->items[from++];
        if (!csn_shfollow_report(s, word, start, false))
            return false;
    }
    /* test -v x, printf -v x, read x: x may be a[$(...)] */
    for (size_t i = from; i < a->count; i++)
        if (!a->items[i] || (a->items[i][0] == '-' && strpbrk(a->items[i], "vR")))
            s->scan->evaluates = true;
    return true;
}
