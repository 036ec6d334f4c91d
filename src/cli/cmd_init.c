/* cmd_init.c: `init`: writes a caisson.json for a directory.
 *
 * The file grants what the package managers need whose files are there, and hides files that
 * usually have secrets. Only names are looked at, never content, so nothing in the directory
 * decides which hosts are named. The text consists of the words of the table below. Since the
 * user asks for the file and its content is known, it is trusted. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/strv.h"
#include "cli/commands.h"
#include "cli/policy_schema.h"
#include "cli/project.h"
#include "cli/trust.h"

typedef struct init_opts {
    bool force;
} init_opts;

/* What a name in the directory stands for. */
typedef struct clue {
    const char *name;    /* a pattern */
    const char *package; /* of network.packages, or NULL */
    const char *deny;    /* or NULL */
} clue;

static const clue clues[] = {
    {"package.json", "npm", NULL},
    {"requirements*.txt", "pip", NULL},
    {"pyproject.toml", "pip", NULL},
    {"setup.py", "pip", NULL},
    {"Pipfile", "pip", NULL},
    {"uv.lock", "uv", NULL},
    {"Cargo.toml", "cargo", NULL},
    {"go.mod", "go", NULL},
    {"pom.xml", "maven", NULL},
    {"build.gradle", "maven", NULL},
    {"build.gradle.kts", "maven", NULL},
    {"Gemfile", "gem", NULL},
    {".env*", NULL, "**/.env*"},
    {"*.pem", NULL, "**/*.pem"},
    {"*.key", NULL, "**/*.key"},
    {"*.p12", NULL, "**/*.p12"},
    {"*.tfstate", NULL, "**/*.tfstate*"},
    {"secrets", NULL, "secrets"},
};
/* Files that only look like secrets or programs: .envrc is direnv's. */
static const char *const harmless[] = {".envrc", NULL};

typedef struct findings {
    char **packages, **deny;
    char **reasons; /* "package.json: npm" */
    int error;
} findings;

static void push(findings *f, char ***list, const char *word)
{
    if (!csn_strv_has((const char *const *)*list, word) && csn_strv_push(list, word) != 0)
        f->error = ENOMEM;
}

static void look_at(findings *f, const char *name)
{
    for (size_t i = 0; i < sizeof(clues) / sizeof(clues[0]); i++) {
        const clue *c = &clues[i];
        csn_autofree char *reason = NULL;
        if (csn_strv_has(harmless, name) || fnmatch(c->name, name, 0) != 0)
            continue;
        if (c->package)
            push(f, &f->packages, c->package);
        if (c->deny)
            push(f, &f->deny, c->deny);
        if (asprintf(&reason, "%s: %s %s", name, c->package ? "package manager" : "denied",
                     c->package ? c->package : c->deny) < 0)
            reason = NULL;
        push(f, &f->reasons, reason ? reason : "");
    }
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static csn_status look_around(const char *dir, findings *f, csn_error **err)
{
    struct dirent **names = NULL;
    int n = scandir(dir, &names, NULL, by_name);

    if (n < 0)
        return csn_fail_errno(err, errno, "cannot list '%s'", dir);
    for (int i = 0; i < n; i++) {
        look_at(f, names[i]->d_name);
        free(names[i]);
    }
    free(names);
    return f->error ? csn_fail(err, CSN_NOMEM, "out of memory") : CSN_OK;
}

/* ---- writing ------------------------------------------------------------------------- */

/* The words need no escapes. */
static void put_list(csn_buf *to, const char *const *list)
{
    csn_buf_putc(to, '[');
    for (size_t i = 0; list[i]; i++)
        csn_buf_printf(to, "%s\"%s\"", i ? ", " : "", list[i]);
    csn_buf_putc(to, ']');
}

static void put_file(csn_buf *to, const findings *f)
{
    csn_buf_puts(to, "{\n  \"$schema\": \"");
    csn_policy_schema_uri(to);
    csn_buf_putc(to, '"');
    if (f->deny) {
        csn_buf_puts(to, ",\n  \"deny\": ");
        put_list(to, (const char *const *)f->deny);
    }
    if (f->packages) {
        csn_buf_puts(to, ",\n  \"network\": {\n    \"packages\": ");
        put_list(to, (const char *const *)f->packages);
        csn_buf_puts(to, "\n  }");
    }
    csn_buf_puts(to, "\n}\n");
}

static csn_status write_file(const char *path, const csn_buf *text, bool force, csn_error **err)
{
    if (force && unlink(path) < 0 && errno != ENOENT)
        return csn_fail_errno(err, errno, "cannot replace '%s'", path);
    csn_autofd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0 && errno == EEXIST) {
        csn_status st = csn_fail(err, CSN_EXISTS, "'%s' exists", path);
        return csn_error_advise(st, err, "--force replaces it");
    }
    if (fd < 0)
        return csn_fail_errno(err, errno, "cannot create '%s'", path);
    int e = csn_cli_write(fd, text->data, text->len);
    if (e == 0 && close(csn_steal_fd(&fd)) < 0)
        e = errno;
    if (e != 0)
        unlink(path);
    return e == 0 ? CSN_OK : csn_fail_errno(err, e, "cannot write '%s'", path);
}

