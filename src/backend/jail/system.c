/* system.c: what every jail has of the host's system: enough to work with, nothing personal.
 *
 * Programs and libraries come read-only. /etc is made new, of small files and of the parts that
 * tools need to run; names, passwords, keys and configurations of the host are not among them.
 * Devices are the harmless ones. /proc is that of the jail's own processes, with the files that
 * speak of the host read-only or covered: the second wall, for a user who may not write or read
 * them anyway. /sys is not there. */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "base/cleanup.h"
#include "os/landlock.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define USE      (CSN_LL_READ | CSN_LL_EXEC)
#define COPY_MAX 4096

/* As they are on this host: a merged /usr has links here. */
static void add_programs(csn_jail *j)
{
    static const char *const dirs[] = {"/bin",   "/sbin",   "/lib", "/lib32",
                                       "/lib64", "/libx32", "/opt", "/nix/store"};
    struct stat st;
    char text[PATH_MAX];

    csn_jail_add(j, CSN_MOUNT_BIND, CSN_MOUNT_RDONLY, USE, "/usr", "/usr");
    for (size_t i = 0; i < COUNT(dirs); i++) {
        if (lstat(dirs[i], &st) < 0)
            continue;
        ssize_t n = S_ISLNK(st.st_mode) ? readlink(dirs[i], text, sizeof(text) - 1) : -1;
        if (n > 0) {
            text[n] = '\0';
            csn_jail_add(j, CSN_MOUNT_LINK, 0, 0, csn_arena_strdup(j->arena, text), dirs[i]);
        } else if (S_ISDIR(st.st_mode)) {
            csn_jail_add(j, CSN_MOUNT_BIND, CSN_MOUNT_RDONLY, USE, dirs[i], dirs[i]);
        }
    }
}

/* A small file is copied: that is quicker than a mount, which must be taken down again too. One
 * that changes on the host stays as it was inside. */
static void add_part(csn_jail *j, const char *path)
{
    char text[COPY_MAX + 1];
    struct stat st;
    csn_autofd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0 || fstat(fd, &st) < 0)
        return;
    ssize_t n = S_ISREG(st.st_mode) && st.st_size <= COPY_MAX ? read(fd, text, COPY_MAX) : -1;
    if (n >= 0 && !memchr(text, '\0', (size_t)n))
        csn_jail_add(j, CSN_MOUNT_TEXT, 0, 0, csn_arena_memdup(j->arena, text, (size_t)n),
                     path);
    else
        csn_jail_add(j, CSN_MOUNT_BIND,
                     CSN_MOUNT_RDONLY | CSN_MOUNT_OPTIONAL | CSN_MOUNT_NARROW, CSN_LL_READ,
                     path, path);
}

/* A link as on the host where it is one: programs read the zone's name out of it. */
static void add_zone(csn_jail *j)
{
    static const char name[] = "/etc/localtime", zones[] = "/usr/share/zoneinfo/";
    char real[PATH_MAX];

    if (!realpath(name, real))
        return;
    bool link = strncmp(real, zones, sizeof(zones) - 1) == 0;
    csn_jail_add(j, link ? CSN_MOUNT_LINK : CSN_MOUNT_BIND, link ? 0 : CSN_MOUNT_RDONLY, 0,
                 csn_arena_strdup(j->arena, real), name);
}

/* One Landlock rule for all of it: each costs. What an administrator writes (gitconfig, npmrc,
 * pip.conf, profile.d, apt) may hold passwords and is not here; what packages put here and
 * their programs do not run without is. */
static void add_etc(csn_jail *j, const char *home)
{
    static const char *const parts[] = {
        "/etc/alternatives",    "/etc/ld.so.cache",     "/etc/ld.so.conf",
        "/etc/ld.so.conf.d",    "/etc/timezone",        "/etc/ssl/openssl.cnf",
        "/etc/protocols",       "/etc/services",        "/etc/bash.bashrc",
        "/etc/profile",         "/etc/fonts",           "/etc/debian_version",
        "/etc/manpath.config",  "/etc/groff",           "/etc/maven/m2.conf",
        "/etc/maven/logging",   "/etc/fpc.cfg",         "/etc/gnucobol",
        "/etc/java-8-openjdk",  "/etc/java-11-openjdk", "/etc/java-17-openjdk",
        "/etc/java-21-openjdk", "/etc/java-25-openjdk",
    };
    csn_arena *a = j->arena;

    csn_jail_add(j, CSN_MOUNT_TEXT, 0, 0,
                 csn_arena_printf(a,
                                  "root:x:0:0:root:/root:/usr/sbin/nologin\n" CSN_JAIL_USER
                                  ":x:%u:%u:sandbox:%s:%s\n"
                                  "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
                                  j->uid, j->gid, home, csn_jail_shell()),
                 "/etc/passwd");
    csn_jail_add(
        j, CSN_MOUNT_TEXT, 0, 0,
        csn_arena_printf(a, "root:x:0:\n" CSN_JAIL_USER ":x:%u:\nnogroup:x:65534:\n", j->gid),
        "/etc/group");
    csn_jail_add(j, CSN_MOUNT_TEXT, 0, 0, "127.0.0.1 localhost caisson\n::1 localhost\n",
                 "/etc/hosts");
    csn_jail_add(j, CSN_MOUNT_TEXT, 0, 0, "passwd: files\ngroup: files\nhosts: files dns\n",
                 "/etc/nsswitch.conf");
    csn_jail_add(j, CSN_MOUNT_TEXT, 0, 0, "", "/etc/resolv.conf");
    csn_jail_add(j, CSN_MOUNT_LINK, 0, 0, "../usr/lib/os-release", "/etc/os-release");
    csn_jail_add(j, CSN_MOUNT_LINK, 0, 0, "/proc/self/mounts", "/etc/mtab");
    csn_jail_add(j, CSN_MOUNT_DIR, CSN_MOUNT_WIDE, CSN_LL_READ, NULL, "/etc");
    add_zone(j);
    for (size_t i = 0; i < COUNT(parts); i++)
        add_part(j, parts[i]);
}

