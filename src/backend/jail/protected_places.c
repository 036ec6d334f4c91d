/* protected_places.c: checks places of a workspace that no protected name gives away.
 *
 * A protected file may lead to them (protected_targets.c). Those that exist at the start are
 * read-only; this file handles what a mount cannot hold: a target that did not exist, a link on
 * the way, and a file that may be written under another name. Runs in a scan, as the caller, on
 * the host's directory, while processes of the sandbox may still run: no link is followed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/jail/protected.h"
#include "base/path.h"
#include "os/beneath.h"
#include "policy/protected_names.h"

typedef struct check {
    const csn_protected_tree *t;
    const struct timespec *since;
    csn_protected_move_fn move;
    void *ctx;
} check;

void csn_protected_move_path(const csn_protected_tree *t, const char *path, const char *rule,
                             csn_protected_move_fn move, void *ctx)
{
    csn_autofree char *dir = csn_path_dir(path);
    csn_autofd int fd =
        dir ? csn_beneath_open(t->fd, dir, O_RDONLY | O_DIRECTORY, CSN_BENEATH_NOFOLLOW) : -1;

    if (fd >= 0)
        move(ctx, fd, csn_path_base(path), path, rule);
}

static void quarantine_place(const check *s, const char *path, const csn_protected_place *p)
{
    csn_protected_move_path(s->t, path, p->rule, s->move, s->ctx);
}

/* A place to which a protected file leads and which did not exist at the start. What exists of
 * its path now was made since then; a link on it would lead elsewhere. */
static int check_absent(const check *s, const csn_protected_place *p)
{
    csn_autofree char *path = strdup(p->path);

    if (!path)
        return -ENOMEM;
    for (char *slash = strchr(path, '/');; slash = strchr(slash + 1, '/')) {
        struct stat st;
        if (slash)
            *slash = '\0';
        csn_autofd int fd =
            csn_beneath_open(s->t->fd, path, O_PATH | O_NOFOLLOW, CSN_BENEATH_NOFOLLOW);
        if (fd < 0)
            return csn_protected_is_absent(-fd) ? 0 : fd;
        bool link = fstat(fd, &st) == 0 && S_ISLNK(st.st_mode);
        if (link || !slash) {
            quarantine_place(s, path, p);
            return 0;
        }
        *slash = '/';
    }
}

/* A link on the way to a protected file: anything else in its place leads elsewhere. */
static void check_link(const check *s, const csn_protected_place *p)
{
    csn_protected_id id;

    if (csn_protected_identify(s->t->fd, p->path, &id) && memcmp(&id, &p->id, sizeof(id)) != 0)
        quarantine_place(s, p->path, p);
}

static void check_shared_file(const check *s, const csn_protected_place *p, const char *path)
{
    const struct timespec *since = s->since;
    struct stat st;
    csn_autofd int fd =
        csn_beneath_open(s->t->fd, path, O_PATH | O_NOFOLLOW, CSN_BENEATH_NOFOLLOW);

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
        csn_protected_name_match(path, NULL))
        return;
    if (st.st_ctim.tv_sec > since->tv_sec ||
        (st.st_ctim.tv_sec == since->tv_sec && st.st_ctim.tv_nsec >= since->tv_nsec))
        quarantine_place(s, path, p);
}

/* A file with further hard links to which a protected one leads, or a directory of such files.
 * Those with a protected name were found by the walk. */
static void check_shared(const check *s, const csn_protected_place *p)
{
    int fd = csn_beneath_open(s->t->fd, p->path, O_RDONLY | O_DIRECTORY, CSN_BENEATH_NOFOLLOW);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir) {
        if (fd >= 0)
            close(fd);
        check_shared_file(s, p, p->path);
        return;
    }
    for (const struct dirent *d; (d = readdir(dir));) {
        csn_autofree char *path = NULL;
        if (asprintf(&path, "%s/%s", p->path, d->d_name) < 0)
            path = NULL;
        if (path)
            check_shared_file(s, p, path);
    }
    closedir(dir);
}

int csn_protected_check_places(const csn_protected_tree *t, const struct timespec *since,
                               csn_protected_move_fn move, void *ctx)
{
    const check s = {.t = t, .since = since, .move = move, .ctx = ctx};
    int worst = 0;

    for (size_t i = 0; i < t->place_count; i++) {
        const csn_protected_place *p = &t->places[i];
        int rc = p->absent ? check_absent(&s, p) : 0;
        if (p->link)
            check_link(&s, p);
        if (p->shared)
            check_shared(&s, p);
        worst = rc < 0 ? rc : worst;
    }
    return worst;
}
