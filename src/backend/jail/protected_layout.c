/* protected_layout.c: checks file operations in directories that git takes for a repository.
 *
 * A directory with HEAD, objects and refs is a repository under any name, and its config and
 * hooks make git run programs. File operations may create these parts one by one, in any order,
 * or by a rename. An operation is refused if it writes a part that git runs in such a
 * directory, or if it turns a directory that already holds such a part into a repository. What
 * `git init
 * --bare` writes passes, by its content. The scan checks the rest: what lies deeper, and what
 * other processes change meanwhile.
 *
 * Runs before each write, mostly on names alone. Paths are resolved; contents are hostile. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "backend/jail/protected.h"
#include "base/path.h"
#include "os/beneath.h"
#include "policy/protected_names.h"

#define TEXT_MAX (1u << 20) /* larger files count as unreadable */

typedef struct layout {
    const csn_runtime *rt;
    const csn_protected_tree *t;
    const char *below; /* the path that is written, below the workspace */
    bool tree;         /* rename or symlink */
    int content;       /* new content of the file, or -1 */
    char *why;         /* the reason to refuse, malloc'd */
} layout;

static bool is_one_of(const char *name, size_t len, const char *const *list)
{
    for (; *list; list++)
        if (strlen(*list) == len && strncasecmp(name, *list, len) == 0)
            return true;
    return false;
}

/* The entries by which git recognises a repository. */
static const char *const marks[] = {"HEAD", "objects", "refs", "commondir", "worktrees", NULL};
/* Files in it that are judged by their content. */
static const char *const texts[] = {"config", "config.worktree", "commondir", "index", NULL};

bool csn_protected_wants_content(const char *name)
{
    return is_one_of(name, strlen(name), marks) || is_one_of(name, strlen(name), texts) ||
           strcasecmp(name, "git-rebase-todo") == 0;
}

static bool is_part(const char *name, size_t len)
{
    static const char *const dirs[] = {"hooks", "modules", "rebase-merge", NULL};

    return is_one_of(name, len, marks) || is_one_of(name, len, texts) ||
           is_one_of(name, len, dirs);
}

/* Opens a path below the workspace as the sandbox sees it. */
static int open_inside(const layout *l, const char *dir, size_t len, int flags)
{
    csn_autofree char *path = NULL;

    if (asprintf(&path, "%s/%.*s", l->t->inside, (int)len, dir) < 0) {
        path = NULL;
        return -ENOMEM;
    }
    return csn_beneath_open(l->rt->root.fd, path, flags, CSN_BENEATH_ROOTED);
}

static uint8_t mark_of(const char *name, size_t len)
{
    return csn_protected_name_rules.step(0, name, len).marks;
}

static uint8_t marks_in(int dir)
{
    uint8_t found = 0;
    struct stat st;

    for (const char *const *m = marks; *m; m++)
        if (fstatat(dir, *m, &st, AT_SYMLINK_NOFOLLOW) == 0)
            found |= mark_of(*m, strlen(*m));
    return found;
}

static bool is_repository(uint8_t found)
{
    return csn_protected_name_rules.classify(0, found) != 0;
}

/* ---- contents ---- */

static char *read_text(int fd, size_t *ret_len)
{
    csn_autofree char *text = malloc(TEXT_MAX + 1);
    size_t len = 0;
    ssize_t n = 1;

    while (text && n > 0 && len <= TEXT_MAX) {
        n = pread(fd, text + len, TEXT_MAX + 1 - len, (off_t)len);
        len += n > 0 ? (size_t)n : 0;
    }
    if (!text || n < 0 || len > TEXT_MAX)
        return NULL;
    *ret_len = len;
    return CSN_STEAL(text);
}

static void refuse(layout *l, int rule, const char *more)
{
    const char *text = csn_protected_name_rule_text((uint8_t)rule);

    if (!l->why &&
        asprintf(&l->why, "%s%s%s%s", text, *more ? " (" : "", more, *more ? ")" : "") < 0)
        l->why = NULL;
}

/* A config that names another working tree depends on the file system: the scan can accept it,
 * a file operation cannot. */