static csn_status init(const char *path, const findings *f, bool force, csn_error **err)
{
    char hash[CSN_HASH_HEX];
    csn_autobuf text;

    csn_buf_init(&text, CSN_CONFIG_FILE_MAX);
    put_file(&text, f);
    if (text.err != 0)
        return csn_fail(err, CSN_NOMEM, "out of memory");
    csn_status st = write_file(path, &text, force, err);
    if (st < 0)
        return st;
    csn_hash_bytes(text.data, text.len, hash);
    st = csn_trust_add(path, hash, err);
    return st < 0 ? csn_wrap(st, err, "'%s' is written", path) : CSN_OK;
}

static int answer(const csn_cli *c, const char *path, const findings *f)
{
    const char *const *reasons = (const char *const *)f->reasons;
    csn_answer a;

    if (!c->json) {
        printf("wrote ");
        csn_cli_put_name(path);
        printf(", and trusted it\n");
        for (; reasons && *reasons; reasons++) {
            printf("  ");
            csn_cli_put_name(*reasons);
            putchar('\n');
        }
        if (!f->reasons)
            printf("  no file of a package manager and no secret was recognised\n");
        return 0;
    }
    csn_json *j = csn_answer_begin(&a);
    csn_json_object(j);
    csn_json_kstr(j, "path", path);
    csn_json_key(j, "reasons");
    csn_json_array(j);
    for (; reasons && *reasons; reasons++)
        csn_json_str(j, *reasons);
    csn_json_array_end(j);
    csn_json_object_end(j);
    return csn_answer_end(c, &a);
}

static int run(csn_cli *c, void *opts)
{
    const init_opts *o = opts;
    const char *dir = c->arg[0] ? c->arg[0] : ".";
    csn_autofree char *real = realpath(dir, NULL), *path = NULL;
    csn_error *err = NULL;
    findings f = {0};

    csn_status st = CSN_OK;
    if (!real)
        st = csn_fail_errno(&err, errno, "cannot open '%s'", dir);
    else if (asprintf(&path, "%s/" CSN_PROJECT_FILE, strcmp(real, "/") == 0 ? "" : real) < 0)
        st = csn_fail(&err, CSN_NOMEM, "out of memory");
    if (st == CSN_OK)
        st = look_around(real, &f, &err);
    if (st == CSN_OK)
        st = init(path, &f, o->force, &err);
    int status = st < 0 ? csn_cli_fail(c, err) : answer(c, path, &f);
    csn_strv_free(f.packages);
    csn_strv_free(f.deny);
    csn_strv_free(f.reasons);
    return status;
}

static const csn_opt options[] = {
    {CSN_OPT_FLAG, 0, "force", offsetof(init_opts, force), NULL, "replace a file that exists",
     NULL},
    {CSN_OPT_END},
};

const csn_command csn_cmd_init = {
    .name = "init",
    .args = "[DIR]",
    .summary = "write a caisson.json for a project",
    .intro =
        "Writes a caisson.json for a directory, by default the current one: the package\n"
        "managers whose files are there may be reached, and files that usually have secrets\n"
        "(.env*, *.pem, *.key ...) are denied. The file is trusted, see caisson help trust.\n"
        "Editors complete its keys with the schema that it names.",
    .examples = "  caisson init\n"
                "  caisson init --force ~/project\n",
    .groups = {{"Options", options, 0}},
    .opts_size = sizeof(init_opts),
    .run = run,
};
