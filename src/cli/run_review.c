/* run_review.c: shows what the command of `run --cow` changed, and keeps or discards it.
 *
 * The sandbox ends with `run`, and with it every change that was not committed. So the user is
 * asked if there is a terminal; without one nothing is kept unless --commit-on says so, and the
 * message names the option. Changes that are to be kept and cannot be, because of conflicts, go
 * to a patch file. Paths come from the sandbox and are printed in visible form. */
#include "cli/run_review.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/error.h"
#include "base/strv.h"
#include "cli/changes_view.h"
#include "cli/commit_report.h"
#include "cli/exec_opts.h"

#define TEXT_MAX (256u * 1024u * 1024u)
#define AT(f)    offsetof(csn_review_opts, f)

const csn_opt csn_review_opt_table[] = {
    {CSN_OPT_STR, 0, "commit-on", AT(commit_on), "WHEN",
     "success, always or never: write the changes to the workspace", "success|always|never"},
    {CSN_OPT_FLAG, 0, "allow-protected", AT(allow_protected), NULL,
     "also files that programs of the host would run", NULL},
    {CSN_OPT_END},
};

bool csn_review_is_cow(const csn_config *config)
{
    const char *colon = config->workspace ? strrchr(config->workspace, ':') : NULL;

    return (config->flags & CSN_OPEN_COW) ||
           (colon && (strcmp(colon, ":cow") == 0 || csn_str_starts(colon, ":cow,")));
}

int csn_review_check(const csn_cli *c, const csn_review_opts *o, const csn_config *config)
{
    if ((o->commit_on || o->allow_protected) && !csn_review_is_cow(config))
        return csn_cli_usage(c, "add --cow", "%s needs a copy-on-write workspace",
                             o->commit_on ? "--commit-on" : "--allow-protected");
    return 0;
}

/* ---- committing ---------------------------------------------------------------------- */

/* Writes a patch with all changes to a new file, since they end with the sandbox. */
static void save_patch(const csn_cli *c)
{
    const csn_diff_opts d = {.size = sizeof(d), .flags = CSN_DIFF_PATCH};
    const char *tmp = getenv("TMPDIR");
    csn_autofree char *name = NULL;
    csn_diff_result *r = NULL;

    if (csn_diff(c->sb, &d, &r, NULL) < 0)
        return;
    if (asprintf(&name, "%s/caisson-XXXXXX", tmp && *tmp ? tmp : "/tmp") < 0)
        name = NULL;
    csn_autofd int fd = name ? mkostemp(name, O_CLOEXEC) : -1;
    if (fd >= 0 && csn_cli_write(fd, r->patch ? r->patch : "", r->patch_len) == 0)
        csn_cli_note(c, "the changes are in '%s', a patch for git apply", name);
    csn_diff_result_free(r);
}

int csn_review_keep(const csn_cli *c, const csn_review_opts *o, const char *const *paths)
{
    const csn_commit_opts co = {.size = sizeof(co),
                                .flags = o->allow_protected ? CSN_COMMIT_PROTECTED : 0,
                                .paths = paths};
    csn_commit_result *r = NULL;
    csn_error *err = NULL;
    int status = 0;

    if (csn_commit(c->sb, &co, &r, &err) < 0) {
        (void)csn_cli_fail(c, err);
        save_patch(c);
        return CSN_EXIT_BROKEN;
    }
    if (r->conflict_count > 0) {
        csn_cli_message("run",
                        "the host changed files that the command changed, too; nothing "
                        "was written",
                        NULL);
        save_patch(c);
        status = CSN_EXIT_BROKEN;
    } else {
        csn_cli_note(c, "%zu %s written", r->applied + r->merged,
                     r->applied + r->merged == 1 ? "change is" : "changes are");
        if (r->held > 0)
            csn_cli_note(c, "%zu protected %s held back; --allow-protected writes %s", r->held,
                         r->held == 1 ? "file is" : "files are", r->held == 1 ? "it" : "them");
    }
    csn_commit_result_free(r);
    return status;
}

static void say_discarded(const csn_cli *c, size_t count, const char *hint)
{
    csn_cli_note(c, "%zu %s thrown away%s", count, count == 1 ? "change is" : "changes are",
                 hint);
}

