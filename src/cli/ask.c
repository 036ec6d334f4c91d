/* ask.c: `run --ask` and `run --ask-file`: offers a grant for each denial after a command.
 *
 * The command chose what it was denied, so a grant is what the denial's hint says and nothing
 * wider (policy/explain_hint.c offers none for dangerous paths), it is shown in visible form,
 * and nothing is granted while a command runs. A hint is read as the options that it is made
 * of, by the parser of the command line; one that is only an example (--read DIRECTORY) is no
 * grant. */
#include "cli/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/error.h"
#include "base/strv.h"
#include "cli/project.h"
#include "cli/project_edit.h"
#include "cli/sandbox_opts.h"

#define AT(field) offsetof(csn_ask_opts, field)

const csn_opt csn_ask_opt_table[] = {
    {CSN_OPT_FLAG, 0, "ask", AT(ask), NULL,
     "after denials, ask what to allow and run again; needs a terminal", NULL},
    {CSN_OPT_STR, 0, "ask-file", AT(file), "FILE",
     "write what the denials need as a policy, for review", NULL},
    {CSN_OPT_END},
};

int csn_ask_check(const csn_cli *c, const csn_ask_opts *o)
{
    if (o->ask && o->file)
        return csn_cli_usage(c, NULL, "--ask and --ask-file exclude each other");
    if ((o->ask || o->file) && c->json)
        return csn_cli_usage(c, "the answer of --json has the denials",
                             "--json excludes --ask and --ask-file");
    if (o->ask && (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)))
        return csn_cli_usage(c, "--ask-file FILE writes what is needed for review",
                             "--ask needs a terminal");
    if (o->file && access(o->file, F_OK) == 0)
        return csn_cli_usage(c, "name a new file", "--ask-file '%.512s' exists", o->file);
    return 0;
}

/* ---- hints --------------------------------------------------------------------------- */

/* Splits a hint as a shell would: '...' and "...", of variables only $HOME. Returns false for
 * anything else. */
static bool split_hint(const char *hint, char ***ret)
{
    const char *home = getenv("HOME");
    csn_autobuf word;
    bool in_word = false;

    csn_buf_init(&word, 65536);
    for (const char *p = hint;; p++) {
        if ((*p == ' ' || !*p) && in_word) {
            csn_autofree char *text = word.err ? NULL : csn_buf_take(&word);
            if (!text || csn_strv_push(ret, text) != 0)
                return false;
            in_word = false;
        }
        if (!*p)
            return true;
        if (*p == ' ')
            continue;
        in_word = true;
        if (*p != '\'' && *p != '"') {
            if (strchr("\\$`", *p))
                return false;
            csn_buf_putc(&word, *p);
            continue;
        }
        for (char quote = *p++; *p != quote; p++) {
            bool variable = quote == '"' && csn_str_starts(p, "$HOME") && home;
            if (!*p || (quote == '"' && !variable && strchr("\\$`", *p)))
                return false;
            if (variable)
                csn_buf_puts(&word, home);
            else
                csn_buf_putc(&word, *p);
            p += variable ? strlen("$HOME") - 1 : 0;
        }
    }
}

/* "DIRECTORY", "HOST": what an example has in place of a value. */
static bool is_placeholder(const char *word)
{
    return word[0] && strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == strlen(word);
}

/* True if the hint is made of options with values; *ret is what they set. */
static bool parse_hint(csn_arena *a, const char *hint, csn_config *ret)
{
    const csn_opt_group groups[] = {{"", csn_sandbox_opt_table, 0}, {NULL, NULL, 0}};
    csn_sandbox_opts opts = {0};
    csn_args args = {.groups = groups, .into = &opts};
    csn_usage why;
    char **words = NULL;

    bool ok = csn_str_starts(hint, "--") && split_hint(hint, &words) && words;
    size_t n = csn_strv_len((const char *const *)words);
    for (size_t i = 0; ok && i < n; i++)
        ok = !is_placeholder(words[i]);
    ok = ok && n >= 2 && csn_args_parse(&args, (int)n, words, &why) && args.npos == 0;
    csn_config copy = {.size = sizeof(copy)};
    ok = ok && csn_sandbox_opts_given(&opts, a, NULL) == CSN_OK &&
         csn_config_overlay(a, &copy, &opts.given, NULL) == CSN_OK; /* copies the words */
    if (args.pos)
        csn_args_release(&args);
    csn_strv_free(words);
    if (ok)
        *ret = copy;
    return ok;
}

