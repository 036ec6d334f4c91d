/* etc.c: /etc of a jail.
 *
 * Made of small files of our own and of those parts of the host's that tools need to run;
 * names, passwords, keys and configurations of the host are not among them. Each file that is
 * made or mounted costs a start of a jail, and there are two dozen, so the files are copied
 * once into a directory of caisson's own, which jails mount read-only; directories are mounted
 * on top. The name of the copy is made of all that went into it, the times and numbers of the
 * files on disk too: one that changes on the host makes another copy. What must hold: nothing a
 * jail can write to gets into a copy, and nobody reads in it what could not be read on the
 * host.
 *
 * Without a place for copies, and for a detached jail, which may outlive them, the files are
 * made and mounted one by one. */
#include "backend/jail/etc.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "os/landlock.h"
#include "os/statedir.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define COPY_MAX 4096
#define ENTRIES  48u
#define ZONE     "/etc/localtime"
#define PART     (CSN_MOUNT_RDONLY | CSN_MOUNT_OPTIONAL | CSN_MOUNT_NARROW | CSN_MOUNT_OURS)
#define DIR_PART (PART | CSN_MOUNT_BESIDE)
/* Where the gateway answers, if there is one; else the question fails at once. */
#define RESOLV_CONF  "nameserver 198.18.0.1\n"
#define FORM_VERSION "2" /* of what csn_etc_make makes of a list */

/* What an administrator writes (gitconfig, npmrc, pip.conf, profile.d, apt) may hold passwords
 * and is not here; what packages put here and their programs do not run without is. */
static const char *const files[] = {
    "/etc/ld.so.cache",    "/etc/timezone",       "/etc/ssl/openssl.cnf", "/etc/ssl/cert.pem",
    "/etc/protocols",      "/etc/services",       "/etc/bash.bashrc",     "/etc/profile",
    "/etc/debian_version", "/etc/manpath.config", "/etc/maven/m2.conf",   "/etc/fpc.cfg",
};
static const char *const dirs[] = {
    "/etc/alternatives",           "/etc/ssl/certs",       "/etc/pki/tls/certs",
    "/etc/pki/ca-trust/extracted", "/etc/fonts",           "/etc/groff",
    "/etc/maven/logging",          "/etc/gnucobol",        "/etc/java-8-openjdk",
    "/etc/java-11-openjdk",        "/etc/java-17-openjdk", "/etc/java-21-openjdk",
    "/etc/java-25-openjdk",
};

typedef struct entries {
    csn_arena *arena;
    csn_mount v[ENTRIES];
    size_t count;
} entries;

static void add(entries *e, uint32_t kind, const char *from, const char *to)
{
    bool bind = kind == CSN_MOUNT_BIND;

    if (e->count < ENTRIES)
        e->v[e->count++] = (csn_mount){.kind = kind,
                                       .flags = bind ? PART : 0,
                                       .access = bind ? CSN_LL_READ : 0,
                                       .fd = -1,
                                       .from = from,
                                       .to = to};
}

static void add_own(entries *e, const csn_jail *j, const char *home)
{
    add(e, CSN_MOUNT_TEXT,
        csn_arena_printf(e->arena,
                         "root:x:0:0:root:/root:/usr/sbin/nologin\n" CSN_JAIL_USER
                         ":x:%u:%u:sandbox:%s:%s\n"
                         "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
                         j->uid, j->gid, home, csn_jail_shell()),
        "/etc/passwd");
    add(e, CSN_MOUNT_TEXT,
        csn_arena_printf(e->arena, "root:x:0:\n" CSN_JAIL_USER ":x:%u:\nnogroup:x:65534:\n",
                         j->gid),
        "/etc/group");
    add(e, CSN_MOUNT_TEXT, "127.0.0.1 localhost caisson\n::1 localhost\n", "/etc/hosts");
    add(e, CSN_MOUNT_TEXT, "passwd: files\ngroup: files\nhosts: files dns\n",
        "/etc/nsswitch.conf");
    add(e, CSN_MOUNT_TEXT, RESOLV_CONF, "/etc/resolv.conf");
    add(e, CSN_MOUNT_LINK, "../usr/lib/os-release", "/etc/os-release");
    add(e, CSN_MOUNT_LINK, "/proc/self/mounts", "/etc/mtab");
}

/* A small file is made even where others are mounted: that is quicker, and a mount must be
 * taken down again too. */
static void add_file(entries *e, const char *path)
{
    char text[COPY_MAX + 1];
    struct stat st;
    csn_autofd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return;
    ssize_t n = st.st_size <= COPY_MAX ? read(fd, text, COPY_MAX) : -1;
    /* root can read more than its jails may */
    bool plain = n >= 0 && !memchr(text, '\0', (size_t)n) && (st.st_mode & S_IROTH);
    add(e, plain ? CSN_MOUNT_TEXT : CSN_MOUNT_BIND,
        plain ? csn_arena_memdup(e->arena, text, (size_t)n) : path, path);
}