/* ---- asking -------------------------------------------------------------------------- */

/* The first letter of the answer in lower case; 0: none. */
static char answer(const char *question)
{
    char line[64] = "";

    tcflush(STDIN_FILENO, TCIFLUSH); /* what was typed earlier is no answer */
    if (csn_cli_write(STDERR_FILENO, question, strlen(question)) != 0)
        return 0;
    ssize_t n = read(STDIN_FILENO, line, sizeof(line) - 1);
    return n > 0 ? (char)(line[0] | 0x20) : 0;
}

static void show_patch(const csn_cli *c)
{
    const csn_diff_opts d = {.size = sizeof(d), .flags = CSN_DIFF_PATCH};
    csn_diff_result *r = NULL;
    csn_error *err = NULL;

    if (csn_diff(c->sb, &d, &r, &err) < 0) {
        (void)csn_cli_fail(c, err);
        return;
    }
    csn_cli_put_lines(r->patch ? r->patch : "", r->patch_len);
    fflush(stdout);
    csn_diff_result_free(r);
}

/* Asks for each change. *ret is a list of paths, NULL if none was chosen. */
static int choose(const csn_diff_result *d, char ***ret)
{
    for (size_t i = 0; i < d->count && !csn_cli_caught(); i++) {
        csn_autobuf text;
        csn_buf_init(&text, 65536);
        csn_buf_printf(&text, "keep %c ", csn_view_letter(d->changes[i].kind));
        csn_cli_escape(&text, d->changes[i].path, strlen(d->changes[i].path));
        csn_buf_puts(&text, " ? yes [y], no [N], no more [q]: ");
        char a = text.err ? 0 : answer(text.data);
        if (a == 0 || a == 'q')
            break;
        if (a == 'y' && csn_strv_push(ret, d->changes[i].path) != 0)
            return -1;
    }
    return 0;
}

static int ask(csn_cli *c, const csn_review_opts *o, const csn_diff_result *d)
{
    CSN_CLEANUP(csn_strv_freep) char **paths = NULL;

    while (!csn_cli_caught()) {
        char a = answer("keep all [k], show [s], choose [c], discard [d]: ");
        if (a == 'k')
            return csn_review_keep(c, o, NULL);
        if (a == 's')
            show_patch(c);
        if (a == 'c') {
            if (choose(d, &paths) != 0)
                return csn_cli_fail_text(c, CSN_NOMEM, "out of memory");
            if (paths)
                return csn_review_keep(c, o, (const char *const *)paths);
        }
        if (a == 0 || a == 'd' || a == 'c')
            break;
    }
    say_discarded(c, d->count, "");
    return 0;
}

static bool can_ask(const csn_cli *c)
{
    return !c->json && !csn_cli_caught() && isatty(STDIN_FILENO) && isatty(STDERR_FILENO) &&
           csn_cli_in_foreground();
}

static int decide(csn_cli *c, const csn_review_opts *o, const csn_diff_result *d, int status)
{
    if (!o->commit_on && can_ask(c))
        return ask(c, o, d);
    if (o->commit_on && (strcmp(o->commit_on, "always") == 0 ||
                         (strcmp(o->commit_on, "success") == 0 && status == 0)))
        return csn_review_keep(c, o, NULL);
    say_discarded(c, d->count, o->commit_on ? "" : "; --commit-on success keeps them");
    return 0;
}

int csn_review_run(csn_cli *c, const csn_review_opts *o, int status)
{
    const csn_diff_opts d = {.size = sizeof(d), .flags = CSN_DIFF_COUNTS};
    csn_diff_result *r = NULL;
    csn_error *err = NULL;
    csn_autobuf text;

    if (csn_diff(c->sb, &d, &r, &err) < 0) {
        (void)csn_cli_fail(c, err);
        return status ? status : CSN_EXIT_BROKEN;
    }
    csn_buf_init(&text, TEXT_MAX);
    csn_view_stat(&text, r->changes, r->count, true);
    int failed = 0;
    if (r->count > 0) {
        if (!text.err)
            (void)csn_cli_write(STDERR_FILENO, text.data, text.len);
        failed = decide(c, o, r, status);
    }
    csn_diff_result_free(r);
    return status ? status : failed;
}
