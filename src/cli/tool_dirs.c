/* tool_dirs.c: shares the tools that a version manager installed in the caller's home.
 *
 * A jail does not show the home, so `node` of nvm would silently become the one of /usr/bin, or
 * none. The program that PATH leads to decides: if it lies in a directory of the table, that
 * directory is shared read-only at its path, and PATH inside keeps its entry. A link is
 * followed once more: the python of a virtual environment leads into pyenv.
 *
 * Only layouts of the table are shared, below HOME, and only for the command line: a program
 * that uses the library grants what it needs. A row names no directory with credentials:
 * .cargo/bin, not .cargo. PATH, HOME and the
 * variables of managers are the caller's and trusted; --env PATH=... decides instead of PATH.
 */
#include "cli/tool_dirs.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/path.h"
#include "base/strv.h"

#define ADDED_MAX 32u

typedef struct tool {
    const char *variable; /* names the directory, if it is set and below HOME; or NULL */
    const char *at;       /* below HOME, else */
    const char *programs; /* below that: where programs are found; "": anywhere */
    const char *share;    /* below that: what is shared; "": all; "*": one more component */
    bool always; /* also for a shell, which starts any program. Not if users put theirs there */
    const char *also; /* `at` of another row that its programs need; or NULL */
} tool;

static const tool tools[] = {
    {"NVM_DIR", ".nvm", "versions/node", "*", true, NULL},
    {"FNM_DIR", ".local/share/fnm", "", "", true, NULL},
    {"VOLTA_HOME", ".volta", "", "", true, NULL},
    {"NODENV_ROOT", ".nodenv", "", "", true, NULL},
    {"BUN_INSTALL", ".bun", "bin", "bin", true, NULL},
    {"DENO_INSTALL", ".deno", "bin", "bin", true, NULL},
    {"PNPM_HOME", ".local/share/pnpm", "", "", true, NULL},
    {"PYENV_ROOT", ".pyenv", "", "", true, NULL},
    {NULL, ".local/share/uv/python", "", "", true, NULL},
    {NULL, ".local/share/uv/tools", "", "", true, ".local/share/uv/python"},
    {NULL, ".local/share/pipx", "", "", true, NULL},
    {NULL, ".local/pipx", "", "", true, NULL},
    {NULL, "miniconda3", "", "", true, NULL},
    {NULL, "anaconda3", "", "", true, NULL},
    {NULL, "miniforge3", "", "", true, NULL},
    {"CARGO_HOME", ".cargo", "bin", "bin", true, ".rustup"},
    {"RUSTUP_HOME", ".rustup", "", "", true, NULL},
    {"RBENV_ROOT", ".rbenv", "", "", true, NULL},
    {"GOENV_ROOT", ".goenv", "", "", true, NULL},
    {"JENV_ROOT", ".jenv", "", "", true, NULL},
    {"SDKMAN_DIR", ".sdkman", "candidates", "candidates", true, NULL},
    {"ASDF_DATA_DIR", ".asdf", "", "", true, NULL},
    {"MISE_DATA_DIR", ".local/share/mise", "", "", true, NULL},
    {"DOTNET_ROOT", ".dotnet", "", "", true, NULL},
    {"OPAMROOT", ".opam", "", "", true, NULL},
    {NULL, ".ghcup", "", "", true, NULL},
    {"ELAN_HOME", ".elan", "", "", true, NULL},
    {NULL, ".juliaup", "", "", true, NULL},
    {NULL, ".local/share/claude/versions", "", "", true, NULL},
    {NULL, ".claude/local", "", "", true, NULL}, /* an earlier installer's node_modules */
    {NULL, ".local/bin", "", "", false, NULL},
    {NULL, "go/bin", "", "", false, NULL},
};
#define TOOL_COUNT (sizeof(tools) / sizeof(tools[0]))

typedef struct adding {
    csn_arena *arena;
    const csn_config *config;
    const char *home;
    const char *read[ADDED_MAX];
    size_t read_count;
    const char *env[ADDED_MAX];
    size_t env_count;
    bool out_of_memory;
} adding;

/* Every jail shows these. */
static bool is_system(const char *dir)
{
    static const char *const dirs[] = {"/usr", "/bin", "/sbin", "/opt", "/nix/store", NULL};

    for (const char *const *d = dirs; *d; d++)
        if (csn_path_below(dir, *d))
            return true;
    return false;
}

bool csn_tool_starts_others(const char *argv0)
{
    static const char *const names[] = {"sh",   "bash", "dash",  "zsh",     "ksh",   "fish",
                                        "env",  "make", "gmake", "ninja",   "just",  "task",
                                        "time", "nice", "xargs", "timeout", "nohup", NULL};

    if (strchr(argv0, '/')) /* a script of the project, perhaps */
        return !is_system(argv0);
    return csn_strv_has(names, argv0);
}

/* ---- what the sandbox shows anyway ---- */

