/* cmd_ls.c: `ls`, `stat` and `glob`: list and describe files.
 *
 * Names are untrusted: they are printed one per line (or NUL-terminated with -0), unchanged
 * except on a terminal, where control bytes are escaped. A note on stderr reports that the
 * library truncated the list. A glob without match is an empty result, not a failure. */
#include <inttypes.h>
#include <stddef.h>
#include <sys/stat.h>

#include "cli/commands.h"
#include "wire/result_json.h"

typedef struct ls_opts {
    bool details, nul, nofollow, gitignore;
} ls_opts;

static void mode_text(uint32_t mode, char ret[11])
{
    static const char bits[] = "rwxrwxrwx";
    char type = '-';

    if (S_ISDIR(mode))
        type = 'd';
    else if (S_ISLNK(mode))
        type = 'l';
    else if (S_ISFIFO(mode))
        type = 'p';
    else if (S_ISSOCK(mode))
        type = 's';
    else if (S_ISBLK(mode))
        type = 'b';
    else if (S_ISCHR(mode))
        type = 'c';
    ret[0] = type;
    for (int i = 0; i < 9; i++)
        ret[i + 1] = mode & (0400u >> i) ? bits[i] : '-';
    if (mode & S_ISUID)
        ret[3] = mode & S_IXUSR ? 's' : 'S';
    if (mode & S_ISGID)
        ret[6] = mode & S_IXGRP ? 's' : 'S';
    if (mode & S_ISVTX)
        ret[9] = mode & S_IXOTH ? 't' : 'T';
    ret[10] = '\0';
}

static void print_details(const csn_file_info *f, int width)
{
    char mode[11], when[CSN_HUMAN_SIZE];

    mode_text(f->mode, mode);
    printf("%s %*" PRIu64 " %s ", mode, width, f->file_size,
           csn_cli_human_time(f->modified_ns / 1000000, when));
    csn_cli_put_name(f->path);
    if (f->target) {
        fputs(" -> ", stdout);
        csn_cli_put_name(f->target);
    }
}

static int size_width(const csn_file_list *l)
{
    int width = 1;

    for (size_t i = 0; i < l->count; i++) {
        int n = snprintf(NULL, 0, "%" PRIu64, l->items[i].file_size);
        width = n > width ? n : width;
    }
    return width;
}

/* Prints and frees the list. */
static int answer(const csn_cli *c, csn_file_list *l, const ls_opts *o)
{
    int status = 0, width = o->details ? size_width(l) : 0;

    if (c->json)
        status = CSN_CLI_JSON(c, csn_wire_files, l);
    for (size_t i = 0; i < l->count && !c->json; i++) {
        if (o->details)
            print_details(&l->items[i], width);
        else if (o->nul && !csn_cli_on_terminal())
            fputs(l->items[i].path, stdout);
        else
            csn_cli_put_name(l->items[i].path);
        putchar(o->nul ? '\0' : '\n');
    }
    if (l->truncated)
        csn_cli_note(c, "the list is truncated: only the first %zu entries are shown",
                     l->count);
    csn_file_list_free(l);
    return status;
}

static int run_ls(csn_cli *c, void *opts)
{
    const ls_opts *o = opts;
    csn_file_list *l = NULL;
    csn_error *err = NULL;
    const char *path = c->nargs > 1 ? c->arg[1] : ".";

    if (csn_list(c->sb, path, o->nofollow ? CSN_FILE_NOFOLLOW : 0, &l, &err) < 0)
        return csn_cli_fail(c, err);
    return answer(c, l, o);
}

static int run_glob(csn_cli *c, void *opts)
{
    const ls_opts *o = opts;
    uint32_t flags = o->gitignore ? CSN_FILE_GITIGNORE : 0;
    csn_file_list *l = NULL;
    csn_error *err = NULL;

    if (csn_glob(c->sb, c->arg[1], c->nargs > 2 ? c->arg[2] : NULL, flags, &l, &err) < 0)
        return csn_cli_fail_value(c, err);
    return answer(c, l, opts);
}

