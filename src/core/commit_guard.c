/* commit_guard.c: finds changes of a copy-on-write workspace that programs of the host would
 * run.
 *
 * The list of changes is complete, so no scan is needed: each path is judged by its name
 * (policy/protected_names.h), by the directories above it that look like a git repository,
 * whatever their names, and, for files that git itself rewrites, by content. Files that the
 * host's own .git/config names (hooks, includes, programs) count, too. The sandbox controls
 * names and contents; what is written to the host is read from the same inode that was judged
 * (csn_layer_open), and csn_commit refuses to run while a command could change it. */
#include "core/commit_guard.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/glob.h"
#include "base/strv.h"
#include "policy/gitconfig.h"
#include "policy/protected_names.h"

#define TEXT_MAX   (64u * 1024u * 1024u) /* longer git configs and indexes are held back */
#define CONFIG_MAX (1024u * 1024u)
#define HASH_SHA1  20u
#define USED_RULE  ".git/config of the host names it: git reads or runs it"

typedef struct dir_marks {
    const char *dir;
    uint8_t marks;
} dir_marks;

struct csn_commit_guard {
    const csn_layer_stack *stack;
    csn_arena *arena;
    dir_marks *dirs; /* sorted; of entries that the sandbox made */
    size_t dir_count;
    char **used;    /* paths that the host's .git/config names */
    char **allowed; /* of the config's rules */
    /* The state of the rules in the last directory: the next change is often beside it. */
    char *last_dir;
    uint32_t last_at;
};

/* ---- repositories by their layout ---- */

static int by_dir(const void *a, const void *b)
{
    const dir_marks *x = a, *y = b;

    return strcmp(x->dir, y->dir);
}

static bool collect_marks(csn_commit_guard *g, const csn_layer_changes *changes)
{
    size_t n = 0;

    g->dirs = csn_arena_array(g->arena, changes->count + 1, sizeof(*g->dirs));
    for (size_t i = 0; g->dirs && i < changes->count; i++) {
        const char *path = changes->v[i].path, *slash = strrchr(path, '/');
        const char *name = slash ? slash + 1 : path;
        uint8_t marks = csn_protected_name_rules.step(0, name, strlen(name)).marks;
        if (marks == 0 || changes->v[i].after.mode == 0)
            continue;
        g->dirs[n].dir = csn_arena_memdup(g->arena, path, slash ? (size_t)(slash - path) : 0);
        if (!g->dirs[n].dir)
            return false;
        g->dirs[n++].marks = marks;
    }
    if (!g->dirs)
        return false;
    qsort(g->dirs, n, sizeof(*g->dirs), by_dir);
    for (size_t i = 0; i < n; i++) { /* entries of one directory become one */
        if (g->dir_count > 0 && strcmp(g->dirs[g->dir_count - 1].dir, g->dirs[i].dir) == 0)
            g->dirs[g->dir_count - 1].marks |= g->dirs[i].marks;
        else
            g->dirs[g->dir_count++] = g->dirs[i];
    }
    return true;
}

