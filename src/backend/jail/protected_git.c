/* protected_git.c: finds what the git configuration of a workspace refers to.
 *
 * The config of the root repository, that of the user, and the files that they include may
 * name further configs, a directory of hooks and programs that are files of the workspace; a
 * .git file names another directory with a config and hooks. All of these become read-only when
 * a sandbox is opened. The config of a repository may have been written by an agent of an
 * earlier run: sizes and depth have ceilings. Files outside of the workspace are only read. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "backend/jail/protected_survey.h"
#include "base/path.h"
#include "policy/gitconfig.h"

#define CONFIG_MAX    (1u << 20)
#define INCLUDE_DEPTH 10 /* as in git */
#define INCLUDED      "included by a git config, from which git runs programs"
#define HOOKS         "core.hooksPath names it, and git runs what is in it"
#define PROGRAM       "a git config names it as a program"

/* A path of a config, absolute; malloc'd. */
static char *full_path(const char *dir, const char *path)
{
    const char *home = getenv("HOME");
    char *out = NULL;

    if (path[0] == '~' && path[1] == '/' && home)
        return asprintf(&out, "%s%s", home, path + 1) < 0 ? NULL : out;
    if (path[0] == '/')
        return strdup(path);
    return asprintf(&out, "%s/%s", dir, path) < 0 ? NULL : out;
}

/* malloc'd; NULL: it is absent, empty, not a file or cannot be read. */
static char *read_text(const char *path, size_t *ret_len)
{
    csn_autofd int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return NULL;
    csn_autofree char *text = malloc(CONFIG_MAX + 1);
    ssize_t n = text ? read(fd, text, CONFIG_MAX) : -1;
    if (n <= 0)
        return NULL;
    text[n] = '\0';
    *ret_len = (size_t)n;
    return CSN_STEAL(text);
}

/* ---- configs ---- */

static void survey_config(csn_survey *s, const char *path);

static void survey_include(csn_survey *s, const char *path)
{
    csn_autofree char *full = full_path(s->from_dir, path);

    if (!full) {
        csn_survey_fail(s, ENOMEM);
        return;
    }
    csn_survey_target(s, full, INCLUDED);
    survey_config(s, full);
}

/* Relative to the top of the working tree. The files that husky writes to `_` run those of the
 * directory above. */
static void survey_hooks(csn_survey *s, const char *path)
{
    csn_autofree char *full = full_path(s->t->host, path);
    size_t len = full ? strlen(full) : 0;

    if (!full) {
        csn_survey_fail(s, ENOMEM);
        return;
    }
    while (len > 1 && full[len - 1] == '/')
        full[--len] = '\0';
    if (strcmp(csn_path_base(full), "_") == 0)
        full[len - 2] = '\0';
    csn_survey_target(s, full, HOOKS);
}

/* `./tools/clean %f`, `node tools/clean.js`: the program, or the script of an interpreter. Only
 * what exists counts, since other words contain slashes as well. */
static void survey_program(csn_survey *s, const char *command)
{
    for (int i = 0; i < 2; i++) {
        command += strspn(command, " \t!\"'");
        size_t len = strcspn(command, " \t\"';|&");
        csn_autofree char *word = strndup(command, len);
        csn_autofree char *full = word ? full_path(s->t->host, word) : NULL;
        struct stat st;
        if (!full)
            csn_survey_fail(s, ENOMEM);
        else if (strchr(word, '/') && stat(full, &st) == 0 && S_ISREG(st.st_mode))
            csn_survey_target(s, full, PROGRAM);
        command += len;
    }
}

static void survey_value(void *ctx, csn_gitconfig_use use, const char *value)
{
    csn_survey *s = ctx;

    switch (use) {
    case CSN_GITCONFIG_INCLUDE:
        survey_include(s, value);
        break;
    case CSN_GITCONFIG_HOOKS:
        survey_hooks(s, value);
        break;
    case CSN_GITCONFIG_PROGRAM:
        survey_program(s, value);
        break;
    }
}

