/* sandbox_opts.c: turns SANDBOX OPTIONS into one csn_config.
 *
 * The flags come from the rows of base/options.h. Four sources are merged: the user's own
 * config.json, the project's caisson.json, the files of --policy, the options. Lists append, so
 * a later source cannot remove a denial; single values override. A project file that the user
 * has not trusted only narrows. The library checks the values; this file only splits
 * the forms that the command line adds (repeated --workspace, comma lists).
 *
 * No option is dropped: a value that the backend does not support still reaches the library,
 * which refuses it. */
#include "cli/sandbox_opts.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/options.h"
#include "base/path.h"
#include "base/strv.h"
#include "cli/agent.h"
#include "cli/config_file.h"
#include "cli/project.h"
#include "cli/repository.h"

#define KEYS_NAMED_MAX 8u
#define KEYS_TEXT_MAX  65536u

#define AT(field) offsetof(csn_sandbox_opts, field)

/* Options without a row in base/options.h: an alias, and where rules come from. */
static const csn_opt own_options[] = {
    {CSN_OPT_SIZE, 0, "output-max", AT(values.output_max), "SIZE", NULL, NULL},
    {CSN_OPT_LIST, 0, "policy", AT(policy), "FILE.json", "rules from a file, caisson-policy(5)",
     NULL},
    {CSN_OPT_STR, 0, "profile", AT(profile), "NAME", "a profile of caisson.json or a policy",
     NULL},
    {CSN_OPT_FLAG, 0, "no-project", AT(no_project), NULL, "ignore the project's caisson.json",
     NULL},
    {CSN_OPT_END},
};
#define OWN_COUNT (sizeof(own_options) / sizeof(own_options[0]))

csn_opt csn_sandbox_opt_table[CSN_OPTION_COUNT + OWN_COUNT];

static csn_opt_kind kind_of(csn_option_type type)
{
    switch (type) {
    case CSN_TYPE_STRING:
        return CSN_OPT_STR;
    case CSN_TYPE_LIST:
    case CSN_TYPE_ENV:
        return CSN_OPT_LIST;
    case CSN_TYPE_FLAG:
        return CSN_OPT_FLAG;
    case CSN_TYPE_SIZE:
        return CSN_OPT_SIZE;
    case CSN_TYPE_COUNT:
        return CSN_OPT_LIMIT;
    case CSN_TYPE_CPUS:
        return CSN_OPT_CPUS;
    case CSN_TYPE_DURATION:
        return CSN_OPT_DURATION;
    case CSN_TYPE_RULES:
        break;
    }
    return CSN_OPT_END;
}

void csn_sandbox_opts_init(void)
{
    csn_opt *to = csn_sandbox_opt_table;

    for (const csn_option *o = csn_options; o->name; o++) {
        if (!o->help)
            continue;
        *to = (csn_opt){.kind = kind_of(o->type),
                        .name = o->flag,
                        .at = AT(values) + o->at,
                        .metavar = o->metavar,
                        .help = o->help,
                        .choices = o->choices};
        if (o->type == CSN_TYPE_FLAG)
            to->at = AT(on) + (size_t)(o - csn_options) * sizeof(bool);
        if (strcmp(o->name, "workspace") == 0) { /* may be repeated, see take_workspaces */
            to->kind = CSN_OPT_LIST;
            to->at = AT(workspace);
        }
        to++;
    }
    memcpy(to, own_options, sizeof(own_options));
}

/* Splits "a,b" into two items. Returns 0, or -1 if out of memory. */
static int split_commas(const char *const *from, csn_arena *a, const char *const **ret)
{
    char **flat = NULL;
    int e = 0;

    for (; from && *from && e == 0; from++) {
        for (const char *p = *from; *p && e == 0;) {
            size_t n = strcspn(p, ",");
            csn_autofree char *word = strndup(p, n);
            if (!word)
                e = -1;
            else if (n > 0)
                e = csn_strv_push(&flat, word);
            p += n + (p[n] == ',');
        }
    }
    if (e == 0 && flat) {
        *ret = (const char *const *)csn_arena_strv(a, (const char *const *)flat);
        e = *ret ? 0 : -1;
    }
    csn_strv_free(flat);
    return e;
}

/* The first workspace is csn_config.workspace, the others are csn_config.workspaces. `:rw` is
 * the default; it is removed from the first, for backends that take only a plain directory. */
static csn_status take_workspaces(const csn_sandbox_opts *o, csn_arena *a, csn_config *c,
                                  csn_error **err)
{
    size_t n = csn_strv_len((const char *const *)o->workspace);

    if (n == 0)
        return CSN_OK;
    const char **list = csn_arena_array(a, n + 1, sizeof(*list));
    if (!list)
        return csn_fail(err, CSN_NOMEM, "workspaces");
    memcpy(list, o->workspace, n * sizeof(*list));
    size_t len = strlen(list[0]);
    bool rw = len > 3 && strcmp(list[0] + len - 3, ":rw") == 0;
    c->workspace = csn_arena_memdup(a, list[0], rw ? len - 3 : len);
    if (!c->workspace)
        return csn_fail(err, CSN_NOMEM, "workspaces");
    if (n > 1)
        c->workspaces = list + 1;
    return CSN_OK;
}

