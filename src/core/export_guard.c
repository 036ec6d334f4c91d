/* export_guard.c: finds files of an export that programs of the host would run.
 *
 * A jail keeps commands from planting such files in a workspace (policy/protected_names.h). An
 * export writes what a sandbox holds to any other directory of the host, so the same names
 * count there, together with the path of that directory. The sandbox controls names and
 * contents, and may change both during the export: content is examined before and after it is
 * written.
 *
 * A directory that looks like a git repository is one, whatever its name. The tree is therefore
 * walked once before the export, to learn which directories do. */
#include "core/export_guard.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "policy/protected_names.h"

#define TEXT_MAX  (1024u * 1024u) /* longer git configs and indexes count as protected */
#define HASH_SHA1 20u             /* of an index; one with SHA-256 does not parse */

static int note_marks(void *ctx, const char *rel, const csn_file_stat *fst, const char *target)
{
    csn_export_guard *g = ctx;
    const char *slash = strrchr(rel, '/'), *name = slash ? slash + 1 : rel;
    size_t len = slash ? (size_t)(slash - rel) : 0;
    uint8_t marks = csn_protected_name_rules.step(0, name, strlen(name)).marks;

    (void)fst;
    (void)target;
    if (marks == 0)
        return 0;
    struct csn_export_marks *last = g->count > 0 ? &g->dirs[g->count - 1] : NULL;
    if (last && strncmp(last->dir, rel, len) == 0 && last->dir[len] == '\0') {
        last->marks |= marks;
        return 0;
    }
    if (g->count == g->cap) {
        size_t cap = g->cap ? 2 * g->cap : 16;
        struct csn_export_marks *more = reallocarray(g->dirs, cap, sizeof(*more));
        g->failed = !more;
        if (!more)
            return 1;
        g->dirs = more;
        g->cap = cap;
    }
    char *dir = strndup(rel, len);
    if (dir)
        g->dirs[g->count++] = (struct csn_export_marks){.dir = dir, .marks = marks};
    g->failed = !dir;
    return g->failed;
}

static int by_dir(const void *a, const void *b)
{
    const struct csn_export_marks *x = a, *y = b;

    return strcmp(x->dir, y->dir);
}

/* A walk may return to a directory: its entries become one. */
static void merge(csn_export_guard *g)
{
    size_t kept = 0;

    if (g->count > 0)
        qsort(g->dirs, g->count, sizeof(*g->dirs), by_dir);
    for (size_t i = 1; i < g->count; i++) {
        if (strcmp(g->dirs[i].dir, g->dirs[kept].dir) == 0) {
            g->dirs[kept].marks |= g->dirs[i].marks;
            free(g->dirs[i].dir);
        } else {
            g->dirs[++kept] = g->dirs[i];
        }
    }
    g->count = g->count > 0 ? kept + 1 : 0;
}

csn_status csn_export_guard_begin(csn_export_guard *g, const csn_fs *fs, const char *root,
                                  const char *host_dir, csn_error **err)
{
    char real[PATH_MAX] = "";

    *g = (csn_export_guard){.fs = fs, .root = root};
    if (host_dir && !realpath(host_dir, real))
        real[0] = '\0';
    g->place = strdup(real);
    csn_status st = g->place ? csn_fs_walk(fs, root, 0, note_marks, g, err)
                             : csn_fail(err, CSN_NOMEM, "export");
    if (st == CSN_OK && g->failed)
        st = csn_fail(err, CSN_NOMEM, "export");
    if (st == CSN_OK)
        merge(g);
    return st;
}

void csn_export_guard_end(csn_export_guard *g)
{
    for (size_t i = 0; i < g->count; i++)
        free(g->dirs[i].dir);
    free(g->dirs);
    free(g->place);
    *g = (csn_export_guard){0};
}

/* The state of the rules for the directory `dir` of the export, which is `at` by its name. */
static uint32_t classify(const csn_export_guard *g, uint32_t at, const char *dir, size_t len)
{
    if (g->count == 0)
        return at;
    csn_autofree char *name = strndup(dir, len);
    const struct csn_export_marks key = {.dir = name};
    const struct csn_export_marks *found =
        name ? bsearch(&key, g->dirs, g->count, sizeof(key), by_dir) : NULL;

    return found ? csn_protected_name_rules.classify(at, found->marks) : at;
}

/* Steps through the components of `path`. rel: it is a path of the export, whose directories
 * are classified. */
static csn_name_rules_step steps(const csn_export_guard *g, csn_name_rules_step s,
                                 const char *path, bool rel)
{
    for (const char *p = path + strspn(path, "/"); *p;) {
        size_t len = strcspn(p, "/");
        if (rel)
            s.at = classify(g, s.at, path, p > path ? (size_t)(p - path) - 1 : 0);
        s = csn_protected_name_rules.step(s.at, p, len);
        p += len;
        p += strspn(p, "/");
    }
    return s;
}

static bool is_harmless(const csn_fs *fs, const char *root, const char *rel, uint8_t rule)
{
    csn_protected_content_verdict v = {0};
    csn_error *err = NULL;
    csn_autofree char *path = NULL;
    csn_autobuf text;
    bool harmless = false;

    csn_buf_init(&text, TEXT_MAX);
    if (csn_protected_name_rule_kind(rule) == CSN_PROTECTED_NAME_ALWAYS ||
        asprintf(&path, "%s/%s", root, rel) < 0)
        return false;
    if (csn_fs_slurp(fs, path, 0, TEXT_MAX, &text, &err) == CSN_OK) {
        const csn_protected_content doc = {.rule = rule,
                                           .path = rel,
                                           .text = text.data ? text.data : "",
                                           .len = text.len,
                                           .hash_len = HASH_SHA1};
        csn_protected_content_check(&doc, &v);
        harmless = v.harmless && !v.real_dir && !v.also;
        csn_protected_content_verdict_release(&v);
    }
    csn_error_free(err);
    return harmless;
}

const char *csn_export_guard_rule(const csn_export_guard *g, const csn_fs *written,
                                  const char *rel, const csn_file_stat *fst)
{
    bool link = S_ISLNK(fst->mode);
    csn_name_rules_step s = steps(g, (csn_name_rules_step){0}, g->place, false);

    s = steps(g, s, rel, true);
    if (S_ISDIR(fst->mode) || !(s.wanted || (link && s.wanted_link)))
        return NULL;
    if (!link && is_harmless(written ? written : g->fs, written ? "" : g->root, rel, s.rule))
        return NULL;
    return csn_protected_name_rule_text(s.rule);
}
