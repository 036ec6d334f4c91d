/* cmd_aside.c: `aside`: lists, restores and deletes the protected files that were moved out of
 * a workspace.
 *
 * A sandbox made these files, and chose their paths: both are printed in visible form. To
 * restore one means that programs of the host may run it, so that is asked on a terminal and
 * needs --yes otherwise; so does deleting more than one. */
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "caisson/records.h"
#include "cli/commands.h"

CSN_DEFINE_CLEANUP(csn_aside_list_result, csn_aside_list_free)

typedef struct aside_opts {
    uint64_t older;
    bool yes, force;
} aside_opts;

static const char *verb(const csn_cli *c)
{
    return c->nargs > 0 ? c->arg[0] : "list";
}

static int check(csn_cli *c, void *opts)
{
    const aside_opts *o = opts;
    bool list = strcmp(verb(c), "list") == 0, restore = strcmp(verb(c), "restore") == 0;
    bool clear = strcmp(verb(c), "clear") == 0;

    if (!list && !restore && !clear)
        return csn_cli_unknown_word(c, "a word of aside", verb(c), "list|restore|clear");
    if (list && c->nargs > 1)
        return csn_cli_usage(c, NULL, "list takes no argument");
    if (restore && c->nargs < 2)
        return csn_cli_usage(c, "caisson aside lists them", "missing argument ID");
    if (!clear && o->older)
        return csn_cli_usage(c, NULL, "--older is for clear");
    if (o->older == CSN_NO_LIMIT)
        return csn_cli_usage(c, "such as 7d", "--older takes a duration above 0, not '%s'",
                             csn_args_typed(c->args, "older", 0));
    if (!restore && o->force)
        return csn_cli_usage(c, NULL, "--force is for restore");
    if (list && o->yes)
        return csn_cli_usage(c, NULL, "--yes is for restore and clear");
    return 0;
}

/* ---- list ---------------------------------------------------------------------------- */

static void put_visible(const char *text)
{
    csn_autobuf b;

    csn_buf_init(&b, (size_t)PATH_MAX * 8);
    csn_cli_escape(&b, text, strlen(text));
    fputs(b.err == 0 && b.data ? b.data : "?", stdout);
}

static void put_entry(csn_json *j, const csn_aside_entry *e)
{
    char iso[CSN_ISO_SIZE];

    csn_json_object(j);
    csn_json_kstr(j, "id", e->id);
    csn_json_kstr(j, "sandbox", e->sandbox);
    csn_json_kstr(j, "path", e->path);
    csn_json_kstr(j, "reason", e->reason);
    csn_json_kstr(j, "kept", e->kept);
    csn_json_kstr(j, "type", e->type);
    csn_json_kuint(j, "bytes", e->bytes);
    csn_iso8601(e->moved_ms * 1000000, iso);
    csn_json_kstr(j, "moved_at", e->moved_ms ? iso : NULL);
    csn_json_object_end(j);
}

static void put_list(csn_json *j, const csn_aside_list_result *l)
{
    csn_json_array(j);
    for (size_t i = 0; i < l->count; i++)
        put_entry(j, &l->items[i]);
    csn_json_array_end(j);
}

static int list(csn_cli *c, const csn_aside_list_result *l)
{
    char when[CSN_HUMAN_SIZE], size[CSN_HUMAN_SIZE];

    if (c->json)
        return CSN_CLI_JSON(c, put_list, l);
    if (l->count > 0)
        printf("%-32s %-16s  %-10s %s\n", "ID", "MOVED (UTC)", "SIZE", "PATH");
    for (size_t i = 0; i < l->count; i++) {
        const csn_aside_entry *e = &l->items[i];
        printf("%-32s %-16s  %-10s ", e->id, csn_cli_human_time(e->moved_ms, when),
               csn_cli_human_size(e->bytes, size));
        put_visible(e->path ? e->path : "?");
        if (e->reason) {
            fputs("  (", stdout);
            put_visible(e->reason);
            putchar(')');
        }
        putchar('\n');
    }
    return 0;
}

/* ---- which --------------------------------------------------------------------------- */

/* True if the word is the id of the entry, its sandbox, or its path. */
static bool matches(const csn_aside_entry *e, const char *word, const char *path)
{
    return strcmp(e->id, word) == 0 || strcmp(e->sandbox, word) == 0 ||
           (e->path && path && strcmp(e->path, path) == 0);
}

/* The word as an absolute path, by text: the file is not there. malloc'd, or NULL. */
static char *absolute(const char *word)
{
    csn_autofree char *cwd = word[0] == '/' ? strdup("") : getcwd(NULL, 0);
    char *path = NULL;

    while (strncmp(word, "./", 2) == 0)
        word += 2;
    if (!cwd || asprintf(&path, "%s%s%s", cwd, word[0] == '/' ? "" : "/", word) < 0)
        return NULL;
    return path;
}

/* Asks on the terminal. Returns 0 for yes, or an exit status after a message. */
static int ask(const csn_cli *c, const aside_opts *o, const char *question)
{
    char answer[16] = "";

    if (o->yes)
        return 0;
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return csn_cli_usage(c, "there is no terminal to ask on", "%s needs --yes", verb(c));
    csn_cli_note(c, "%s [y/N]", question);
    if (!fgets(answer, sizeof(answer), stdin) || (answer[0] != 'y' && answer[0] != 'Y')) {
        csn_cli_note(c, "nothing was changed");
        return CSN_EXIT_FAILED;
    }
    return 0;
}