static void add_dev(csn_jail *j)
{
    static const char *const nodes[] = {"/dev/null",   "/dev/zero",    "/dev/full",
                                        "/dev/random", "/dev/urandom", "/dev/tty"};
    static const char *const links[][2] = {{"/proc/self/fd", "/dev/fd"},
                                           {"/proc/self/fd/0", "/dev/stdin"},
                                           {"/proc/self/fd/1", "/dev/stdout"},
                                           {"/proc/self/fd/2", "/dev/stderr"},
                                           {"pts/ptmx", "/dev/ptmx"}};

    for (size_t i = 0; i < COUNT(nodes); i++)
        csn_jail_add(j, CSN_MOUNT_BIND, CSN_MOUNT_DEVICES | CSN_MOUNT_NOEXEC | CSN_MOUNT_NARROW,
                     CSN_LL_DEVICE, nodes[i], nodes[i]);
    for (size_t i = 0; i < COUNT(links); i++)
        csn_jail_add(j, CSN_MOUNT_LINK, 0, 0, links[i][0], links[i][1]);
    csn_jail_add(j, CSN_MOUNT_DIR, CSN_MOUNT_WIDE, CSN_LL_DEVICE, NULL, "/dev");
    csn_jail_add(j, CSN_MOUNT_PTS, CSN_MOUNT_DEVICES | CSN_MOUNT_NOEXEC, 0, NULL, "/dev/pts");
    csn_jail_add(j, CSN_MOUNT_SCRATCH, CSN_MOUNT_STICKY | CSN_MOUNT_NOEXEC,
                 CSN_LL_READ | CSN_LL_WRITE, NULL, "/dev/shm");
    /* mq_open itself needs no mount, but Landlock takes a queue for a file and asks for a rule,
     * and a rule needs a path. A kernel without queues has no such file system. */
    csn_jail_add(j, CSN_MOUNT_QUEUES, CSN_MOUNT_OPTIONAL | CSN_MOUNT_NOEXEC,
                 CSN_LL_READ | CSN_LL_WRITE, NULL, "/dev/mqueue");
}

static void add_proc(csn_jail *j)
{
    static const char *const fixed[] = {"/proc/sys", "/proc/bus", "/proc/fs", "/proc/irq",
                                        "/proc/sysrq-trigger"};
    /* Beyond these only what no user but root can open. */
    static const char *const covered[] = {"/proc/acpi",      "/proc/kallsyms",    "/proc/kcore",
                                          "/proc/key-users", "/proc/keys",        "/proc/kmsg",
                                          "/proc/modules",   "/proc/sched_debug", "/proc/scsi",
                                          "/proc/timer_list"};

    csn_jail_add(j, CSN_MOUNT_PROC, CSN_MOUNT_NOEXEC, CSN_LL_READ | CSN_LL_WRITE, NULL,
                 "/proc");
    for (size_t i = 0; i < COUNT(fixed); i++)
        csn_jail_add(j, CSN_MOUNT_AGAIN,
                     CSN_MOUNT_RDONLY | CSN_MOUNT_OPTIONAL | CSN_MOUNT_NOEXEC, 0, NULL,
                     fixed[i]);
    for (size_t i = 0; i < COUNT(covered); i++)
        csn_jail_add(j, CSN_MOUNT_MASK, CSN_MOUNT_OPTIONAL, 0, NULL, covered[i]);
}

void csn_jail_add_system(csn_jail *j, const char *home)
{
    add_programs(j);
    add_etc(j, home);
    add_dev(j);
    add_proc(j);
    /* which package a program of /usr is from, and its version */
    csn_jail_add(j, CSN_MOUNT_BIND, CSN_MOUNT_RDONLY | CSN_MOUNT_OPTIONAL, CSN_LL_READ,
                 "/var/lib/dpkg", "/var/lib/dpkg");
    csn_jail_add(j, CSN_MOUNT_SCRATCH, CSN_MOUNT_STICKY, USE | CSN_LL_WRITE, NULL, "/tmp");
    csn_jail_add(j, CSN_MOUNT_SCRATCH, CSN_MOUNT_STICKY, USE | CSN_LL_WRITE, NULL, "/var/tmp");
    csn_jail_add(j, CSN_MOUNT_DIR, 0, 0, NULL, "/run");
    /* Readable for everybody but by no rule of Landlock: so that one can see that it stands. */
    csn_jail_add(j, CSN_MOUNT_TEXT, 0, 0, "without Landlock this can be read\n",
                 "/run/.landlock");
}