/* `auto` stands for the git repository of the current directory, which is then the working
 * directory; without a repository for the current directory itself. */
static csn_status find_workspace(csn_arena *a, csn_config *c, csn_error **err)
{
    char cwd[CSN_PATH_MAX], top[CSN_PATH_MAX];
    const char *mode =
        c->workspace && csn_str_starts(c->workspace, "auto") ? c->workspace + 4 : NULL;

    if (!mode || (*mode && *mode != ':'))
        return CSN_OK;
    if (*mode && strcmp(mode, ":rw") != 0 && strcmp(mode, ":ro") != 0)
        return csn_fail(err, CSN_INVALID, "--workspace %s: auto takes :rw or :ro and no path",
                        c->workspace);
    if (!getcwd(cwd, sizeof(cwd)))
        return csn_fail_errno(err, errno, "--workspace auto: current directory");
    if (!csn_repository_find(cwd, top))
        memcpy(top, cwd, sizeof(top));
    else if (!c->workdir && strcmp(top, cwd) != 0 && !(c->workdir = csn_arena_strdup(a, cwd)))
        return csn_fail(err, CSN_NOMEM, "workspace");
    const bool ro = strcmp(mode, ":ro") == 0;
    c->workspace = ro ? csn_arena_printf(a, "%s:ro", top) : csn_arena_strdup(a, top);
    return c->workspace ? CSN_OK : csn_fail(err, CSN_NOMEM, "workspace");
}

csn_status csn_sandbox_opts_given(csn_sandbox_opts *o, csn_arena *a, csn_error **err)
{
    o->given = o->values;
    o->given.size = sizeof(o->given);
    for (size_t i = 0; i < CSN_OPTION_COUNT; i++)
        o->given.flags |= o->on[i] ? csn_options[i].open_flag : 0;
    if (split_commas(o->values.packages, a, &o->given.packages) != 0)
        return csn_fail(err, CSN_NOMEM, "packages");
    return take_workspaces(o, a, &o->given, err);
}

static csn_status check_profile(const csn_profile *p, csn_error **err)
{
    if (!p->name || p->found)
        return CSN_OK;
    csn_autofree char *shown = csn_path_printable(p->name);
    csn_status st = csn_fail(err, CSN_INVALID, "--profile %s: no file has such a profile",
                             shown ? shown : p->name);
    return csn_error_advise(st, err,
                            "it is a key of \"profiles\" in caisson.json, a --policy file or "
                            "the user's config.json");
}

csn_status csn_sandbox_opts_config(csn_sandbox_opts *o, csn_arena *a, csn_config *ret,
                                   csn_error **err)
{
    csn_config all = {.size = sizeof(all)}, policy = {.size = sizeof(policy)};
    csn_profile profile = {.name = o->profile};
    const char *const *narrowed = NULL;

    csn_status st = csn_config_file_defaults(a, &all, &profile, err);
    for (char *const *p = o->policy; st == CSN_OK && p && *p; p++)
        st = csn_config_file_overlay(a, &policy, *p, &profile, err);
    if (st == CSN_OK)
        st = csn_sandbox_opts_given(o, a, err);
    csn_config *const sources[] = {&all, &policy, &o->given};
    for (size_t i = 0; i < 3 && st == CSN_OK; i++)
        st = find_workspace(a, sources[i], err);
    if (st == CSN_OK && !o->no_project)
        st = csn_project_overlay(a, &all, &policy, &o->given, o->timeout_ms, &profile,
                                 &narrowed, err);
    if (st == CSN_OK)
        st = csn_config_overlay(a, &all, &policy, err);
    if (st == CSN_OK)
        st = csn_config_overlay(a, &all, &o->given, err);
    if (narrowed) /* a list of commands that does not grow */
        all.commands = narrowed;
    if (st == CSN_OK)
        st = check_profile(&profile, err);
    if (st == CSN_OK)
        *ret = all;
    return st;
}

/* Returns how many bytes at the start of `message` name option `o`: its JSON name, with an
 * index for a list item. Returns 0 if the message names another option, or a value that the
 * command line did not set. Command-line items are the last ones of a list; *ret_nth is the
 * position among them. */
static size_t named_length(const char *message, const csn_option *o, const csn_config *given,
                           const csn_config *config, size_t *ret_nth)
{
    size_t len = strlen(o->name);

    *ret_nth = 0;
    if (!o->flag || strncmp(message, o->name, len) != 0 || !csn_option_is_set(o, given))
        return 0;
    if (message[len] != '[')
        return strchr(": ", message[len]) ? len : 0;
    char *end = NULL;
    size_t i = strtoul(message + len + 1, &end, 10);
    size_t ours = csn_strv_len(*csn_option_list(o, given));
    size_t total = csn_strv_len(*csn_option_list(o, config));
    if (*end != ']' || i + ours < total)
        return 0;
    *ret_nth = i + ours - total;
    return (size_t)(end + 1 - message);
}

