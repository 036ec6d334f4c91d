/* command_policy.c: the command allow-list and the exec rules.
 *
 * Called by core/api_exec.c and core/api_process.c before anything is started, and by
 * csn_would_allow. The command is the agent's, every byte of it; the rules are the owner's.
 * What must hold: a word that no rule allows does not pass when there is a list; a deny passes
 * nothing of its name, with or without a directory in front; a line that cannot be read for
 * certain is refused, not guessed. The finding of words is policy/shwords; here is only the
 * judgement. Read-only once made, so calls from many threads need no lock. */
#include "core/command_policy.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/glob.h"
#include "base/path.h"
#include "base/strv.h"
#include "policy/rules.h"
#include "policy/shwords.h"

/* One allowed or denied word. */
typedef struct word_rule {
    char *word;
    csn_glob_set *glob; /* or NULL: the word itself */
    size_t weight;
    bool allow;
    char *text, *source;
} word_rule;

struct csn_policy {
    word_rule *rules;
    size_t count;
    bool listed; /* config.commands was given: nothing else may run */
};

/* They cannot run another program, whatever their arguments (trap's are read by shwords). */
static const char *const harmless[] = {
    ":",      "[",     "break",    "cd",     "continue", "declare", "dirs", "echo",   "exit",
    "export", "false", "getopts",  "jobs",   "let",      "local",   "popd", "printf", "pushd",
    "pwd",    "read",  "readonly", "return", "set",      "shift",   "test", "times",  "trap",
    "true",   "type",  "typeset",  "ulimit", "umask",    "unset",   "wait", NULL};

void csn_policy_free(csn_policy *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->count; i++) {
        free(p->rules[i].word);
        csn_glob_free(p->rules[i].glob);
        free(p->rules[i].text);
        free(p->rules[i].source);
    }
    free(p->rules);
    free(p);
}
CSN_DEFINE_CLEANUP(csn_policy, csn_policy_free)

/* `list` and `index` name the source; the slot exists already. */
static csn_status add(csn_policy *p, const char *word, bool allow, const char *list,
                      size_t index, csn_error **err)
{
    word_rule *r = &p->rules[p->count++];

    r->allow = allow;
    r->word = strdup(word);
    if (asprintf(&r->text, "%s %s", allow ? "allow exec" : "deny exec", word) < 0)
        r->text = NULL;
    if (asprintf(&r->source, "%s[%zu]", list, index) < 0)
        r->source = NULL;
    if (!r->word || !r->text || !r->source)
        return csn_fail(err, CSN_NOMEM, "policy");
    r->weight = strlen(word);
    /* `[` is a command of that name, not half a glob. */
    if (strcmp(word, "[") == 0 || !csn_glob_has_magic(word))
        return CSN_OK;
    r->weight = strcspn(word, "*?[{\\");
    csn_status st = csn_glob_compile(word, &r->glob, err);
    return st < 0 ? csn_wrap(st, err, "%s", r->source) : CSN_OK;
}

/* An empty list is a list: nothing may run. Only NULL means that there is none. */
csn_status csn_policy_new(const csn_config *config, csn_policy **ret, csn_error **err)
{
    CSN_CLEANUP(csn_policy_freep) csn_policy *p = calloc(1, sizeof(*p));
    size_t commands = csn_strv_len(config->commands);
    csn_status st = CSN_OK;

    if (!p || !(p->rules = calloc(commands + config->rule_count + 1, sizeof(*p->rules))))
        return csn_fail(err, CSN_NOMEM, "policy");
    p->listed = config->commands != NULL;
    for (size_t i = 0; i < commands && st == CSN_OK; i++)
        st = add(p, config->commands[i], true, "config.commands", i, err);
    for (size_t i = 0; i < config->rule_count && st == CSN_OK; i++)
        if ((config->rules[i].ops & CSN_OP_EXEC) != 0)
            st = add(p, config->rules[i].path, config->rules[i].allow != 0, "config.rules", i,
                     err);
    if (st < 0)
        return st;
    *ret = CSN_STEAL(p);
    return CSN_OK;
}

static bool speaks_of(const word_rule *r, const char *name)
{
    return r->glob ? csn_glob_match(r->glob, name) : strcmp(r->word, name) == 0;
}