/* A link as on the host where it is one: programs read the zone's name out of it. */
static void add_zone(entries *e)
{
    static const char zones[] = "/usr/share/zoneinfo/";
    char real[PATH_MAX];

    if (!realpath(ZONE, real))
        return;
    bool link = strncmp(real, zones, sizeof(zones) - 1) == 0;
    add(e, link ? CSN_MOUNT_LINK : CSN_MOUNT_BIND, csn_arena_strdup(e->arena, real), ZONE);
}

static void add_files(entries *e)
{
    add_zone(e);
    for (size_t i = 0; i < COUNT(files); i++)
        add_file(e, files[i]);
}

/* Which of them there are, a bit each. */
static uint32_t find_dirs(void)
{
    uint32_t found = 0;
    struct stat st;

    for (size_t i = 0; i < COUNT(dirs); i++)
        if (stat(dirs[i], &st) == 0 && S_ISDIR(st.st_mode))
            found |= 1u << i;
    return found;
}

static void mount_dirs(csn_jail *j, uint32_t found)
{
    for (size_t i = 0; i < COUNT(dirs); i++)
        if (found & (1u << i))
            csn_jail_add(j, CSN_MOUNT_BIND, DIR_PART, CSN_LL_READ, dirs[i], dirs[i]);
}

/* ---- the shared copy ---- */

static void hash_file(csn_hash *h, const char *path, int flags)
{
    struct stat st;
    struct {
        uint64_t dev, ino, size;
        int64_t mtime, mtime_ns, ctime, ctime_ns;
    } sign = {0};

    if (fstatat(AT_FDCWD, path, &st, flags) == 0) {
        sign.dev = st.st_dev;
        sign.ino = st.st_ino;
        sign.size = (uint64_t)st.st_size;
        sign.mtime = st.st_mtim.tv_sec;
        sign.mtime_ns = st.st_mtim.tv_nsec;
        sign.ctime = st.st_ctim.tv_sec;
        sign.ctime_ns = st.st_ctim.tv_nsec;
    }
    csn_hash_add(h, &sign, sizeof(sign));
}

/* `own` holds what is not the host's. */
static void make_key(const entries *own, uint32_t found, char key[CSN_HASH_HEX])
{
    csn_hash h;

    csn_hash_init(&h);
    csn_hash_add(&h, FORM_VERSION, sizeof(FORM_VERSION));
    csn_hash_add(&h, &found, sizeof(found));
    for (size_t i = 0; i < own->count; i++) {
        csn_hash_add(&h, own->v[i].to, strlen(own->v[i].to) + 1);
        csn_hash_add(&h, own->v[i].from, strlen(own->v[i].from) + 1);
    }
    hash_file(&h, ZONE, 0);
    hash_file(&h, ZONE, AT_SYMLINK_NOFOLLOW);
    for (size_t i = 0; i < COUNT(files); i++)
        hash_file(&h, files[i], 0);
    csn_hash_hex(&h, key);
}

/* The path of the copy, held for as long as j is; NULL: there is none and can be none. */
static const char *shared_copy(csn_jail *j, const entries *own, uint32_t found)
{
    char key[CSN_HASH_HEX];
    csn_autofree char *store_path = NULL;
    csn_autofd int store = csn_statedir_open(CSN_DIR_STATE, "etc", &store_path);

    if (store < 0)
        return NULL;
    make_key(own, found, key);
    int rc = csn_etc_hold(store, key, &j->etc_lock);
    if (rc < 0) {
        entries all = *own;
        add_files(&all);
        for (size_t i = 0; i < COUNT(dirs); i++)
            if (found & (1u << i))
                add(&all, CSN_MOUNT_DIR, NULL, dirs[i]);
        rc = csn_etc_make(store, key, all.v, all.count);
        if (rc == 0)
            rc = csn_etc_hold(store, key, &j->etc_lock);
    }
    return rc < 0 ? NULL : csn_arena_printf(j->arena, "%s/%s", store_path, key);
}

static void mount_copy(csn_jail *j, const char *copy)
{
    csn_jail_add(j, CSN_MOUNT_BIND, CSN_MOUNT_RDONLY | CSN_MOUNT_WIDE | CSN_MOUNT_OURS,
                 CSN_LL_READ, copy, "/etc");
    j->etc = (csn_jail_share){.option = "/etc", .host = copy, .inside = "/etc", .as_is = true};
    if (j->privileged) /* the way to it is root's alone */
        csn_jail_give(j, &j->etc);
}

/* One Landlock rule for all of it: each costs. */
void csn_jail_add_etc(const csn_kept *k, csn_jail *j, const char *home)
{
    entries e = {.arena = j->arena};
    uint32_t found = find_dirs();

    add_own(&e, j, home);
    for (size_t i = 0; i < e.count; i++)
        if (!e.v[i].from)
            return; /* no memory: the missing passwd is noticed by whoever looks */
    const char *copy = k->detached || k->connected ? NULL : shared_copy(j, &e, found);
    if (copy) {
        mount_copy(j, copy);
    } else {
        add_files(&e);
        csn_jail_add(j, CSN_MOUNT_DIR, CSN_MOUNT_WIDE, CSN_LL_READ, NULL, "/etc");
        for (size_t i = 0; i < e.count; i++)
            csn_jail_add(j, e.v[i].kind, e.v[i].flags, e.v[i].access, e.v[i].from, e.v[i].to);
    }
    mount_dirs(j, found);
}