static void survey_config(csn_survey *s, const char *path)
{
    const char *from_dir = s->from_dir;
    size_t n = 0;
    csn_autofree char *text = s->depth < INCLUDE_DEPTH ? read_text(path, &n) : NULL;
    csn_autofree char *dir = text ? csn_path_dir(path) : NULL;

    if (!text)
        return;
    if (!dir) {
        csn_survey_fail(s, ENOMEM);
        return;
    }
    s->from_dir = dir;
    s->depth++;
    csn_gitconfig_uses(text, n, survey_value, s);
    s->depth--;
    s->from_dir = from_dir;
}

/* ---- repositories ---- */

/* `gitdir: PATH` and commondir hold one line with a path. */
static char *read_line(const char *path, const char *head)
{
    size_t n = 0, skip = strlen(head);
    csn_autofree char *text = read_text(path, &n);

    if (!text || strncmp(text, head, skip) != 0)
        return NULL;
    text[strcspn(text, "\r\n")] = '\0';
    return strdup(text + skip);
}

/* A directory of git to which a .git file or a commondir leads. */
static void survey_gitdir(csn_survey *s, const char *dir, int depth)
{
    static const char *const names[] = {"config", "config.worktree", "commondir", "hooks"};
    csn_autofree char *common = NULL;

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        csn_autofree char *path = full_path(dir, names[i]);
        struct stat st;
        if (!path || lstat(path, &st) < 0)
            continue; /* the scan knows new ones by the layout of the directory */
        csn_survey_target(s, path, "part of a repository, from which git runs programs");
        if (i < 2)
            survey_config(s, path);
        if (i == 2)
            common = read_line(path, "");
    }
    csn_autofree char *next = common && depth > 0 ? full_path(dir, common) : NULL;
    if (next)
        survey_gitdir(s, next, depth - 1);
}

/* The config as the user has it now; see protected_gitconfig.c. */
static void keep_config(csn_survey *s, const char *path)
{
    size_t n = 0;
    csn_autofree char *text = read_text(path, &n);

    if (text && !(s->t->config = csn_arena_memdup(s->j->arena, text, n)))
        csn_survey_fail(s, ENOMEM);
}

static void survey_user(csn_survey *s)
{
    const char *home = getenv("HOME"), *config = getenv("XDG_CONFIG_HOME");
    csn_autofree char *own = home ? full_path(home, ".gitconfig") : NULL;
    csn_autofree char *xdg = config && config[0] == '/' ? full_path(config, "git/config")
                             : home                     ? full_path(home, ".config/git/config")
                                                        : NULL;

    if (own)
        survey_config(s, own);
    if (xdg)
        survey_config(s, xdg);
}

void csn_survey_git(csn_survey *s)
{
    csn_autofree char *git = full_path(s->t->host, ".git");
    csn_autofree char *config = git ? full_path(git, "config") : NULL;
    csn_autofree char *worktree = git ? full_path(git, "config.worktree") : NULL;
    struct stat st;

    if (!git || !config || !worktree) {
        csn_survey_fail(s, ENOMEM);
        return;
    }
    bool found = stat(git, &st) == 0;
    if (!found && fstatat(s->t->fd, "HEAD", &st, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    if (!found) { /* the workspace is a bare repository */
        if (fstatat(s->t->fd, "objects", &st, 0) < 0 || fstatat(s->t->fd, "refs", &st, 0) < 0)
            return;
        survey_gitdir(s, s->t->host, 0);
    } else if (S_ISDIR(st.st_mode)) {
        keep_config(s, config);
        survey_config(s, config);
        survey_config(s, worktree);
    } else {
        csn_autofree char *line = read_line(git, "gitdir: ");
        csn_autofree char *dir = line ? full_path(s->t->host, line) : NULL;
        if (dir)
            survey_gitdir(s, dir, 1);
    }
    survey_user(s);
}
