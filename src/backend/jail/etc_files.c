/* etc_files.c: provides the contents of /etc in a jail.
 *
 * /etc has generated files (passwd, hosts, resolv.conf) and those files of the host that
 * programs need. Accounts, passwords, keys and administrator configuration of the host are left
 * out. Files are copied into the root template (rootfs_template.h), whose key includes their
 * inode and times: a changed file results in a new template. Directories are bind-mounted on
 * top. */
#include "backend/jail/etc_files.h"

#include <errno.h>
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

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define COPY_MAX 4096
#define ZONE     "/etc/localtime"
#define PART     (CSN_MOUNT_RDONLY | CSN_MOUNT_OPTIONAL | CSN_MOUNT_NARROW | CSN_MOUNT_TRUSTED)
#define DIR_PART (PART | CSN_MOUNT_BY_HELPER)
/* The address of the gateway; without a gateway, queries fail at once. */
#define RESOLV_CONF "nameserver 198.18.0.1\n"

/* Files that packages install and their programs require. Files that administrators edit
 * (gitconfig, npmrc, pip.conf, profile.d, apt) may contain passwords and are left out. */
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

void csn_etc_add_generated(csn_rootfs_template *t, const csn_jail *j, const char *home,
                           uint32_t found)
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
    csn_rootfs_template_add(t, CSN_MOUNT_TEXT, RESOLV_CONF, "/etc/resolv.conf");
    csn_rootfs_template_add(t, CSN_MOUNT_LINK, "../usr/lib/os-release", "/etc/os-release");
    csn_rootfs_template_add(t, CSN_MOUNT_LINK, "/proc/self/mounts", "/etc/mtab");
    for (size_t i = 0; i < COUNT(dirs); i++)
        if (found & (1u << i))
            csn_rootfs_template_mountpoint(t, dirs[i], true);
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

void csn_etc_add_copies(csn_rootfs_template *t)
{
    add_zone(t);
    for (size_t i = 0; i < COUNT(files); i++)
        add_file(t, files[i]);
}

uint32_t csn_etc_find_dirs(void)
{
    uint32_t found = 0;
    struct stat st;

    for (size_t i = 0; i < COUNT(dirs); i++)
        if (stat(dirs[i], &st) == 0 && S_ISDIR(st.st_mode))
            found |= 1u << i;
    return found;
}

void csn_etc_mount_dirs(csn_jail *j, uint32_t found)
{
    for (size_t i = 0; i < COUNT(dirs); i++)
        if (found & (1u << i))
            csn_jail_add(j, CSN_MOUNT_BIND, DIR_PART, CSN_LL_READ, dirs[i], dirs[i]);
}

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

void csn_etc_hash(csn_hash *h)
{
    hash_file(h, ZONE, 0);
    hash_file(h, ZONE, AT_SYMLINK_NOFOLLOW);
    for (size_t i = 0; i < COUNT(files); i++)
        hash_file(h, files[i], 0);
}