static bool contains(const char *dir, const char *real)
{
    char own[PATH_MAX];

    return dir && realpath(dir, own) && csn_path_below(real, own);
}

static bool any_contains(const char *const *dirs, size_t count, const char *real)
{
    for (size_t i = 0; dirs && i < count && dirs[i]; i++)
        if (contains(dirs[i], real))
            return true;
    return false;
}

static bool is_granted(const adding *w, const char *path)
{
    const csn_config *c = w->config;
    char real[PATH_MAX];

    return realpath(path, real) &&
           (contains(c->workspace ? c->workspace : ".", real) || contains(c->home, real) ||
            any_contains(c->workspaces, SIZE_MAX, real) ||
            any_contains(c->read, SIZE_MAX, real) || any_contains(c->write, SIZE_MAX, real) ||
            any_contains(w->read, w->read_count, real));
}

/* ---- adding ---- */

static void add_dir(adding *w, const char *path)
{
    struct stat st;

    if (!path || stat(path, &st) < 0 || is_granted(w, path) || w->read_count == ADDED_MAX)
        return;
    w->read[w->read_count++] = path;
}

static bool sets(const char *const *env, size_t count, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; env && i < count && env[i]; i++)
        if (strncmp(env[i], name, len) == 0 && (!env[i][len] || env[i][len] == '='))
            return true;
    return false;
}

/* The manager's own program asks for its directory, which is not below the home inside. */
static void add_variable(adding *w, const char *name, const char *value)
{
    if (!name || sets(w->config->env, SIZE_MAX, name) || sets(w->env, w->env_count, name) ||
        w->env_count == ADDED_MAX)
        return;
    const char *text = csn_arena_printf(w->arena, "%s=%s", name, value);
    w->out_of_memory = w->out_of_memory || !text;
    if (text)
        w->env[w->env_count++] = text;
}

/* The directory of a manager; NULL: not below the home. */
static const char *root_of(const adding *w, const tool *t)
{
    const char *set = t->variable ? getenv(t->variable) : NULL;
    const char *rest = set && set[0] == '/' ? csn_path_below(set, w->home) : NULL;

    if (set && set[0])
        return rest && *rest ? set : NULL;
    return csn_arena_printf(w->arena, "%s/%s", w->home, t->at);
}

static const char *joined(const adding *w, const char *dir, const char *rest, size_t len)
{
    return len == 0 ? dir : csn_arena_printf(w->arena, "%s/%.*s", dir, (int)len, rest);
}

static void add_tool(adding *w, const tool *t, const char *root, const char *rest)
{
    if (strcmp(t->share, "*") == 0) { /* versions/node, and the version */
        size_t len = strlen(t->programs) + 1;
        add_dir(w, joined(w, root, rest, len + strcspn(rest + len, "/")));
    } else {
        add_dir(w, joined(w, root, t->share, strlen(t->share)));
    }
    /* Others (cargo, bun) write in their directory: the private home is the right place. */
    if (!*t->share)
        add_variable(w, t->variable, root);
}

/* Adds the tool that `path` belongs to. *ret_rest is where the row applies. */
static const tool *find_tool(const adding *w, const char *path, bool named,
                             const char **ret_root, const char **ret_rest)
{
    char real[PATH_MAX];

    for (size_t i = 0; i < TOOL_COUNT; i++) {
        const tool *t = &tools[i];
        const char *root = named || t->always ? root_of(w, t) : NULL;
        const char *rest = root ? csn_path_below(path, root) : NULL;
        if (root && !rest && realpath(root, real))
            rest = csn_path_below(path, real);
        size_t len = strlen(t->programs);
        if (!rest || strncmp(rest, t->programs, len) != 0 ||
            (len > 0 && rest[len] != '/' && rest[len]))
            continue;
        if (strcmp(t->share, "*") == 0 && (!rest[len] || !rest[len + 1]))
            continue;
        *ret_root = root;
        *ret_rest = rest;
        return t;
    }
    return NULL;
}

/* False if no row of the table has it. */
static bool add_path(adding *w, const char *path, bool named)
{
    const char *root = NULL, *rest = NULL;
    const tool *t = find_tool(w, path, named, &root, &rest);

    if (!t)
        return false;
    add_tool(w, t, root, csn_arena_strdup(w->arena, rest));
    for (size_t i = 0; t->also && i < TOOL_COUNT; i++) {
        const char *other = strcmp(tools[i].at, t->also) == 0 ? root_of(w, &tools[i]) : NULL;
        if (other && access(other, F_OK) == 0)
            add_tool(w, &tools[i], other, "");
    }
    return true;
}

/* ---- PATH ---- */

/* The directory, and where its link or the link of the program leads. A link that commands may
 * have made leads only to rows for any shell. */
