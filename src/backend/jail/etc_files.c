/* etc_files.c: provides the contents of /etc in a jail.
 *
 * /etc has generated files (passwd, hosts, resolv.conf) and those files and directories of the
 * host that programs need (policy/etc_places.h). Accounts, passwords, keys and administrator
 * configuration of the host are left out. Files are copied into the root template
 * (rootfs_template.h), whose key includes their inode and times: a changed file results in a
 * new template. Directories are bind-mounted on top. */
#include "backend/jail/etc_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "os/landlock.h"
#include "policy/etc_places.h"

#define ETC      "/etc"
#define COPY_MAX 4096
#define ZONE     "/etc/localtime"
#define PART     (CSN_MOUNT_RDONLY | CSN_MOUNT_OPTIONAL | CSN_MOUNT_NARROW | CSN_MOUNT_TRUSTED)
#define DIR_PART (PART | CSN_MOUNT_BY_HELPER)
/* The stub of the gateway, or that of the keeper, for which no name exists. */
#define RESOLV_GATEWAY "nameserver 198.18.0.1\n"
#define RESOLV_KEEPER  "nameserver 127.0.0.1\n"

/* ---- what the host has ---- */

typedef struct finder {
    csn_arena *arena;
    csn_etc *etc;
    uid_t owner; /* of /etc */
    bool as_root;
} finder;

/* Only settings that every user of the host may read, and that only root could have written. A
 * command that is root on the host could read more than that in a directory. */
static bool is_shown(const finder *f, const struct stat *st, const csn_etc_place *row)
{
    bool dir = row->dir;
    mode_t wanted = dir ? S_IROTH | S_IXOTH : S_IROTH;

    if (dir ? !S_ISDIR(st->st_mode) : !S_ISREG(st->st_mode))
        return false;
    return st->st_uid == f->owner && (st->st_mode & wanted) == wanted &&
           !(st->st_mode & S_IWOTH) && !(st->st_mode & S_IWGRP && st->st_gid != 0) &&
           !(dir && f->as_root && !row->open);
}

/* A link may lead to a secret; *st: of the path itself, or of what it leads to. */
static bool look(const char *path, bool plain, struct stat *st)
{
    char real[PATH_MAX];

    if (lstat(path, st) < 0 || csn_etc_is_secret(path))
        return false;
    if (plain && !S_ISLNK(st->st_mode))
        return true;
    return stat(path, st) == 0 && realpath(path, real) && !csn_etc_is_secret(real);
}

static csn_etc_sign sign_of(const struct stat *st)
{
    return (csn_etc_sign){.dev = st->st_dev,
                          .ino = st->st_ino,
                          .size = (uint64_t)st->st_size,
                          .mtime = st->st_mtim.tv_sec,
                          .mtime_ns = st->st_mtim.tv_nsec,
                          .ctime = st->st_ctim.tv_sec,
                          .ctime_ns = st->st_ctim.tv_nsec};
}

/* plain: no link leads to the path */
static void take(finder *f, const char *path, bool plain, const csn_etc_place *row)
{
    csn_etc *e = f->etc;
    struct stat st;

    if (!look(path, plain, &st) || !is_shown(f, &st, row))
        return;
    const char *kept = csn_arena_strdup(f->arena, path);
    if (kept && row->dir && e->dir_count < CSN_ETC_MAX) {
        e->dirs[e->dir_count++] = kept;
    } else if (kept && !row->dir && e->file_count < CSN_ETC_MAX) {
        e->signs[e->file_count] = sign_of(&st);
        e->files[e->file_count++] = kept;
    }
}

/* Follows the rest of a row below `at`, an entry of /etc. */
static void expand(finder *f, const csn_etc_place *row, const char *at, bool plain,
                   const char *rest)
{
    const char *star = strchr(rest, '*'), *after = NULL;
    char path[PATH_MAX];
    const struct dirent *e;

    if (!star) {
        snprintf(path, sizeof(path), "%s%s%s", at, *rest ? "/" : "", rest);
        take(f, path, plain && !strchr(rest, '/'), row);
        return;
    }
    DIR *d = opendir(at); /* the only star of the rest is its first component: php/(*)/cli */
    while (d && (e = readdir(d)))
        if (e->d_name[0] != '.' && csn_etc_component_matches(rest, e->d_name, &after) &&
            snprintf(path, sizeof(path), "%s/%s", at, e->d_name) < (int)sizeof(path))
            expand(f, row, path, false, after);
    if (d)
        closedir(d);
}

static void find_rows(finder *f, const char *name, unsigned char type)
{
    const char *rest = NULL;
    char path[sizeof(ETC) + NAME_MAX + 1];

    for (const csn_etc_place *row = csn_etc_places; row->path; row++)
        if (row->path[0] == name[0] && csn_etc_component_matches(row->path, name, &rest) &&
            snprintf(path, sizeof(path), ETC "/%s", name) < (int)sizeof(path))
            expand(f, row, path, type != DT_LNK && type != DT_UNKNOWN, rest);
}

/* One pass over /etc costs less than looking each row up, and a buffer on the stack less than
 * opendir. */