/* ---- restore ------------------------------------------------------------------------- */

static int restore(csn_cli *c, const aside_opts *o, const csn_aside_list_result *l)
{
    csn_autofree char *path = absolute(c->arg[1]), *question = NULL;
    const csn_aside_entry *found = NULL;
    csn_error *err = NULL;
    size_t count = 0;
    char quoted[256];

    for (size_t i = 0; i < l->count; i++) {
        if (!matches(&l->items[i], c->arg[1], path))
            continue;
        found = &l->items[i];
        count++;
    }
    csn_args_quote(c->arg[1], quoted, sizeof(quoted));
    if (count == 0)
        return csn_cli_fail_text(c, CSN_NOT_FOUND, "nothing that was moved away is '%s'",
                                 quoted);
    if (count > 1)
        return csn_cli_usage(c, "caisson aside shows the ids", "'%s' are %zu entries: name one",
                             quoted, count);
    if (asprintf(&question,
                 "restore '%s'? A sandbox made this file, and programs on this host may run it "
                 "from its place: %s. Restore it only if you have read it, it is %s",
                 found->path ? found->path : "?", found->reason ? found->reason : "?",
                 found->kept) < 0)
        question = NULL;
    int status = ask(c, o, question ? question : "restore it?");
    if (status)
        return status;
    csn_status st = csn_aside_restore(found->id, o->force ? CSN_ASIDE_REPLACE : 0, &err);
    if (st == CSN_OK && !c->json)
        csn_cli_note(c, "'%s' is back; programs on this host may run it", found->path);
    return csn_cli_finish(c, st, &err);
}

/* ---- clear --------------------------------------------------------------------------- */

static bool is_chosen(const csn_cli *c, const aside_opts *o, const csn_aside_entry *e,
                      const char *path, int64_t now)
{
    if (c->nargs > 1 && !matches(e, c->arg[1], path))
        return false;
    return !o->older || (e->moved_ms < now && (uint64_t)(now - e->moved_ms) >= o->older);
}

static int clear(csn_cli *c, const aside_opts *o, const csn_aside_list_result *l)
{
    csn_autofree char *path = c->nargs > 1 ? absolute(c->arg[1]) : NULL;
    int64_t now = csn_wall_ms();
    csn_error *err = NULL;
    char question[96], quoted[256];
    size_t count = 0;
    csn_answer a;

    for (size_t i = 0; i < l->count; i++)
        count += is_chosen(c, o, &l->items[i], path, now);
    if (count == 0 && c->nargs > 1 && !o->older) {
        csn_args_quote(c->arg[1], quoted, sizeof(quoted));
        return csn_cli_fail_text(c, CSN_NOT_FOUND, "nothing that was moved away is '%s'",
                                 quoted);
    }
    snprintf(question, sizeof(question), "delete %zu entries for good?", count);
    int status = count > 1 ? ask(c, o, question) : 0;
    if (status)
        return status;
    for (size_t i = 0; i < l->count; i++)
        if (is_chosen(c, o, &l->items[i], path, now) &&
            csn_aside_remove(l->items[i].id, &err) < 0)
            return csn_cli_fail(c, err);
    if (!c->json) {
        printf("%zu deleted\n", count);
        return 0;
    }
    csn_json *j = csn_answer_begin(&a);
    csn_json_object(j);
    csn_json_kuint(j, "removed", count);
    csn_json_object_end(j);
    return csn_answer_end(c, &a);
}

static int run(csn_cli *c, void *opts)
{
    CSN_CLEANUP(csn_aside_list_freep) csn_aside_list_result *l = NULL;
    csn_error *err = NULL;

    if (csn_aside_list(&l, &err) < 0)
        return csn_cli_fail(c, err);
    if (strcmp(verb(c), "restore") == 0)
        return restore(c, opts, l);
    return strcmp(verb(c), "clear") == 0 ? clear(c, opts, l) : list(c, l);
}

#define AT(field) offsetof(aside_opts, field)

static const csn_opt options[] = {
    {CSN_OPT_DURATION, 0, "older", AT(older), "DURATION",
     "with clear: only what was moved longer ago", NULL},
    {CSN_OPT_FLAG, 'y', "yes", AT(yes), NULL, "do not ask", NULL},
    {CSN_OPT_FLAG, 0, "force", AT(force), NULL,
     "with restore: replace the file that is there by now", NULL},
    {CSN_OPT_END},
};

const csn_command csn_cmd_aside = {
    .name = "aside",
    .args = "[list|restore|clear] [ID|PATH]",
    .usage = "[list] | restore (ID | PATH) [--yes] [--force] | clear [ID | PATH] [--older "
             "DURATION] [--yes]",
    .summary = "files that were moved out of a workspace",
    .intro =
        "A sandbox may make files that programs on this host would run: git hooks, editor\n"
        "tasks, .envrc. They are moved away when its command ends. aside lists them with the\n"
        "place they had and the reason. restore moves one back: read it first, because\n"
        "programs on this host may run it then. Restore when no sandbox runs on that\n"
        "workspace, or its next command moves the file away again. clear deletes for good; ID\n"
        "may also be a sandbox.",
    .examples = "  caisson aside\n"
                "  caisson aside restore .vscode/tasks.json\n"
                "  caisson aside clear --older 7d\n",
    .groups = {{"Options", options, 0}},
    .opts_size = sizeof(aside_opts),
    .check = check,
    .run = run,
};
