/* checked_dir.c: opens a directory whose whole path is under the caller's control.
 *
 * caisson writes, trusts and deletes files by their names in such directories, as the caller
 * and possibly as root. A component that another user controls, or a link that a sandbox has
 * placed in a directory shared with it, would direct all of that elsewhere. Files that a jail
 * creates belong to the caller, so a link of the caller proves nothing.
 *
 * Invariant: each component is opened in the one before and examined through its descriptor. */
#include "os/checked_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"

#define LINKS_MAX 8

typedef struct walk {
    unsigned flags, links;
    int fd;         /* of the directory reached so far, O_PATH */
    struct stat st; /* its status */
    uid_t me;
    uid_t root;                  /* owner of /: in a user namespace root may have no number */
    char at[CSN_PATH_MAX + 1];   /* its path */
    char rest[CSN_PATH_MAX + 1]; /* what follows */
    csn_dir_fault *fault;
} walk;

static int refuse(const walk *w, csn_dir_fault_kind kind, const char *name,
                  const struct stat *st)
{
    if (w->fault) {
        w->fault->kind = kind;
        w->fault->owner = st->st_uid;
        snprintf(w->fault->path, sizeof(w->fault->path), "%s%s%.255s", w->at,
                 *name && strcmp(w->at, "/") != 0 ? "/" : "", name);
    }
    return kind == CSN_DIR_FAULT_LINK ? -ELOOP : -EPERM;
}

static bool is_of_root(const walk *w, const struct stat *st)
{
    return st->st_uid == 0 || st->st_uid == w->root;
}

/* A group with the number of its user is taken for a private group of that user. */
static bool others_write(const walk *w)
{
    const struct stat *st = &w->st;

    if (is_of_root(w, st) && (st->st_mode & S_ISVTX))
        return false;
    return (st->st_mode & S_IWOTH) || ((st->st_mode & S_IWGRP) && st->st_gid != st->st_uid);
}

static int check(const walk *w, bool last)
{
    const struct stat *st = &w->st;

    if (st->st_uid != w->me && (last || !is_of_root(w, st)))
        return refuse(w, CSN_DIR_FAULT_OWNER, "", st);
    if (last ? (st->st_mode & (S_IWGRP | S_IWOTH)) != 0 : others_write(w))
        return refuse(w, CSN_DIR_FAULT_WRITABLE, "", st);
    return 0;
}

static void step_to(walk *w, int fd, const struct stat *st, const char *name)
{
    if (w->fd >= 0)
        close(w->fd);
    w->fd = fd;
    w->st = *st;
    size_t len = strlen(w->at);
    if (strcmp(name, "/") == 0)
        snprintf(w->at, sizeof(w->at), "/");
    else
        snprintf(w->at + len, sizeof(w->at) - len, "%s%s", len > 1 ? "/" : "", name);
}

static int to_root(walk *w)
{
    struct stat st;
    csn_autofd int fd = openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    w->at[0] = '\0';
    step_to(w, csn_steal_fd(&fd), &st, "/");
    w->root = st.st_uid;
    return 0;
}

/* True if the links in the directory reached are the system's. */
static bool is_system_dir(const walk *w)
{
    static const char *const dirs[] = {"/", "/export", "/home", "/run", "/usr", "/var"};
    const char *home = getenv("HOME");
    bool known = false;

    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
        known = known || strcmp(w->at, dirs[i]) == 0;
    if (home && strcmp(home, "/") != 0 && csn_path_below(w->at, home))
        known = false; /* a home directory is what sandboxes are opened on */
    return known && is_of_root(w, &w->st) && !(w->st.st_mode & (S_IWGRP | S_IWOTH));
}

/* Replaces the link `name` by its text. */
static int follow(walk *w, int link, const char *name, const struct stat *st)
{
    char text[CSN_PATH_MAX + 1], all[2 * CSN_PATH_MAX + 4];

    if (!is_of_root(w, st) || !is_system_dir(w) || ++w->links > LINKS_MAX)
        return refuse(w, CSN_DIR_FAULT_LINK, name, st);
    ssize_t n = readlinkat(link, "", text, sizeof(text) - 1);
    if (n < 0)
        return -errno;
    text[n] = '\0';
    snprintf(all, sizeof(all), "%s/%s", text, w->rest);
    if (strlen(all) >= sizeof(w->rest))
        return -ENAMETOOLONG;
    memcpy(w->rest, all, strlen(all) + 1);
    return text[0] == '/' ? to_root(w) : 0;
}

static int open_component(walk *w, const char *name)
{
    const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(w->fd, name, flags);

    if (fd < 0 && errno == ENOENT && (w->flags & CSN_CHECKED_MAKE)) {
        if (mkdirat(w->fd, name, 0700) < 0 && errno != EEXIST)
            return -errno;
        fd = openat(w->fd, name, flags);
    }
    return fd < 0 ? -errno : fd;
}

/* One component of `rest`. The directory it is in is examined before it is entered. */
static int step(walk *w)
{
    char name[NAME_MAX + 1];
    struct stat st;
    size_t slashes = strspn(w->rest, "/"), len = strcspn(w->rest + slashes, "/");

    if (len >= sizeof(name))
        return -ENAMETOOLONG;
    memcpy(name, w->rest + slashes, len);
    name[len] = '\0';
    memmove(w->rest, w->rest + slashes + len, strlen(w->rest + slashes + len) + 1);
    if (len == 0 || strcmp(name, ".") == 0)
        return 0;
    int rc = check(w, false);
    if (rc < 0)
        return rc;
    csn_autofd int fd = open_component(w, name);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (S_ISLNK(st.st_mode))
        return follow(w, fd, name, &st);
    if (!S_ISDIR(st.st_mode))
        return -ENOTDIR;
    step_to(w, csn_steal_fd(&fd), &st, name);
    return 0;
}

int csn_checked_dir_open(const char *path, unsigned flags, csn_dir_fault *fault)
{
    walk w; /* not initialized as a whole: it holds two paths */

    if (path[0] != '/' || strlen(path) >= sizeof(w.rest))
        return path[0] != '/' ? -EINVAL : -ENAMETOOLONG;
    w.flags = flags;
    w.links = 0;
    w.me = geteuid();
    w.st = (struct stat){0};
    w.fd = -1;
    w.fault = fault;
    if (fault)
        fault->kind = CSN_DIR_FAULT_NONE;
    memcpy(w.rest, path, strlen(path) + 1);
    int rc = to_root(&w);
    while (rc == 0 && w.rest[0] != '\0')
        rc = step(&w);
    if (rc == 0)
        rc = check(&w, !(flags & CSN_CHECKED_PARENT));
    csn_autofd int at = w.fd;
    if (rc < 0)
        return rc;
    int fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}