/* Does the rule speak of the word: as it stands, or of its last component? */
static bool covers(const word_rule *r, const char *word)
{
    const char *base = csn_path_base(word);

    if (speaks_of(r, word) || (base[0] != '\0' && speaks_of(r, base)))
        return true;
    /* deny /bin/rm means rm: what PATH makes of the bare word is not known here */
    return !r->allow && !r->glob && !strchr(word, '/') && strchr(r->word, '/') &&
           strcmp(csn_path_base(r->word), word) == 0;
}

/* A whole word is as specific as it gets, whatever its length. */
static bool outranks(const word_rule *a, const word_rule *b)
{
    if ((a->glob == NULL) != (b->glob == NULL))
        return a->glob == NULL;
    if (a->glob && a->weight != b->weight)
        return a->weight > b->weight;
    return !a->allow && b->allow;
}

static const word_rule *deciding(const csn_policy *p, const char *word)
{
    const word_rule *best = NULL;

    for (size_t i = 0; i < p->count; i++)
        if ((!best || outranks(&p->rules[i], best)) && covers(&p->rules[i], word))
            best = &p->rules[i];
    return best;
}

static csn_status refuse(const word_rule *r, const char *word, csn_error **err)
{
    csn_autofree char *shown = csn_path_printable(word);
    csn_autofree char *hint = NULL;
    const char *name = shown ? shown : "?";

    /* A denial of exactly this word cannot be outranked: it can only be taken away. */
    if (!r || r->glob)
        hint = csn_rules_hint(CSN_OP_EXEC, word);
    else if (asprintf(&hint, "take away %s (%s)", r->text, r->source) < 0)
        hint = NULL;
    csn_denial d = {.op = "exec",
                    .target = word,
                    .rule = r ? r->text : "only the listed commands",
                    .source = r ? r->source : "config.commands",
                    .hint = hint};
    csn_status st =
        r ? csn_fail(err, CSN_DENIED, "command %s is denied by policy", name)
          : csn_fail(err, CSN_DENIED, "command %s is not in the list of commands", name);
    if (hint)
        st = csn_error_advise(st, err, "%s", hint);
    return csn_error_deny(st, err, &d);
}

static csn_status refuse_uncertain(const char *text, csn_error **err)
{
    static const char hint[] = "write the name of every command out, without expansions";
    csn_autofree char *shown = csn_path_printable(text);
    csn_denial d = {.op = "exec",
                    .target = text,
                    .rule = "only commands that are known before they run",
                    .source = "config.commands",
                    .hint = hint};
    csn_status st = csn_fail(err, CSN_DENIED, "cannot tell which command %s would run",
                             shown ? shown : "?");

    st = csn_error_advise(st, err, "%s", hint);
    return csn_error_deny(st, err, &d);
}

/* A rule decides first, so that a builtin can be denied and a listed word can be taken back. */
static csn_status judge(const csn_policy *p, const char *word, bool in_shell, csn_error **err)
{
    const word_rule *r = deciding(p, word);

    if (r)
        return r->allow ? CSN_OK : refuse(r, word, err);
    if (!p->listed || (in_shell && csn_strv_has(harmless, word)))
        return CSN_OK;
    return refuse(NULL, word, err);
}

typedef struct question {
    const csn_policy *policy;
    csn_status status;
    csn_error **err;
} question;

/* The first refusal ends the reading: one reason is enough, and it is the leftmost. */
static int ask(void *ctx, const char *word, const char *text)
{
    question *q = ctx;

    q->status = word ? judge(q->policy, word, true, q->err) : refuse_uncertain(text, q->err);
    return q->status < 0;
}

csn_status csn_policy_command(const csn_policy *p, const char *command, const char *const *argv,
                              csn_error **err)
{
    question q = {.policy = p, .status = CSN_OK, .err = err};

    if (!command && (!argv || !argv[0] || argv[0][0] == '\0'))
        return csn_fail(err, CSN_INVALID, "no command given");
    if (!p || (!p->listed && p->count == 0))
        return CSN_OK;
    if (!command)
        return judge(p, argv[0], false, err);
    if (csn_shwords(command, ask, &q) < 0)
        return csn_fail(err, CSN_NOMEM, "command check");
    return q.status;
}