/* The message about an unknown backend has no field name, and the name may come from the
 * environment. Returns false for another message. */
static bool name_backend(csn_cli *c, const csn_config *config, csn_error *err)
{
    if (!csn_str_starts(csn_error_message(err), "unknown sandbox type: "))
        return false;
    if (csn_args_typed(c->args, "backend", 0))
        csn_error_replace_start(err, 0, "--backend: ");
    else if (!config->backend)
        csn_error_replace_start(err, 0, "CAISSON_BACKEND: ");
    return true;
}

/* True if the value itself is wrong. What is at a path decides otherwise whether it is
 * accepted, and that is not wrong usage. */
static bool is_wrong_value(const csn_option *o, const char *rest)
{
    static const char *const paths[] = {"workspace", "workspaces", "workdir",         "read",
                                        "write",     "deny",       "deny_missing_ok", "home",
                                        "audit",     NULL};

    return !csn_strv_has(paths, o->name) || strcmp(rest, " is empty") == 0 ||
           strstr(rest, "glob pattern");
}

int csn_sandbox_opts_fail(csn_cli *c, const csn_sandbox_opts *o, const csn_config *config,
                          csn_error *err)
{
    bool wrong = name_backend(c, config, err);
    size_t nth = 0;
    char flag[64];

    for (const csn_option *p = csn_options; p->name; p++) {
        size_t len = named_length(csn_error_message(err), p, &o->given, config, &nth);
        if (len == 0)
            continue;
        wrong = is_wrong_value(p, csn_error_message(err) + len);
        bool further = p->type == CSN_TYPE_LIST && !p->help; /* a further --workspace */
        if (wrong && !further) {
            csn_cli_name_flag(c, err, len, p->flag, nth);
            break;
        }
        snprintf(flag, sizeof(flag), "%s--%s", further ? "repeated " : "", p->flag);
        csn_error_replace_start(err, len, flag);
        break;
    }
    return wrong ? csn_cli_fail_value(c, err) : csn_cli_fail(c, err);
}

/* Names the first places; `info` has all. The smallest share is the one to name. */
static void note_hidden_keys(const csn_cli *c, const csn_info_result *r)
{
    static const char source[] = "keys of the home", hide[] = "hide ";
    const char *home = getenv("HOME"), *first = NULL;
    csn_autobuf names;
    size_t count = 0;

    csn_buf_init(&names, KEYS_TEXT_MAX);
    for (size_t i = 0; i < r->rule_count; i++) {
        const char *path = r->rules[i].rule + strlen(hide);
        if (!csn_str_starts(r->rules[i].source, source))
            continue;
        size_t len = home && csn_str_starts(path, home) ? strlen(home) : 0;
        bool below = len > 0 && path[len] == '/';
        first = first ? first : path;
        if (++count <= KEYS_NAMED_MAX)
            (void)csn_buf_printf(&names, " %s", below ? path + len + 1 : path);
    }
    if (count > KEYS_NAMED_MAX)
        (void)csn_buf_printf(&names, " and %zu more", count - KEYS_NAMED_MAX);
    if (first && names.err == 0)
        csn_cli_note(c, "keys of your home are hidden:%s; --read %s shows one", names.data,
                     first);
}

void csn_sandbox_opts_hint_repository(const csn_cli *c, const csn_config *config)
{
    char cwd[CSN_PATH_MAX], top[CSN_PATH_MAX];

    if (!config->workspace && getcwd(cwd, sizeof(cwd)) && csn_repository_find(cwd, top) &&
        strcmp(top, cwd) != 0)
        csn_cli_note(c,
                     "the git repository '%s' is not in the sandbox, the current directory is; "
                     "to work in it: --workspace auto",
                     top);
}

void csn_sandbox_opts_warn(const csn_cli *c, const csn_config *config)
{
    csn_info_result *r = NULL;
    bool weaker = config->flags & (CSN_OPEN_ALLOW_WEAKER | CSN_OPEN_NESTED);

    if (csn_info(c->sb, &r, NULL) < 0)
        return;
    for (size_t i = 0; weaker && i < r->layer_count; i++)
        if (strcmp(r->layers[i].name, "rung") == 0 && strcmp(r->layers[i].status, "on") != 0)
            csn_cli_note(c, "weaker isolation: %s", r->layers[i].detail);
        else if (strcmp(r->layers[i].name, "nested") == 0)
            csn_cli_note(c, "nested: %s", r->layers[i].detail);
    note_hidden_keys(c, r);
    csn_cli_agent_note(c, config, r->home);
    csn_info_free(r);
}