csn_etc *csn_etc_find(const csn_jail *j)
{
    finder f = {.arena = j->arena,
                .etc = csn_arena_alloc(j->arena, sizeof(csn_etc)),
                .as_root = j->as_root};
    csn_autofd int dir = openat(AT_FDCWD, ETC, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _Alignas(struct dirent64) char buf[8192];
    struct stat st;
    long n;

    if (dir < 0 || !f.etc || fstat(dir, &st) < 0)
        return f.etc;
    f.owner = st.st_uid;
    while ((n = syscall(SYS_getdents64, dir, buf, sizeof(buf))) > 0)
        for (long at = 0; at < n;) {
            const struct dirent64 *e = (const void *)(buf + at);
            find_rows(&f, e->d_name, e->d_type);
            at += e->d_reclen;
        }
    return f.etc;
}

/* ---- the template ---- */

void csn_etc_add_generated(csn_rootfs_template *t, const csn_jail *j, const char *home,
                           const csn_etc *etc)
{
    csn_rootfs_template_add(
        t, CSN_MOUNT_TEXT,
        csn_arena_printf(t->arena,
                         "root:x:0:0:root:/root:/usr/sbin/nologin\n" CSN_JAIL_USER
                         ":x:%u:%u:sandbox:%s:%s\n"
                         "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
                         j->uid, j->gid, home, csn_jail_shell()),
        "/etc/passwd");
    csn_rootfs_template_add(
        t, CSN_MOUNT_TEXT,
        csn_arena_printf(t->arena, "root:x:0:\n" CSN_JAIL_USER ":x:%u:\nnogroup:x:65534:\n",
                         j->gid),
        "/etc/group");
    csn_rootfs_template_add(
        t, CSN_MOUNT_TEXT,
        "127.0.0.1 localhost caisson\n::1 localhost ip6-localhost ip6-loopback\n",
        "/etc/hosts");
    /* without this glibc uses only the first address of a name */
    csn_rootfs_template_add(t, CSN_MOUNT_TEXT, "multi on\n", "/etc/host.conf");
    csn_rootfs_template_add(t, CSN_MOUNT_TEXT,
                            "passwd: files\ngroup: files\nhosts: files dns\n",
                            "/etc/nsswitch.conf");
    csn_rootfs_template_add(t, CSN_MOUNT_TEXT, j->net ? RESOLV_GATEWAY : RESOLV_KEEPER,
                            "/etc/resolv.conf");
    csn_rootfs_template_add(t, CSN_MOUNT_LINK, "../usr/lib/os-release", "/etc/os-release");
    csn_rootfs_template_add(t, CSN_MOUNT_LINK, "/proc/self/mounts", "/etc/mtab");
    for (size_t i = 0; i < etc->dir_count; i++)
        csn_rootfs_template_mountpoint(t, etc->dirs[i], true);
}

/* A small file is written rather than mounted: both its creation and its removal are faster. */
static void add_file(csn_rootfs_template *t, const char *path)
{
    char text[COPY_MAX + 1];
    struct stat st;
    csn_autofd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0 || fstat(fd, &st) < 0) {
        t->partial = t->partial || !csn_rootfs_template_is_absent(errno);
        return;
    }
    if (!S_ISREG(st.st_mode))
        return;
    ssize_t n = st.st_size <= COPY_MAX ? read(fd, text, COPY_MAX) : -1;
    /* a root caller can read files that its commands may not */
    bool plain = n >= 0 && !memchr(text, '\0', (size_t)n) && (st.st_mode & S_IROTH);
    csn_rootfs_template_add(t, plain ? CSN_MOUNT_TEXT : CSN_MOUNT_BIND,
                            plain ? csn_arena_memdup(t->arena, text, (size_t)n) : path, path);
}

/* A link stays a link: programs read the name of the time zone from its target. */
static void add_zone(csn_rootfs_template *t)
{
    static const char zones[] = "/usr/share/zoneinfo/";
    char real[PATH_MAX];

    if (!realpath(ZONE, real)) {
        t->partial = t->partial || !csn_rootfs_template_is_absent(errno);
        return;
    }
    bool link = strncmp(real, zones, sizeof(zones) - 1) == 0;
    csn_rootfs_template_add(t, link ? CSN_MOUNT_LINK : CSN_MOUNT_BIND,
                            csn_arena_strdup(t->arena, real), ZONE);
}

void csn_etc_add_copies(csn_rootfs_template *t, const csn_etc *etc)
{
    add_zone(t);
    for (size_t i = 0; i < etc->file_count; i++)
        add_file(t, etc->files[i]);
}

void csn_etc_mount_dirs(csn_jail *j, const csn_etc *etc)
{
    for (size_t i = 0; i < etc->dir_count; i++)
        csn_jail_add(j, CSN_MOUNT_BIND, DIR_PART, CSN_LL_READ, etc->dirs[i], etc->dirs[i]);
}

static void hash_path(csn_hash *h, const char *path, int flags)
{
    struct stat st;
    csn_etc_sign sign = {0};

    if (fstatat(AT_FDCWD, path, &st, flags) == 0)
        sign = sign_of(&st);
    csn_hash_add(h, &sign, sizeof(sign));
}

void csn_etc_hash(csn_hash *h, const csn_etc *etc)
{
    hash_path(h, ZONE, 0);
    hash_path(h, ZONE, AT_SYMLINK_NOFOLLOW);
    for (size_t i = 0; i < etc->file_count; i++) {
        csn_hash_add(h, etc->files[i], strlen(etc->files[i]) + 1);
        csn_hash_add(h, &etc->signs[i], sizeof(etc->signs[i]));
    }
}
