/* cmd_commit.c: `commit`: writes changes of a copy-on-write workspace to the host's directory.
 *
 * A conflict is no failure of the library: nothing is written, the exit status is 1, and the
 * message names the paths. --conflicts makes a new directory, so that no link inside of it can
 * lead elsewhere. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/strv.h"
#include "cli/commands.h"
#include "cli/commit_report.h"
#include "wire/workspace_json.h"

#define RESOLVED_MAX (64u * 1024u * 1024u)

typedef struct commit_opts {
    bool dry_run, allow_protected, mine, theirs;
    char **resolved;
    const char *conflicts;
} commit_opts;

static int check(csn_cli *c, void *opts)
{
    const commit_opts *o = opts;
    struct stat st;
    char quoted[256];

    if (o->mine && o->theirs)
        return csn_cli_usage(c, NULL, "--mine and --theirs exclude each other");
    for (size_t i = 0; o->resolved && o->resolved[i]; i++) {
        const char *eq = strrchr(o->resolved[i], '=');
        csn_args_quote(o->resolved[i], quoted, sizeof(quoted));
        if (!eq || eq == o->resolved[i] || !eq[1])
            return csn_cli_usage(c, "--resolved src/main.c=merged.c",
                                 "--resolved '%s' is not PATH=FILE", quoted);
    }
    if (o->conflicts && lstat(o->conflicts, &st) == 0)
        return csn_cli_usage(c, "name a new directory", "--conflicts '%.512s' exists",
                             o->conflicts);
    return 0;
}

/* ---- --resolved ---------------------------------------------------------------------- */

/* Reads each file. The contents are malloc'd and freed by the caller. */
static csn_status read_resolved(csn_arena *a, char *const *list, csn_resolution **ret,
                                size_t *ret_count, csn_error **err)
{
    size_t n = csn_strv_len((const char *const *)list);
    csn_resolution *v = csn_arena_array(a, n + 1, sizeof(*v));

    if (!v)
        return csn_fail(err, CSN_NOMEM, "out of memory");
    *ret = v;
    for (size_t i = 0; i < n; i++) {
        const char *eq = strrchr(list[i], '=');
        char *data = NULL;
        v[i].path = csn_arena_memdup(a, list[i], (size_t)(eq - list[i]));
        csn_status st = csn_cli_slurp(eq + 1, RESOLVED_MAX, &data, &v[i].size, err);
        if (st < 0)
            return csn_wrap(st, err, "--resolved");
        v[i].data = data;
        (*ret_count)++;
    }
    return CSN_OK;
}

/* ---- --conflicts --------------------------------------------------------------------- */

/* Makes the directories above `path` below `dir`. 0 or errno. */
static int make_parents(int dir, const char *path)
{
    csn_autofree char *copy = strdup(path);

    for (char *p = copy ? strchr(copy, '/') : NULL; p; p = strchr(p + 1, '/')) {
        *p = '\0';
        if (mkdirat(dir, copy, 0777) < 0 && errno != EEXIST)
            return errno;
        *p = '/';
    }
    return copy ? 0 : ENOMEM;
}

/* 0 or errno. text NULL: there is no such version. */
static int write_version(int dir, const char *path, const char *which, const char *text,
                         size_t len)
{
    csn_autofree char *name = NULL;

    if (!text)
        return 0;
    if (asprintf(&name, "%s.%s", path, which) < 0) {
        name = NULL;
        return ENOMEM;
    }
    csn_autofd int fd =
        openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    return fd < 0 ? errno : csn_cli_write(fd, text, len);
}

static int write_conflict(int dir, const csn_conflict *f)
{
    int e = make_parents(dir, f->path);

    if (e == 0)
        e = write_version(dir, f->path, "base", f->base, f->base_len);
    if (e == 0)
        e = write_version(dir, f->path, "host", f->host, f->host_len);
    if (e == 0)
        e = write_version(dir, f->path, "sandbox", f->sandbox, f->sandbox_len);
    if (e == 0)
        e = write_version(dir, f->path, "merged", f->merged, f->merged_len);
    return e;
}

static int write_conflicts(const csn_cli *c, const char *where, const csn_commit_result *r)
{
    int e = mkdir(where, 0777) < 0 ? errno : 0;
    csn_autofd int dir = e == 0 ? open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    if (e == 0 && dir < 0)
        e = errno;
    for (size_t i = 0; i < r->conflict_count && e == 0; i++)
        e = write_conflict(dir, &r->conflicts[i]);
    if (e != 0)
        return csn_cli_fail_text(c, csn_status_of_errno(e), "--conflicts '%s': %s", where,
                                 csn_errno_text(e));
    return 0;
}

