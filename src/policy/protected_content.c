/* protected_content.c: check whether a changed protected file is harmless as git wrote it.
 *
 * An attacker controls path and content. Invariants: content is harmless only if it was
 * understood completely; a link never is. The caller checks what depends on the file system: a
 * path that is fine as text may lead through a new link. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "policy/gitconfig.h"
#include "policy/gitindex.h"
#include "policy/protected_names.h"

/* Removes the last component of path; false: there is none. */
static bool go_up(char *path)
{
    char *slash = strrchr(path, '/');

    if (!path[0])
        return false;
    *(slash ? slash : path) = '\0';
    return true;
}

static bool go_down(char *path, const char *name, size_t len)
{
    size_t used = strlen(path);

    if (used + len + 2 > PATH_MAX)
        return false;
    if (used > 0)
        path[used++] = '/';
    memcpy(path + used, name, len);
    path[used + len] = '\0';
    return true;
}

/* `target` relative to the directory `dir`, as a path below the workspace; NULL: outside, or
 * undecidable as text. `..` is accepted only at the start, where it leaves real directories. */
static char *lead(const char *workspace, const char *dir, const char *target)
{
    csn_autofree char *path = calloc(1, PATH_MAX);
    bool named = false;

    if (!path || strlen(dir) >= PATH_MAX)
        return NULL;
    if (target[0] == '/') {
        target = workspace ? csn_path_below(target, workspace) : NULL;
        if (!target)
            return NULL;
    } else {
        memcpy(path, dir, strlen(dir) + 1);
    }
    while (*target) {
        size_t len = strcspn(target, "/");
        bool up = len == 2 && memcmp(target, "..", 2) == 0;
        if (up && (named || !go_up(path)))
            return NULL;
        if (!up && len > 0 && !(len == 1 && *target == '.')) {
            if (!go_down(path, target, len))
                return NULL;
            named = true;
        }
        target += len + (target[len] == '/');
    }
    return CSN_STEAL(path);
}

/* The scan skips .git/objects, so no accepted path may lead there. */
static bool has_component(const char *path, const char *name)
{
    while (*path) {
        size_t len = strcspn(path, "/");
        if (len == strlen(name) && strncasecmp(path, name, len) == 0)
            return true;
        path += len + (path[len] == '/');
    }
    return false;
}

static char *dir_of(const char *path)
{
    char *dir = strdup(path);

    if (dir)
        (void)go_up(dir);
    return dir;
}

/* The content without its final newline; NULL: more than one line. */
static char *one_line(const csn_protected_content *doc)
{
    const char *text = doc->text;
    size_t len = doc->len;

    if (len == 0 || len >= PATH_MAX)
        return NULL;
    len -= text[len - 1] == '\n';
    if (memchr(text, '\n', len) || memchr(text, '\r', len) || memchr(text, '\0', len))
        return NULL;
    return strndup(text, len);
}

/* `gitdir: PATH` of submodules and worktrees. The scan checks the files of that repository; the
 * caller also checks its config for the directory to which it checks out. */
static const char *check_gitfile(const csn_protected_content *doc,
                                 csn_protected_content_verdict *v)
{
    static const char head[] = "gitdir: ";
    csn_autofree char *line = one_line(doc), *dir = dir_of(doc->path);

    if (!line || !dir || strncmp(line, head, strlen(head)) != 0)
        return "a .git file that is not understood";
    v->real_dir = lead(doc->workspace, dir, line + strlen(head));
    if (!v->real_dir)
        return "a .git file that points out of the workspace";
    if (has_component(v->real_dir, "objects"))
        return "a .git file that points into objects";
    v->also = calloc(1, PATH_MAX);
    if (!v->also)
        return "no memory";
    memcpy(v->also, v->real_dir, strlen(v->real_dir) + 1);
    return go_down(v->also, "config", 6) ? NULL : "a .git file with a path too long";
}

static const char *check_config(const csn_protected_content *doc,
                                csn_protected_content_verdict *v)
{
    csn_autofree char *tree = NULL, *dir = dir_of(doc->path);

    if (!dir)
        return "no memory";
    if (!csn_gitconfig_is_harmless(doc->text, doc->len, &v->why, &tree))
        return v->why ? v->why : "a config that is not understood";
    if (!tree)
        return NULL;
    v->real_dir = lead(doc->workspace, dir, tree);
    return v->real_dir ? NULL : "core.worktree";
}

/* Exactly as `git worktree` writes it, in exactly this place. */
static const char *check_commondir(const csn_protected_content *doc)
{
    csn_autofree char *line = one_line(doc), *dir = dir_of(doc->path);

    if (line && dir && strcmp(line, "../..") == 0 && go_up(dir)) {
        const char *base = csn_path_base(dir);
        if (strcmp(base, "worktrees") == 0)
            return NULL;
    }
    return "a commondir that git worktree did not write";
}

static const char *check_content(const csn_protected_content *doc,
                                 csn_protected_content_verdict *v)
{
    if (doc->link)
        return "a symbolic link";
    switch (csn_protected_name_rule_kind(doc->rule)) {
    case CSN_PROTECTED_NAME_GITFILE:
        return check_gitfile(doc, v);
    case CSN_PROTECTED_NAME_GITCONFIG:
        return check_config(doc, v);
    case CSN_PROTECTED_NAME_COMMONDIR:
        return check_commondir(doc);
    case CSN_PROTECTED_NAME_GITINDEX:
        return csn_gitindex_is_harmless(doc->text, doc->len, doc->hash_len)
                   ? NULL
                   : "an index with paths that git refuses";
    case CSN_PROTECTED_NAME_TODO:
        return csn_gittodo_is_harmless(doc->text, doc->len) ? NULL : "exec in a rebase";
    case CSN_PROTECTED_NAME_ALWAYS:
    case CSN_PROTECTED_NAME_FILE:
        break;
    }
    return csn_protected_name_rule_text(doc->rule);
}

void csn_protected_content_check(const csn_protected_content *doc,
                                 csn_protected_content_verdict *ret)
{
    *ret = (csn_protected_content_verdict){0};
    const char *why = check_content(doc, ret);

    ret->harmless = !why;
    if (why && why != ret->why) {
        free(ret->why);
        ret->why = strdup(why);
    }
}

void csn_protected_content_verdict_release(csn_protected_content_verdict *v)
{
    free(v->why);
    free(v->real_dir);
    free(v->also);
    *v = (csn_protected_content_verdict){0};
}
