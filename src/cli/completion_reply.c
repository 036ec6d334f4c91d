/* completion_reply.c: `completion reply`: says what may follow on a command line, for zsh and
 * fish.
 *
 * It runs while the user types: it prints no errors and opens no sandbox. Commands,
 * options and choices come from the tables of the parser. */
#include "cli/completion_reply.h"

#include <string.h>

#include "base/strv.h"
#include "cli/commands.h"

typedef struct typed {
    const char *const *words; /* [0] is the command, the last is being typed */
    size_t count;
    const csn_command *cmd;
    const char *last;
} typed;

static void put(const char *word, const char *what, const char *last)
{
    if (csn_str_starts(word, last))
        printf("%s\t%s\n", word, what);
}

/* Prints the words of "a|b|c" or "a, b, c". */
static void put_words(const char *words, const char *what, const char *last)
{
    char one[64];

    for (const char *p = words; *p; p += strspn(p, "|, ")) {
        size_t n = strcspn(p, "|, ");
        if (n > 0 && n < sizeof(one)) {
            memcpy(one, p, n);
            one[n] = '\0';
            put(one, what, last);
        }
        p += n;
    }
}

static void put_commands(const char *last)
{
    for (size_t i = 0; csn_cli_commands[i]; i++)
        put(csn_cli_commands[i]->name, csn_cli_commands[i]->summary, last);
}

/* Only those that stay: an attached sandbox belongs to the process that runs it. */
static void put_sandboxes(const char *last)
{
    csn_sandbox_list *l = NULL;

    if (csn_sandboxes(&l, NULL) < 0)
        return;
    for (size_t i = 0; i < l->count; i++) {
        put(l->items[i].id, "sandbox", last);
        if (l->items[i].name)
            put(l->items[i].name, l->items[i].id, last);
    }
    csn_sandbox_list_free(l);
}

static void put_options(const typed *t)
{
    char word[72];

    for (size_t g = 0; g < CSN_ARGS_GROUPS && t->cmd->groups[g].opts; g++) {
        for (const csn_opt *o = t->cmd->groups[g].opts; o->kind != CSN_OPT_END; o++) {
            if (!o->help || !o->name)
                continue;
            snprintf(word, sizeof(word), "--%s", o->name);
            put(word, o->help, t->last);
        }
    }
    if (!(t->cmd->flags & CSN_CMD_NO_JSON))
        put("--json", "one JSON value on stdout, errors too", t->last);
    put("--help", "explain the command", t->last);
}

/* ---- the value of an option ---------------------------------------------------------- */

/* The option of this name that takes a value, or NULL. */
static const csn_opt *option_of(const csn_command *cmd, const char *word)
{
    for (size_t g = 0; g < CSN_ARGS_GROUPS && cmd->groups[g].opts; g++)
        for (const csn_opt *o = cmd->groups[g].opts; o->kind != CSN_OPT_END; o++)
            if (o->kind != CSN_OPT_FLAG && o->name && csn_str_starts(word, "--") &&
                strcmp(o->name, word + 2) == 0)
                return o;
    return NULL;
}

/* Those that the library knows; a test compares them. */
#define PACKAGES "apt|bun|cargo|composer|gem|github|go|gradle|maven|npm|pip|pnpm|poetry|uv|yarn"

static void put_value(const typed *t, const csn_opt *o)
{
    if (o->choices)
        put_words(o->choices, o->name, t->last);
    else if (strcmp(o->name, "backend") == 0)
        put_words("jail|local|e2b|vercel|dagger|docker", "backend", t->last);
    else if (strcmp(o->name, "packages") == 0 || strcmp(o->name, "package-manager") == 0)
        put_words(PACKAGES, "package manager", t->last);
}

/* ---- arguments ----------------------------------------------------------------------- */

/* Words of commands whose first or second argument is one of a few. */
static const struct {
    const char *command;
    size_t at; /* 1: the first argument */
    const char *words;
} fixed[] = {{"policy", 1, "agent|check|import|schema"},
             {"aside", 1, "list|restore|clear"},
             {"completion", 1, "bash|zsh|fish"},
             {"why", 2, "read|write|delete|exec|net"}};

/* The position of the last word among the arguments, from 1. */
static size_t position(const typed *t)
{
    size_t n = 0;

    for (size_t i = 1; i < t->count; i++) {
        if (t->words[i][0] == '-' && t->words[i][1])
            i += option_of(t->cmd, t->words[i]) != NULL;
        else
            n++;
    }
    return n;
}

static void put_argument(const typed *t)
{
    size_t at = position(t);
    bool several = strstr(t->cmd->args, "ID...") != NULL;
    bool takes_id = csn_str_starts(t->cmd->args, "ID") || csn_str_starts(t->cmd->args, "[ID]");

    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
        if (strcmp(fixed[i].command, t->cmd->name) == 0 && fixed[i].at == at)
            put_words(fixed[i].words, t->cmd->name, t->last);
    if (strcmp(t->cmd->name, "help") == 0 && at == 1)
        put_commands(t->last);
    if (takes_id && (at == 1 || several))
        put_sandboxes(t->last);
}

void csn_completion_reply(const char *const *words, size_t count)
{
    if (count <= 1) {
        put_commands(count == 1 ? words[0] : "");
        return;
    }
    typed t = {.words = words,
               .count = count,
               .cmd = csn_cli_find(words[0]),
               .last = words[count - 1]};
    if (!t.cmd)
        return;
    for (size_t i = 1; i + 1 < count; i++)
        if (strcmp(words[i], "--") == 0)
            return; /* a command of the sandbox, of which nothing is known here */
    const csn_opt *before = option_of(t.cmd, words[count - 2]);
    if (before)
        put_value(&t, before);
    else if (t.last[0] == '-')
        put_options(&t);
    else
        put_argument(&t);
}