static bool add_found(adding *w, const char *dir, const char *program, bool named)
{
    char real[PATH_MAX];
    bool granted = is_granted(w, dir), known = add_path(w, dir, named);

    if (program && realpath(program, real))
        known = add_path(w, real, named && !granted) || known;
    else if (!program && realpath(dir, real) && strcmp(real, dir) != 0)
        known = add_path(w, real, named) || known;
    /* a directory of links to the tool, made for this shell */
    if (known && csn_path_below(dir, w->home))
        add_dir(w, csn_arena_strdup(w->arena, dir));
    return known;
}

static const char *path_of(const csn_config *c)
{
    static const char name[] = "PATH=";

    for (size_t i = 0; c->env && c->env[i]; i++)
        if (csn_str_starts(c->env[i], name))
            return c->env[i] + strlen(name);
    return getenv("PATH");
}

/* The next entry of PATH, in the arena, or NULL at the end. Relative ones are left out. */
static const char *next_entry(const adding *w, const char **at)
{
    while (*at && **at) {
        size_t len = strcspn(*at, ":");
        const char *p = *at;
        *at += len + (p[len] == ':');
        if (p[0] == '/')
            return csn_arena_memdup(w->arena, p, len);
    }
    return NULL;
}

static const char *program_in(const adding *w, const char *dir, const char *name)
{
    const char *program = csn_arena_printf(w->arena, "%s/%s", dir, name);

    return program && access(program, X_OK) == 0 ? program : NULL;
}

/* The first program of that name in a directory of the system, from `path` up to `end`. */
static const char *system_program(const adding *w, const char *path, const char *end,
                                  const char *name)
{
    const char *dir, *found = NULL;

    while (!found && path != end && (dir = next_entry(w, &path)))
        found = is_system(dir) ? program_in(w, dir, name) : NULL;
    return found;
}

/* Adds what the program needs that PATH leads to. Directories of the system are looked at only
 * if another one has the program. Returns a program that is not visible inside, or NULL;
 * *ret_other: the one that runs instead, or NULL. */
static const char *add_program(adding *w, const char *path, const char *name,
                               const char **ret_other)
{
    const char *at = path, *from = path, *dir;

    for (; (dir = next_entry(w, &at)); from = at) {
        const char *program = is_system(dir) ? NULL : program_in(w, dir, name);
        if (!program)
            continue;
        if (system_program(w, path, from, name) || add_found(w, dir, program, true) ||
            is_granted(w, dir))
            return NULL;
        *ret_other = system_program(w, at, NULL, name);
        return program;
    }
    return NULL;
}

static void add_all(adding *w, const char *path)
{
    const char *dir;

    while ((dir = next_entry(w, &path)))
        if (csn_path_below(dir, w->home) && access(dir, X_OK) == 0)
            (void)add_found(w, dir, NULL, false);
}

/* ---- the config ---- */

static bool is_jail(const csn_config *c)
{
    const char *chosen = c->backend ? c->backend : getenv("CAISSON_BACKEND");
    const char *vercel = getenv("VERCEL");

    if (chosen && *chosen)
        return strcmp(chosen, "jail") == 0;
    return !vercel || strcmp(vercel, "1") != 0;
}

/* Before the items that are there: messages count the last ones as the command line's. */
static const char *const *prepended(adding *w, const char *const *list, const char *const *more,
                                    size_t count)
{
    size_t len = csn_strv_len(list);
    const char **all = csn_arena_array(w->arena, len + count + 1, sizeof(*all));

    w->out_of_memory = w->out_of_memory || !all;
    if (!all || count == 0)
        return list;
    memcpy(all, more, count * sizeof(*all));
    if (len > 0)
        memcpy(all + count, list, len * sizeof(*all));
    return all;
}

csn_status csn_tool_dirs_add(const csn_cli *c, csn_arena *a, csn_config *config,
                             const char *argv0, csn_error **err)
{
    adding w = {.arena = a, .config = config, .home = getenv("HOME")};
    const char *other = NULL;

    if (!is_jail(config) || !w.home || w.home[0] != '/' || !w.home[1] ||
        (argv0 && strchr(argv0, '/')))
        return CSN_OK;
    const char *path = path_of(config);
    const char *missed = argv0 ? add_program(&w, path, argv0, &other) : NULL;
    if (!argv0)
        add_all(&w, path);
    config->read = prepended(&w, config->read, w.read, w.read_count);
    config->env = prepended(&w, config->env, w.env, w.env_count);
    if (w.out_of_memory)
        return csn_fail(err, CSN_NOMEM, "directories of tools");
    csn_autofree char *dir = missed ? csn_path_dir(missed) : NULL;
    if (dir && other)
        csn_cli_note(c, "%s: %s runs inside, not %s; --read %s shows that one", argv0, other,
                     missed, dir);
    else if (dir)
        csn_cli_note(c, "%s: the sandbox does not show %s; --read %s does", argv0, missed, dir);
    return CSN_OK;
}
