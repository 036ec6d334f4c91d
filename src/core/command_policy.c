/* command_policy.c: checks a command against the allow-list and the exec rules.
 *
 * The core calls it before it starts a command, and for csn_would_allow. The agent controls the
 * command and the variables of a call; the owner controls the rules. Invariants: with a list, a
 * word that no rule allows is refused; a word with a slash passes only if a rule names that
 * very path, so a file that a command wrote (./ls) does not pass for a listed name; a call
 * cannot change PATH; a denied name is denied in every directory; a line that policy/shell_line
 * cannot parse is refused. A csn_policy is immutable, so threads need no lock. */
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
#include "policy/shell_line.h"

#define SHOWN_BYTES 80u

/* One allowed or denied word. */
typedef struct word_rule {
    char *word;
    csn_glob_set *glob; /* NULL: compare the word itself */
    size_t weight;
    bool allow;
    bool any;  /* the pattern is double star, which matches names and paths */
    bool path; /* has a slash */
    char *text, *source;
} word_rule;

struct csn_policy {
    word_rule *rules;
    size_t count;
    bool listed; /* config.commands is set: nothing else may run */
};

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

/* `list` and `index` are the source in messages. The slot in p->rules is allocated already. */
static csn_status add(csn_policy *p, const char *word, bool allow, const char *list,
                      size_t index, csn_error **err)
{
    word_rule *r = &p->rules[p->count++];

    r->allow = allow;
    r->any = strcmp(word, "**") == 0;
    r->path = strchr(word, '/') != NULL;
    r->word = strdup(word);
    if (asprintf(&r->text, "%s %s", allow ? "allow exec" : "deny exec", word) < 0)
        r->text = NULL;
    if (asprintf(&r->source, "%s[%zu]", list, index) < 0)
        r->source = NULL;
    if (!r->word || !r->text || !r->source)
        return csn_fail(err, CSN_NOMEM, "policy");
    r->weight = strlen(word);
    /* `[` is a command, not an unfinished glob. */
    if (strcmp(word, "[") == 0 || !csn_glob_has_magic(word))
        return CSN_OK;
    r->weight = strcspn(word, "*?[{\\");
    csn_status st = csn_glob_compile(word, &r->glob, err);
    return st < 0 ? csn_wrap(st, err, "%s", r->source) : CSN_OK;
}

/* With an empty list nothing may run; NULL means that there is no list. */
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

static bool matches(const word_rule *r, const char *name)
{
    return r->glob ? csn_glob_match(r->glob, name) : strcmp(r->word, name) == 0;
}

static bool has_dotdot(const char *path)
{
    for (const char *p = path; (p = strstr(p, "..")); p += 2)
        if ((p == path || p[-1] == '/') && (p[2] == '/' || p[2] == '\0'))
            return true;
    return false;
}

/* A rule for names allows only names and a rule for paths only paths: ./ls is not the `ls` that
 * a rule allows. Globs ignore a leading slash, so it is compared here. */
static bool allows(const word_rule *r, const char *word)
{
    if (r->any)
        return true;
    if (r->path != (strchr(word, '/') != NULL) || (r->word[0] == '/') != (word[0] == '/'))
        return false;
    return matches(r, word) && !(r->glob && has_dotdot(word));
}

/* A denied name is denied in every directory. A denied path is also denied by its bare name,
 * because PATH may resolve the name to that path. */
static bool denies(const word_rule *r, const char *word)
{
    const char *base = csn_path_base(word);

    if (matches(r, word) || (base[0] != '\0' && matches(r, base)))
        return true;
    return !r->glob && !strchr(word, '/') && r->path &&
           strcmp(csn_path_base(r->word), word) == 0;
}

static bool covers(const word_rule *r, const char *word)
{
    return r->allow ? allows(r, word) : denies(r, word);
}

/* A whole word is more specific than any pattern; among patterns the longer literal prefix
 * wins. */
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

    /* No rule outranks a denial of exactly this word, so the hint is to remove it. */
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

static csn_status add_denial(csn_status st, const csn_policy *p, const char *target,
                             const char *rule, const char *hint, csn_error **err)
{
    csn_denial d = {.op = "exec",
                    .target = target,
                    .rule = rule,
                    .source = p->listed ? "config.commands" : "config.rules",
                    .hint = hint};

    return csn_error_deny(csn_error_advise(st, err, "%s", hint), err, &d);
}

