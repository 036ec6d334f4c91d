/* cmd_trust.c: `trust` and `untrust`: accept what a project's caisson.json grants.
 *
 * The content that is shown is the content that is trusted: it is read once. Its author is not
 * the user, so it is printed in visible form wherever it goes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json_read.h"
#include "base/path.h"
#include "base/strv.h"
#include "cli/commands.h"
#include "cli/policy_explain.h"
#include "cli/project.h"
#include "cli/trust.h"

typedef struct trust_opts {
    bool yes, list;
} trust_opts;

/* Finds the file that the argument (a directory, the file itself, or NULL: the current
 * directory) names. */
static csn_status find(const char *arg, csn_project *ret, csn_error **err)
{
    csn_autofree char *dir = NULL;
    struct stat st;

    if (!arg)
        arg = ".";
    if (stat(arg, &st) < 0 && errno != ENOENT)
        return csn_fail_errno(err, errno, "cannot open '%s'", arg);
    if (strcmp(csn_path_base(arg), CSN_PROJECT_FILE) == 0 && !(dir = csn_path_dir(arg)))
        return csn_fail(err, CSN_NOMEM, "out of memory");
    csn_status status = csn_project_find(dir ? dir : arg, ret, err);
    if (status < 0 || ret->path)
        return status;
    status = csn_fail(err, CSN_NOT_FOUND, "no " CSN_PROJECT_FILE " for '%s'", arg);
    return csn_error_advise(status, err, "caisson init writes one");
}

/* ---- showing ------------------------------------------------------------------------- */

static void put_line(const char *indent, const char *text)
{
    fputs(indent, stdout);
    csn_cli_put_lines(text, strlen(text));
    putchar('\n');
}

/* Prints the names of what the configuration grants, then all of it in words. */
static csn_status show(const char *title, const char *json, size_t len, csn_error **err)
{
    const csn_config defaults = {.size = sizeof(defaults), .backend = "jail"};
    const csn_narrow_base base = {.config = &defaults, .own_workspace = true};
    const char *names[CSN_OPTION_COUNT + 1];
    csn_config *c = NULL;
    csn_lines l = {0};

    csn_status st = csn_config_parse(json, len, title, &c, err);
    if (st < 0)
        return st;
    put_line("", title);
    size_t n = csn_config_widening(c, &base, names);
    fputs(n > 0 ? "  grants more than the defaults:" : "  grants nothing beyond the defaults",
          stdout);
    for (size_t i = 0; i < n; i++)
        printf("%s %s", i ? "," : "", names[i]);
    putchar('\n');
    csn_policy_explain(&l, c);
    for (char *const *p = l.v; p && *p; p++)
        put_line("  ", *p);
    if (l.failed)
        st = csn_fail(err, CSN_NOMEM, "out of memory");
    csn_strv_free(l.v);
    csn_config_free(c);
    return st;
}

static csn_status show_project(const csn_project *p, csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    const csn_jval *profile;
    const char *name = NULL;

    csn_status st = show(p->path, p->text, p->len, err);
    if (st == CSN_OK)
        st = csn_json_parse(p->text, p->len, p->path, &root, err);
    const csn_jval *all = st == CSN_OK ? csn_jval_get(root, "profiles") : NULL;
    for (size_t i = 0; st == CSN_OK && (profile = csn_jval_member(all, i, &name)); i++) {
        csn_autofree char *json = csn_jval_dump(profile);
        csn_autofree char *title = NULL;
        if (!json || asprintf(&title, "with --profile %s also:", name) < 0) {
            title = NULL;
            return csn_fail(err, CSN_NOMEM, "out of memory");
        }
        st = show(title, json, strlen(json), err);
    }
    return st;
}

static csn_status check_valid(const csn_project *p, csn_error **err)
{
    csn_config *c = NULL;
    csn_status st = csn_config_parse(p->text, p->len, p->path, &c, err);

    csn_config_free(c);
    return st;
}

static bool user_agrees(void)
{
    char line[16] = "";

    fflush(stdout);
    fputs("Trust exactly this content? [y/N] ", stderr);
    ssize_t n = read(STDIN_FILENO, line, sizeof(line) - 1);
    return n > 0 && (line[0] == 'y' || line[0] == 'Y');
}

/* ---- the list ------------------------------------------------------------------------ */

typedef struct listing {
    csn_json *json; /* NULL: text */
} listing;

/* "trusted", or what has become of the file since. */
static const char *state_of(const char *path, const char *hash)
{
    csn_autofree char *dir = csn_path_dir(path);
    csn_project p = {0};
    const char *state = "missing";

    if (!dir || csn_project_find(dir, &p, NULL) < 0)
        return "unusable";
    if (p.path && strcmp(p.path, path) == 0)
        state = strcmp(p.hash, hash) == 0 ? "trusted" : "changed";
    csn_project_release(&p);
    return state;
}

