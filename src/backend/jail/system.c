/* system.c: what every jail has of the host's system: enough to work with, nothing personal.
 *
 * Programs and libraries come read-only, /etc from etc.c. Devices are the harmless ones. /proc
 * is that of the jail's own processes, with the files that speak of the host read-only or
 * covered: the second wall, for a user who may not write or read them anyway. /sys is not
 * there. */
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
#define SYSTEM   (CSN_MOUNT_RDONLY | CSN_MOUNT_OURS)
#define BESIDE   (CSN_MOUNT_OURS | CSN_MOUNT_BESIDE)

/* As they are on this host: a merged /usr has links here. */
static void add_programs(csn_jail *j)
{
    static const char *const dirs[] = {"/bin",   "/sbin",   "/lib", "/lib32",
                                       "/lib64", "/libx32", "/opt", "/nix/store"};
    struct stat st;
    char text[PATH_MAX];

    csn_jail_add(j, CSN_MOUNT_BIND, SYSTEM, USE, "/usr", "/usr");
    for (size_t i = 0; i < COUNT(dirs); i++) {
        if (lstat(dirs[i], &st) < 0)
            continue;
        ssize_t n = S_ISLNK(st.st_mode) ? readlink(dirs[i], text, sizeof(text) - 1) : -1;
        if (n > 0) {
            text[n] = '\0';
            csn_jail_add(j, CSN_MOUNT_LINK, 0, 0, csn_arena_strdup(j->arena, text), dirs[i]);
        } else if (S_ISDIR(st.st_mode)) {
            csn_jail_add(j, CSN_MOUNT_BIND, SYSTEM, USE, dirs[i], dirs[i]);
        }
    }
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

    csn_jail_add(j, CSN_MOUNT_PTS, CSN_MOUNT_DEVICES | CSN_MOUNT_NOEXEC, 0, NULL, "/dev/pts");
    csn_jail_add(j, CSN_MOUNT_SCRATCH, CSN_MOUNT_STICKY | CSN_MOUNT_NOEXEC,
                 CSN_LL_READ | CSN_LL_WRITE, NULL, "/dev/shm");
    /* mq_open itself needs no mount, but Landlock takes a queue for a file and asks for a rule,
     * and a rule needs a path. A kernel without queues has no such file system. */
    csn_jail_add(j, CSN_MOUNT_QUEUES, CSN_MOUNT_OPTIONAL | CSN_MOUNT_NOEXEC,
                 CSN_LL_READ | CSN_LL_WRITE, NULL, "/dev/mqueue");
    for (size_t i = 0; i < COUNT(nodes); i++)
        csn_jail_add(j, CSN_MOUNT_BIND,
                     CSN_MOUNT_DEVICES | CSN_MOUNT_NOEXEC | CSN_MOUNT_NARROW | BESIDE,
                     CSN_LL_DEVICE, nodes[i], nodes[i]);
    for (size_t i = 0; i < COUNT(links); i++)
        csn_jail_add(j, CSN_MOUNT_LINK, BESIDE, 0, links[i][0], links[i][1]);
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

    for (size_t i = 0; i < COUNT(fixed); i++)
        csn_jail_add(j, CSN_MOUNT_AGAIN,
                     CSN_MOUNT_RDONLY | CSN_MOUNT_OPTIONAL | CSN_MOUNT_NOEXEC | BESIDE, 0, NULL,
                     fixed[i]);
    for (size_t i = 0; i < COUNT(covered); i++)
        csn_jail_add(j, CSN_MOUNT_MASK, CSN_MOUNT_OPTIONAL | BESIDE, 0, NULL, covered[i]);
}

void csn_jail_add_system(const csn_kept *k, csn_jail *j, const char *home)
{
    csn_jail_add(j, CSN_MOUNT_PROC, CSN_MOUNT_NOEXEC, CSN_LL_READ | CSN_LL_WRITE, NULL,
                 "/proc");
    csn_jail_add(j, CSN_MOUNT_DIR, CSN_MOUNT_WIDE, CSN_LL_DEVICE, NULL, "/dev");
    csn_jail_add_etc(k, j, home);
    add_dev(j);
    add_proc(j);
    add_programs(j);
    /* which package a program of /usr is from, and its version */
    csn_jail_add(j, CSN_MOUNT_BIND, SYSTEM | CSN_MOUNT_OPTIONAL, CSN_LL_READ, "/var/lib/dpkg",
                 "/var/lib/dpkg");
    csn_jail_add(j, CSN_MOUNT_SCRATCH, CSN_MOUNT_STICKY, USE | CSN_LL_WRITE, NULL, "/tmp");
    csn_jail_add(j, CSN_MOUNT_SCRATCH, CSN_MOUNT_STICKY, USE | CSN_LL_WRITE, NULL, "/var/tmp");
    csn_jail_add(j, CSN_MOUNT_DIR, 0, 0, NULL, "/run");
    /* Readable for everybody but by no rule of Landlock: so that one can see that it stands. */
    csn_jail_add(j, CSN_MOUNT_TEXT, 0, 0, "without Landlock this can be read\n",
                 "/run/.landlock");
}