/* ---- the command --------------------------------------------------------------------- */

static int report(csn_cli *c, const commit_opts *o, const csn_commit_result *r)
{
    int status =
        o->conflicts && r->conflict_count > 0 ? write_conflicts(c, o->conflicts, r) : 0;

    if (status != 0)
        return status;
    if (!c->json)
        csn_commit_print(r, o->dry_run);
    else
        status = CSN_CLI_JSON(c, csn_wire_commit, r);
    if (status == 0 && r->conflict_count > 0)
        status = csn_commit_conflicts(c, r, o->conflicts);
    if (r->held > 0 && !c->json)
        csn_cli_note(c, "%zu protected %s held back; --allow-protected writes %s", r->held,
                     r->held == 1 ? "file is" : "files are", r->held == 1 ? "it" : "them");
    return status;
}

static int run(csn_cli *c, void *opts)
{
    CSN_CLEANUP(csn_arena_freep) csn_arena *a = csn_arena_new();
    const commit_opts *o = opts;
    csn_commit_opts co = {.size = sizeof(co), .paths = c->nargs > 1 ? c->arg + 1 : NULL};
    csn_commit_result *r = NULL;
    csn_resolution *resolved = NULL;
    csn_error *err = NULL;
    int status = 0;

    if (!a)
        return csn_cli_fail_text(c, CSN_NOMEM, "out of memory");
    co.flags = (o->dry_run ? CSN_COMMIT_DRY_RUN : 0) | (o->mine ? CSN_COMMIT_MINE : 0) |
               (o->theirs ? CSN_COMMIT_THEIRS : 0) |
               (o->allow_protected ? CSN_COMMIT_PROTECTED : 0);
    csn_status st = read_resolved(a, o->resolved, &resolved, &co.resolved_count, &err);
    co.resolved = resolved;
    if (st == CSN_OK)
        st = csn_commit(c->sb, &co, &r, &err);
    for (size_t i = 0; i < co.resolved_count; i++)
        free((void *)(uintptr_t)resolved[i].data);
    if (st < 0)
        return csn_cli_fail(c, err);
    status = report(c, o, r);
    csn_commit_result_free(r);
    return status;
}

#define AT(field) offsetof(commit_opts, field)

static const csn_opt options[] = {
    {CSN_OPT_FLAG, 'n', "dry-run", AT(dry_run), NULL, "say what would be done", NULL},
    {CSN_OPT_FLAG, 0, "allow-protected", AT(allow_protected), NULL,
     "also files that programs of the host would run", NULL},
    {CSN_OPT_FLAG, 0, "mine", AT(mine), NULL, "conflicts: keep the host's files", NULL},
    {CSN_OPT_FLAG, 0, "theirs", AT(theirs), NULL, "conflicts: take the sandbox's files", NULL},
    {CSN_OPT_LIST, 0, "resolved", AT(resolved), "PATH=FILE",
     "conflicts: FILE is the content for PATH; may be repeated", NULL},
    {CSN_OPT_STR, 0, "conflicts", AT(conflicts), "DIR",
     "write all versions of conflicts into a new directory", NULL},
    {CSN_OPT_END},
};

const csn_command csn_cmd_commit = {
    .name = "commit",
    .args = "ID [PATH]...",
    .usage = "ID [OPTIONS] [PATH...]",
    .summary = "write the changes of a sandbox to the host",
    .intro =
        "Writes the changes of a copy-on-write workspace (--cow) to the directory on the\n"
        "host: all, or those of each PATH. Files are replaced one by one and never in part;\n"
        "after a crash the next use of the workspace completes the commit.\n"
        "\n"
        "If the host changed a file too, texts are merged. Where that is not possible\n"
        "nothing at all is written and the exit status is 1: decide with --mine, --theirs\n"
        "or --resolved. --conflicts DIR writes PATH.base, .host, .sandbox and .merged.\n"
        "\n"
        "Files that programs of the host run by themselves (git hooks, editor tasks, agent\n"
        "settings) are held back without --allow-protected; caisson-policy(5) lists them.",
    .examples = "  caisson commit $id --dry-run\n"
                "  caisson commit $id src/parser.c tests\n"
                "  caisson commit $id --conflicts /tmp/conflicts\n"
                "  caisson commit $id --resolved src/main.c=/tmp/conflicts/src/main.c.merged\n",
    .groups = {{"Options", options, 0}},
    .opts_size = sizeof(commit_opts),
    .flags = CSN_CMD_SANDBOX,
    .check = check,
    .run = run,
};