static void list_one(void *ctx, const char *path, const char *hash)
{
    const listing *l = ctx;
    const char *state = state_of(path, hash);

    if (!l->json) {
        printf("%-8s ", state);
        csn_cli_put_name(path);
        putchar('\n');
        return;
    }
    csn_json_object(l->json);
    csn_json_kstr(l->json, "path", path);
    csn_json_kstr(l->json, "sha256", hash);
    csn_json_kstr(l->json, "state", state);
    csn_json_object_end(l->json);
}

static int list_all(const csn_cli *c)
{
    csn_answer a;
    listing l = {0};
    csn_error *err = NULL;

    if (c->json) {
        l.json = csn_answer_begin(&a);
        csn_json_array(l.json);
    }
    csn_status st = csn_trust_each(list_one, &l, &err);
    if (c->json && st < 0)
        csn_buf_release(&a.buf);
    if (st < 0)
        return csn_cli_fail(c, err);
    if (!c->json)
        return 0;
    csn_json_array_end(l.json);
    return csn_answer_end(c, &a);
}

/* ---- the commands -------------------------------------------------------------------- */

static int check(csn_cli *c, void *opts)
{
    const trust_opts *o = opts;

    if (o->list && (o->yes || c->nargs > 0))
        return csn_cli_usage(c, NULL, "--list takes neither a directory nor --yes");
    return 0;
}

static int run_trust(csn_cli *c, void *opts)
{
    const trust_opts *o = opts;
    csn_project p = {0};
    csn_error *err = NULL;

    if (o->list)
        return list_all(c);
    csn_status st = find(c->arg[0], &p, &err);
    if (st == CSN_OK && !c->json)
        st = show_project(&p, &err);
    else if (st == CSN_OK) /* it must be valid to be trusted */
        st = check_valid(&p, &err);
    if (st == CSN_OK && !o->yes && (c->json || !isatty(STDIN_FILENO))) {
        csn_project_release(&p);
        return csn_cli_usage(c, "caisson trust --yes", "there is no terminal to ask on");
    }
    if (st == CSN_OK && !o->yes && !user_agrees())
        st = csn_fail(&err, CSN_CANCELLED, "not trusted");
    if (st == CSN_OK)
        st = csn_trust_add(p.path, p.hash, &err);
    csn_project_release(&p);
    return csn_cli_finish(c, st, &err);
}

static int run_untrust(csn_cli *c, void *opts)
{
    csn_autofree char *dir = NULL, *path = NULL, *real = NULL;
    csn_project p = {0};
    csn_error *err = NULL;

    (void)opts;
    /* A file that is gone or unusable can be untrusted by its path. */
    if (c->arg[0] && strcmp(csn_path_base(c->arg[0]), CSN_PROJECT_FILE) == 0) {
        dir = csn_path_dir(c->arg[0]);
        real = dir ? realpath(dir, NULL) : NULL;
        if (asprintf(&path, "%s/" CSN_PROJECT_FILE, real ? real : dir ? dir : "") < 0)
            return csn_cli_fail_text(c, CSN_NOMEM, "out of memory");
        return csn_cli_finish(c, csn_trust_remove(path, &err), &err);
    }
    csn_status st = find(c->arg[0], &p, &err);
    if (st == CSN_OK)
        st = csn_trust_remove(p.path, &err);
    csn_project_release(&p);
    return csn_cli_finish(c, st, &err);
}

static const csn_opt options[] = {
    {CSN_OPT_FLAG, 'y', "yes", offsetof(trust_opts, yes), NULL, "do not ask", NULL},
    {CSN_OPT_FLAG, 0, "list", offsetof(trust_opts, list), NULL, "list the trusted files", NULL},
    {CSN_OPT_END},
};

const csn_command csn_cmd_trust = {
    .name = "trust",
    .args = "[DIR|FILE]",
    .usage = "[--yes] [DIR|FILE] | --list",
    .summary = "accept what a project's caisson.json grants",
    .intro =
        "Shows what the caisson.json of a directory, by default the current one, grants,\n"
        "asks, and remembers exactly this content as trusted. Before that the file only\n"
        "narrows what sandboxes on the project may do, and one that grants something is\n"
        "refused. A changed file must be trusted again. --list prints the trusted files and\n"
        "whether they have changed since.",
    .examples = "  caisson trust\n"
                "  caisson trust --yes ~/project\n"
                "  caisson trust --list\n",
    .groups = {{"Options", options, 0}},
    .opts_size = sizeof(trust_opts),
    .check = check,
    .run = run_trust,
};

const csn_command csn_cmd_untrust = {
    .name = "untrust",
    .args = "[DIR|FILE]",
    .summary = "withdraw trust in a project's caisson.json",
    .intro =
        "Forgets that the caisson.json of a directory, by default the current one, was\n"
        "trusted. FILE may be a file that no longer exists, as caisson trust --list prints\n"
        "it.",
    .examples = "  caisson untrust\n"
                "  caisson untrust ~/old/caisson.json\n",
    .run = run_untrust,
};
