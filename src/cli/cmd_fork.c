/* cmd_fork.c: `fork`: copies a sandbox, once or several times.
 *
 * One copy is one id on stdout. With -n each copy succeeds or fails by itself: ids go to
 * stdout, errors to stderr, and the exit status is 1 if there was an error. A fork whose id
 * cannot be printed is destroyed. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "cli/commands.h"
#include "wire/result_json.h"

#define COUNT_MAX 10000u

typedef struct fork_opts {
    const char *name;
    uint64_t count; /* 0: not given */
} fork_opts;

static int check(csn_cli *c, void *opts)
{
    const fork_opts *o = opts;

    if (o->count > COUNT_MAX)
        return csn_cli_usage(c, NULL, "-n: at most %u", COUNT_MAX);
    return 0;
}

static int fork_one(csn_cli *c, const fork_opts *o)
{
    csn_sandbox *other = NULL;
    csn_error *err = NULL;

    if (csn_fork(c->sb, o->name, &other, &err) < 0)
        return csn_cli_fail(c, err);
    int status = csn_cli_print_id(c, other, o->name, false);
    if (status != 0)
        csn_destroy(other, NULL);
    csn_close(other);
    return status;
}

/* With several copies the name is the first part of theirs. */
static const char *name_of(const fork_opts *o, uint64_t i, char buf[CSN_NAME_BYTES_MAX + 32])
{
    if (!o->name)
        return NULL;
    snprintf(buf, CSN_NAME_BYTES_MAX + 32, "%.*s-%llu", (int)CSN_NAME_BYTES_MAX, o->name,
             (unsigned long long)i + 1);
    return buf;
}

static void put_fork(csn_json *j, const csn_sandbox *other, const char *name,
                     const csn_error *err)
{
    csn_json_object(j);
    if (other) {
        csn_json_kstr(j, "id", csn_id(other));
        csn_json_kstr(j, "name", name);
    } else {
        csn_json_key(j, "error");
        csn_wire_error(j, err, "fork");
    }
    csn_json_object_end(j);
}

static int fork_many(csn_cli *c, const fork_opts *o)
{
    char buf[CSN_NAME_BYTES_MAX + 32];
    int status = 0;
    csn_answer a;
    csn_json *j = c->json ? csn_answer_begin(&a) : NULL;

    if (j)
        csn_json_array(j);
    for (uint64_t i = 0; i < o->count && !csn_cli_caught(); i++) {
        const char *name = name_of(o, i, buf);
        csn_sandbox *other = NULL;
        csn_error *err = NULL;
        bool failed = csn_fork(c->sb, name, &other, &err) < 0;
        if (j)
            put_fork(j, other, name, err);
        else if (!failed)
            printf("%s\n", csn_id(other));
        if (failed && !j)
            csn_cli_fail(c, err);
        else
            csn_error_free(err);
        status = failed ? CSN_EXIT_FAILED : status;
        csn_close(other);
    }
    if (!j)
        return csn_cli_flush(c, status);
    csn_json_array_end(j);
    int printed = csn_answer_end(c, &a);
    return printed ? printed : status;
}

static int run(csn_cli *c, void *opts)
{
    const fork_opts *o = opts;

    return o->count == 0 ? fork_one(c, o) : fork_many(c, o);
}

static const csn_opt options[] = {
    {CSN_OPT_COUNT, 'n', "count", offsetof(fork_opts, count), "COUNT",
     "make several copies; --json prints an array, NAME becomes NAME-1 ...", NULL},
    {CSN_OPT_STR, 0, "name", offsetof(fork_opts, name), "NAME",
     "a name to use instead of the id", NULL},
    {CSN_OPT_END},
};

const csn_command csn_cmd_fork = {
    .name = "fork",
    .args = "ID",
    .usage = "ID [-n COUNT] [--name NAME]",
    .summary = "copy a sandbox in its present state",
    .intro =
        "Prints the id of the copy, which has the same files and options. Supported on\n"
        "copy-on-write workspaces (--cow), in the same time for any number of files, and by\n"
        "dagger; with other backends create a sandbox from a snapshot. Background processes\n"
        "and sessions are not copied. list --tree shows what was forked from what.",
    .examples = "  other=$(caisson fork $id)\n"
                "  caisson fork $id -n 4 --name try\n",
    .groups = {{"Options", options, 0}},
    .opts_size = sizeof(fork_opts),
    .flags = CSN_CMD_SANDBOX,
    .check = check,
    .run = run,
};