/* ---- a file for review --------------------------------------------------------------- */

int csn_ask_write(const csn_cli *c, const csn_ask_opts *o, const char *const *hints)
{
    CSN_CLEANUP(csn_arena_freep) csn_arena *a = csn_arena_new();
    csn_config all = {.size = sizeof(all)}, one;
    csn_autobuf text;
    csn_error *err = NULL;
    size_t count = 0;

    csn_buf_init(&text, CSN_CONFIG_FILE_MAX);
    for (; a && hints && *hints; hints++) {
        if (!parse_hint(a, *hints, &one)) {
            csn_cli_note(c, "not in '%s', since it needs a decision: %s", o->file, *hints);
            continue;
        }
        if (csn_config_overlay(a, &all, &one, &err) < 0)
            return csn_cli_fail(c, err);
        count++;
    }
    if (count == 0) {
        csn_cli_note(c, "'%s' is not written: no denial has a grant to offer", o->file);
        return 0;
    }
    csn_status st = csn_project_edit(NULL, 0, o->file, &all, &text, &err);
    if (st < 0)
        return csn_cli_fail(c, err);
    csn_autofd int fd = open(o->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    int e = fd < 0 ? errno : csn_cli_write(fd, text.data, text.len);
    if (e != 0)
        return csn_cli_fail_text(c, csn_status_of_errno(e), "cannot write '%s': %s", o->file,
                                 csn_errno_text(e));
    csn_cli_note(c, "'%s' has what was denied; after review: --policy %s", o->file, o->file);
    return 0;
}

/* ---- questions ----------------------------------------------------------------------- */

/* 'o' once, 'p' project, 'n' neither. */
static char ask(const char *hint)
{
    csn_autobuf text;
    char line[16] = "";

    csn_buf_init(&text, 65536);
    csn_buf_puts(&text, "allow ");
    csn_cli_escape(&text, hint, strlen(hint));
    csn_buf_puts(&text, " ? once [o], for this project [p], no [N]: ");
    tcflush(STDIN_FILENO, TCIFLUSH); /* what was typed earlier is no answer */
    if (text.err || csn_cli_write(STDERR_FILENO, text.data, text.len) != 0)
        return 'n';
    ssize_t n = read(STDIN_FILENO, line, sizeof(line) - 1);
    return n > 0 && strchr("op", line[0] | 0x20) ? (char)(line[0] | 0x20) : 'n';
}

int csn_ask_user(const csn_cli *c, csn_arena *a, const char *const *hints, csn_config *config,
                 bool *ret_again)
{
    csn_config project = {.size = sizeof(project)}, one;
    csn_error *err = NULL;
    bool keep = false;
    csn_status st = CSN_OK;

    *ret_again = false;
    for (; hints && *hints && st == CSN_OK && !csn_cli_caught(); hints++) {
        if (!parse_hint(a, *hints, &one)) {
            csn_cli_note(c, "needs a decision: %s", *hints);
            continue;
        }
        char answer = ask(*hints);
        if (answer == 'n')
            continue;
        *ret_again = true;
        st = csn_config_overlay(a, config, &one, &err);
        if (st == CSN_OK && answer == 'p')
            st = csn_config_overlay(a, &project, &one, &err);
        keep |= answer == 'p';
    }
    if (st == CSN_OK && keep)
        st = csn_project_add(config->workspace, &project, &err);
    return st < 0 ? csn_cli_fail(c, err) : 0;
}