static void print_stat(const csn_file_info *f)
{
    char mode[11], when[CSN_HUMAN_SIZE];

    mode_text(f->mode, mode);
    fputs("path      ", stdout);
    csn_cli_put_name(f->path);
    if (f->target) {
        fputs("\ntarget    ", stdout);
        csn_cli_put_name(f->target);
    }
    printf("\nkind      %s\nsize      %" PRIu64 "\nmode      %04" PRIo32
           " (%s)\nmodified  %s\n",
           f->is_symlink           ? "symlink"
           : f->is_dir             ? "directory"
           : S_ISREG(f->mode) != 0 ? "file"
                                   : "special",
           f->file_size, f->mode & 07777, mode,
           csn_cli_human_time(f->modified_ns / 1000000, when));
}

static int run_stat(csn_cli *c, void *opts)
{
    const ls_opts *o = opts;
    csn_file_list *l = NULL;
    csn_error *err = NULL;
    int status = 0;

    if (csn_stat(c->sb, c->arg[1], o->nofollow ? CSN_FILE_NOFOLLOW : 0, &l, &err) < 0)
        return csn_cli_fail(c, err);
    if (c->json)
        status = CSN_CLI_JSON(c, csn_wire_file, &l->items[0]);
    else
        print_stat(&l->items[0]);
    csn_file_list_free(l);
    return status;
}

#define AT(field) offsetof(ls_opts, field)

static const csn_opt list_options[] = {
    {CSN_OPT_FLAG, 'l', NULL, AT(details), NULL, "mode, size and time of each", NULL},
    {CSN_OPT_FLAG, '0', NULL, AT(nul), NULL, "end each name with NUL, for xargs -0", NULL},
    {CSN_OPT_FLAG, 0, "nofollow", AT(nofollow), NULL, "refuse symlinks in the path", NULL},
    {CSN_OPT_END},
};

static const csn_opt glob_options[] = {
    {CSN_OPT_FLAG, 'l', NULL, AT(details), NULL, "mode, size and time of each", NULL},
    {CSN_OPT_FLAG, 0, "gitignore", AT(gitignore), NULL,
     "leave out what .gitignore files name, and .git", NULL},
    {CSN_OPT_FLAG, '0', NULL, AT(nul), NULL, "end each name with NUL, for xargs -0", NULL},
    {CSN_OPT_END},
};

static const csn_opt stat_options[] = {
    {CSN_OPT_FLAG, 0, "nofollow", AT(nofollow), NULL, "of a symlink itself", NULL},
    {CSN_OPT_END},
};

const csn_command csn_cmd_stat = {
    .name = "stat",
    .args = "ID PATH",
    .usage = "ID PATH [--nofollow]",
    .summary = "show kind, size and mode of a path",
    .intro =
        "Prints kind, size, mode and time of a file or directory. Exit status 1 if it does\n"
        "not exist, for scripts that test this.",
    .examples = "  caisson stat $id src --json\n",
    .groups = {{"Options", stat_options, 0}},
    .opts_size = sizeof(ls_opts),
    .flags = CSN_CMD_SANDBOX,
    .run = run_stat,
};

const csn_command csn_cmd_ls = {
    .name = "ls",
    .args = "ID [PATH]",
    .summary = "list a directory",
    .intro = "Lists the names in a directory, sorted, dotfiles included, one a line.",
    .examples = "  caisson ls $id src -l\n"
                "  caisson ls $id --json\n",
    .groups = {{"Options", list_options, 0}},
    .opts_size = sizeof(ls_opts),
    .flags = CSN_CMD_SANDBOX,
    .run = run_ls,
};

const csn_command csn_cmd_glob = {
    .name = "glob",
    .args = "ID PATTERN [PATH]",
    .summary = "find files by pattern",
    .intro =
        "Finds paths below PATH (default: the working directory) that match: * and ? within\n"
        "a name, ** across directories, [a-z], {a,b}. Dotfiles count; results are sorted\n"
        "and relative to PATH. No match is not an error. Quote the pattern.",
    .examples = "  caisson glob $id '**/*.{c,h}' src\n"
                "  caisson glob $id '**/.env*' --json\n",
    .groups = {{"Options", glob_options, 0}},
    .opts_size = sizeof(ls_opts),
    .flags = CSN_CMD_SANDBOX,
    .run = run_glob,
};