static csn_status refuse_unreadable(const csn_policy *p, const char *at, const char *construct,
                                    csn_error **err)
{
    csn_autofree char *text = strndup(at, SHOWN_BYTES);
    csn_autofree char *shown = text ? csn_path_printable(text) : NULL;

    if (!shown)
        return csn_fail(err, CSN_NOMEM, "command check");
    csn_status st =
        csn_fail(err, CSN_DENIED, "cannot tell which commands the line runs, at %s: %s", shown,
                 construct);
    return add_denial(st, p, text, "only lines whose commands are known before they run",
                      "use simple commands joined by ; && || or |, or run the program "
                      "without a shell; bash -c runs any line where bash is allowed",
                      err);
}

static csn_status refuse_builtin(const csn_policy *p, const char *word, const char *why,
                                 bool can_be_listed, csn_error **err)
{
    csn_autofree char *hint = can_be_listed ? csn_rules_hint(CSN_OP_EXEC, word) : NULL;

    csn_status st =
        csn_fail(err, CSN_DENIED, "cannot tell which commands %s would run: %s", word, why);
    return add_denial(st, p, word, "only lines whose commands are known before they run",
                      hint ? hint : "give it literal arguments", err);
}

static csn_status refuse_variable(const csn_policy *p, const char *assignment, csn_error **err)
{
    csn_autofree char *name = strndup(assignment, strcspn(assignment, "=+["));

    csn_status st = csn_fail(err, CSN_DENIED,
                             "%s decides which program a command name means; a call "
                             "cannot change it",
                             name ? name : "the variable");
    return add_denial(st, p, assignment, "variables that decide what runs stay as they are",
                      "set it for the whole sandbox when it is created (--env), or allow the "
                      "path of the program (--allow-command PATH)",
                      err);
}

/* Rules take precedence over the table of builtins, so that a rule can deny a builtin. */
static csn_status check_word(const csn_policy *p, const char *word, bool harmless,
                             csn_error **err)
{
    const word_rule *r = deciding(p, word);

    if (r)
        return r->allow ? CSN_OK : refuse(r, word, err);
    return !p->listed || harmless ? CSN_OK : refuse(NULL, word, err);
}

static csn_status check_builtin(const csn_policy *p, const csn_shell_word *words, size_t count,
                                csn_error **err)
{
    const char *why = NULL;
    csn_shell_kind kind = csn_shell_builtin(words, count, &why);
    const word_rule *r = deciding(p, words[0].text);

    if (kind == CSN_SHELL_REFUSED || (kind == CSN_SHELL_OPEN && !r))
        return refuse_builtin(p, words[0].text, why, kind == CSN_SHELL_OPEN, err);
    return check_word(p, words[0].text, kind == CSN_SHELL_HARMLESS, err);
}

typedef struct line_check {
    const csn_policy *policy;
    csn_status status;
    csn_error **err;
} line_check;

/* Stops at the first refusal, which is the leftmost one. */
static int check_command(void *ctx, const csn_shell_command *c)
{
    line_check *l = ctx;
    const csn_shell_word *words = c->words + c->assignments;
    size_t count = c->count - c->assignments;
    const char *bad = NULL;

    for (size_t i = 0; i < c->assignments && !bad; i++)
        if (csn_shell_variable_protected(c->words[i].text))
            bad = c->words[i].text;
    for (size_t i = 1; i < count && !bad; i++)
        if (csn_shell_sets_protected(words[0].text, words[i].text))
            bad = words[i].text;
    if (bad)
        l->status = refuse_variable(l->policy, bad, l->err);
    else if (count > 0)
        l->status = check_builtin(l->policy, words, count, l->err);
    return l->status < 0;
}

static csn_status check_line(const csn_policy *p, const char *command, csn_error **err)
{
    line_check l = {.policy = p, .status = CSN_OK, .err = err};
    csn_shell_stop stop = {0};
    int rc = csn_shell_line(command, check_command, &l, &stop);

    if (rc == CSN_SHELL_NOMEM)
        return csn_fail(err, CSN_NOMEM, "command check");
    return rc == CSN_SHELL_STOPPED ? refuse_unreadable(p, stop.at, stop.construct, err)
                                   : l.status;
}

csn_status csn_policy_command(const csn_policy *p, const char *command, const char *const *argv,
                              const char *const *env, csn_error **err)
{
    if (!command && (!argv || !argv[0] || argv[0][0] == '\0'))
        return csn_fail(err, CSN_INVALID, "no command given");
    if (!p || (!p->listed && p->count == 0))
        return CSN_OK;
    for (size_t i = 0; env && env[i]; i++)
        if (csn_shell_variable_protected(env[i]))
            return refuse_variable(p, env[i], err);
    if (command)
        return check_line(p, command, err);
    for (size_t i = 1; argv[i]; i++)
        if (csn_shell_sets_protected(argv[0], argv[i]))
            return refuse_variable(p, argv[i], err);
    return check_word(p, argv[0], false, err);
}