static void judge_text(layout *l, int rule, const char *path, int fd)
{
    csn_protected_content doc = {
        .rule = (uint8_t)rule, .path = path, .workspace = l->t->named, .hash_len = 20};
    csn_autofree char *text = fd < 0 ? NULL : read_text(fd, &doc.len);
    csn_protected_content_verdict v = {0};

    doc.text = text;
    if (text)
        csn_protected_content_check(&doc, &v);
    if (!text)
        refuse(l, rule, "it cannot be read");
    else if (!v.harmless)
        refuse(l, rule, v.why ? v.why : "not harmless");
    else if (v.real_dir || v.also)
        refuse(l, rule, "it names another directory");
    csn_protected_content_verdict_release(&v);
}

/* ---- a directory that becomes a repository ---- */

static bool is_sample(const char *name)
{
    size_t len = strlen(name);

    return len > 7 && strcasecmp(name + len - 7, ".sample") == 0;
}

static void judge_hooks(layout *l, int dir)
{
    int rule = csn_protected_name_rule(".git/hooks/x", false);
    int fd = openat(dir, "hooks", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);

    if (!list) {
        if (fd >= 0)
            close(fd);
        else if (errno != ENOENT && errno != ENOTDIR)
            refuse(l, rule, "a link");
        return;
    }
    for (const struct dirent *d; !l->why && (d = readdir(list));)
        if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0 &&
            !is_sample(d->d_name))
            refuse(l, rule, d->d_name);
    closedir(list);
}

/* Checks what is in the directory `len` bytes of l->below name. */
static void judge_dir(layout *l, size_t len, const char *writes)
{
    csn_autofd int dir = open_inside(l, l->below, len, O_RDONLY | O_DIRECTORY);

    for (const char *const *t = texts; dir >= 0 && *t && !l->why; t++) {
        csn_autofree char *git = NULL, *path = NULL;
        if (strcasecmp(writes, *t) == 0)
            continue; /* replaced by this operation */
        if (asprintf(&git, ".git/%s", *t) < 0)
            git = NULL;
        if (asprintf(&path, "%.*s%s%s", (int)len, l->below, len ? "/" : "", *t) < 0)
            path = NULL;
        csn_autofd int fd =
            openat(dir, *t, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (git && path && (fd >= 0 || errno != ENOENT))
            judge_text(l, csn_protected_name_rule(git, false), path, fd);
    }
    if (dir >= 0 && !l->why)
        judge_hooks(l, dir);
}

/* ---- one operation ---- */

/* The path lies in a repository: judges it as if it were in .git. `part` is what follows the
 * directory. */
static void judge_part(layout *l, const char *part)
{
    csn_autofree char *git = NULL;

    if (asprintf(&git, ".git/%s", part) < 0) {
        git = NULL;
        return;
    }
    int rule = csn_protected_name_rule(git, l->tree);
    if (rule < 0 || (!l->tree && strcasecmp(part, "hooks") == 0) ||
        (strncasecmp(part, "hooks/", 6) == 0 && is_sample(part) && !strchr(part + 6, '/')))
        return;
    bool by_name = csn_protected_name_rule_kind((uint8_t)rule) == CSN_PROTECTED_NAME_ALWAYS ||
                   csn_protected_name_rule_kind((uint8_t)rule) == CSN_PROTECTED_NAME_GITFILE;
    if (l->tree || by_name)
        refuse(l, rule, "");
    else if (l->content >= 0)
        judge_text(l, rule, l->below, l->content);
}

char *csn_protected_layout(const csn_runtime *rt, const csn_protected_tree *t,
                           const char *below, bool tree, int content)
{
    layout l = {.rt = rt, .t = t, .below = below, .tree = tree, .content = content};

    for (const char *part = below; part && *part && !l.why;) {
        size_t len = strcspn(part, "/"),
               dir_len = part > below ? (size_t)(part - below) - 1 : 0;
        if (is_part(part, len)) {
            csn_autofd int dir = open_inside(&l, below, dir_len, O_PATH | O_DIRECTORY);
            uint8_t before = dir < 0 ? 0 : marks_in(dir);
            uint8_t after = before | mark_of(part, len);
            if (dir >= 0 && is_repository(after)) {
                judge_part(&l, part);
                if (!l.why && !is_repository(before))
                    judge_dir(&l, dir_len, part);
            }
        }
        part = part[len] == '/' ? part + len + 1 : NULL;
    }
    return l.why;
}