/* What the base and the layers have in the directory. */
static uint8_t marks_on_disk(const csn_layer_stack *s, const char *dir, size_t len)
{
    static const char *const names[] = {"HEAD", "objects", "refs", "commondir", "worktrees"};
    char path[4096];
    uint8_t marks = 0;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (len + strlen(names[i]) + 2 > sizeof(path))
            return 0;
        memcpy(path, dir, len);
        path[len] = '/';
        memcpy(path + len + (len > 0), names[i], strlen(names[i]) + 1);
        bool found = faccessat(s->base, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
        for (size_t k = 0; k < s->count && !found; k++)
            found = faccessat(s->layers[k], path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
        if (found)
            marks |= csn_protected_name_rules.step(0, names[i], strlen(names[i])).marks;
    }
    return marks;
}

/* The state of the name rules in the directory `dir`, which is `at` by its name. */
static uint32_t classify(const csn_commit_guard *g, uint32_t at, const char *dir, size_t len)
{
    csn_autofree char *name = strndup(dir, len);
    const dir_marks key = {.dir = name};
    const dir_marks *found =
        name ? bsearch(&key, g->dirs, g->dir_count, sizeof(key), by_dir) : NULL;
    uint8_t marks = marks_on_disk(g->stack, dir, len);

    return csn_protected_name_rules.classify(at, marks | (found ? found->marks : 0));
}

/* The state in the directory that contains the last component of the path. */
static uint32_t state_above(csn_commit_guard *g, const char *path, size_t dir_len)
{
    if (g->last_dir && strlen(g->last_dir) == dir_len &&
        memcmp(g->last_dir, path, dir_len) == 0)
        return g->last_at;
    uint32_t at = classify(g, 0, "", 0);
    for (size_t from = 0, len; from < dir_len; from += len + 1) {
        len = strcspn(path + from, "/");
        at = csn_protected_name_rules.step(at, path + from, len).at;
        at = classify(g, at, path, from + len);
    }
    free(g->last_dir);
    g->last_dir = strndup(path, dir_len);
    g->last_at = at;
    return at;
}

static csn_name_rules_step steps(csn_commit_guard *g, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    uint32_t at = state_above(g, path, slash ? (size_t)(slash - path) : 0);

    return csn_protected_name_rules.step(at, name, strlen(name));
}

/* ---- what the host's config names ---- */

/* Resolves `.` and `..` of a path below the workspace by text; NULL: it leads out. In place. */
static char *normalise(char *path)
{
    char *out = path;

    for (char *p = path; *p;) {
        size_t len = strcspn(p, "/");
        char *next = p + len + (p[len] == '/');
        if (len == 2 && p[0] == '.' && p[1] == '.') {
            if (out == path)
                return NULL;
            for (out--; out > path && out[-1] != '/';)
                out--;
        } else if (len > 0 && !(len == 1 && p[0] == '.')) {
            memmove(out, p, len);
            out += len;
            *out++ = '/';
        }
        p = next;
    }
    if (out > path)
        out--;
    *out = '\0';
    return *path ? path : NULL;
}

typedef struct uses {
    csn_commit_guard *g;
    bool failed;
} uses;

/* Programs are named with arguments: the first word counts. */
static void note_use(void *ctx, csn_gitconfig_use use, const char *value)
{
    uses *u = ctx;
    size_t len = use == CSN_GITCONFIG_PROGRAM ? strcspn(value, " \t") : strlen(value);
    csn_autofree char *path = NULL;

    if (value[0] == '/' || value[0] == '~' || len == 0)
        return;
    if (use == CSN_GITCONFIG_PROGRAM && (value[0] == '!' || !memchr(value, '/', len)))
        return;
    if (asprintf(&path, "%s%.*s", use == CSN_GITCONFIG_INCLUDE ? ".git/" : "", (int)len,
                 value) < 0) {
        path = NULL;
        u->failed = true;
        return;
    }
    const char *inside = normalise(path);
    if (inside && csn_strv_push(&u->g->used, inside) != 0)
        u->failed = true;
}

static bool read_uses(csn_commit_guard *g)
{
    csn_autofd int fd =
        openat(g->stack->base, ".git/config", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    csn_autofree char *text = fd >= 0 ? malloc(CONFIG_MAX) : NULL;
    ssize_t n = text ? read(fd, text, CONFIG_MAX) : 0;
    uses u = {.g = g, .failed = fd >= 0 && !text};

    if (n > 0)
        csn_gitconfig_uses(text, (size_t)n, note_use, &u);
    return !u.failed;
}

static bool is_below(const char *path, const char *dir)
{
    size_t len = strlen(dir);

    return strncmp(path, dir, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

/* ---- rules of the user ---- */

/* Only a rule that names a protected file allows it; a rule for everything does not. */
static bool read_rules(csn_commit_guard *g, const csn_config *config)
{
    for (size_t i = 0; i < config->rule_count; i++) {
        const csn_rule *r = &config->rules[i];
        const char *path = r->path;
        if (!r->allow || !(r->ops & CSN_OP_WRITE) || !path || path[0] == '/' ||
            strstr(path, ".."))
            continue;
        path += csn_str_starts(path, "./") ? 2 : 0;
        if (csn_protected_name_match_tree(path, NULL) && csn_strv_push(&g->allowed, path) != 0)
            return false;
    }
    return true;
}

static bool is_allowed(const csn_commit_guard *g, const char *path)
{
    for (size_t i = 0; g->allowed && g->allowed[i]; i++) {
        csn_glob_set *glob = NULL;
        if (is_below(path, g->allowed[i]))
            return true;
        if (!csn_glob_has_magic(g->allowed[i]) ||
            csn_glob_compile(g->allowed[i], &glob, NULL) < 0)
            continue;
        bool match = csn_glob_match(glob, path);
        csn_glob_free(glob);
        if (match)
            return true;
    }
    return false;
}

/* ---- one change ---- */

static bool by_content(uint8_t rule)
{
    csn_protected_name_kind kind = csn_protected_name_rule_kind(rule);

    return kind != CSN_PROTECTED_NAME_ALWAYS && kind != CSN_PROTECTED_NAME_FILE;
}

static bool is_harmless(const csn_commit_guard *g, const csn_layer_change *c, uint8_t rule)
{
    csn_protected_content_verdict v = {0};
    csn_protected_content doc = {.rule = rule, .path = c->path, .hash_len = HASH_SHA1};

    if (!by_content(rule))
        return false;
    if (c->after.mode == 0)
        return true; /* without it git does less */
    if (!S_ISREG(c->after.mode) || c->after.size > TEXT_MAX)
        return false;
    csn_autofd int fd = csn_layer_open(g->stack, c, true);
    csn_autofree char *text = fd >= 0 ? malloc((size_t)c->after.size + 1) : NULL;
    if (!text)
        return false;
    for (ssize_t n = 1; n > 0 && doc.len <= c->after.size; doc.len += n > 0 ? (size_t)n : 0)
        n = read(fd, text + doc.len, (size_t)c->after.size + 1 - doc.len);
    if (doc.len != c->after.size)
        return false;
    doc.text = text;
    csn_protected_content_check(&doc, &v);
    bool harmless = v.harmless && !v.real_dir && !v.also;
    csn_protected_content_verdict_release(&v);
    return harmless;
}

const char *csn_commit_guard_rule(csn_commit_guard *g, const csn_layer_change *c)
{
    uint32_t mode = c->after.mode ? c->after.mode : c->before.mode;
    bool link = S_ISLNK(c->after.mode);

    if (S_ISDIR(mode)) /* what is in it has rows of its own */
        return NULL;
    for (size_t i = 0; g->used && g->used[i]; i++)
        if (is_below(c->path, g->used[i]) && !is_allowed(g, c->path))
            return USED_RULE;
    csn_name_rules_step s = steps(g, c->path);
    bool wanted = s.wanted || (link && (s.wanted_link || s.at != 0));
    if (!wanted || is_allowed(g, c->path) || (!link && is_harmless(g, c, s.rule)))
        return NULL;
    return csn_protected_name_rule_text(s.rule);
}

csn_status csn_commit_guard_new(const csn_config *config, const csn_layer_stack *stack,
                                const csn_layer_changes *changes, csn_commit_guard **ret,
                                csn_error **err)
{
    csn_commit_guard *g = calloc(1, sizeof(*g));

    if (g)
        *g = (csn_commit_guard){.stack = stack, .arena = csn_arena_new()};
    if (!g || !g->arena || !collect_marks(g, changes) || !read_uses(g) ||
        !read_rules(g, config)) {
        csn_commit_guard_free(g);
        return csn_fail(err, CSN_NOMEM, "protected files");
    }
    *ret = g;
    return CSN_OK;
}

void csn_commit_guard_free(csn_commit_guard *g)
{
    if (!g)
        return;
    csn_arena_free(g->arena);
    csn_strv_free(g->used);
    free(g->last_dir);
    csn_strv_free(g->allowed);
    free(g);
}
