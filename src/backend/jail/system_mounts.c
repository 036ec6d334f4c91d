/* system_mounts.c: adds the mounts of the host's system that every jail has.
 *
 * Programs and libraries are read-only, without the administrator's settings in their trees;
 * /etc comes from etc_files.c; /dev has only harmless devices. /proc is read-only and shows
 * only the jail's processes; files about the host are masked, in addition to the permissions
 * that already refuse access. There is no /sys. */
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/jail/etc_files.h"
#include "backend/jail/jail.h"
#include "base/cleanup.h"
#include "os/landlock.h"

/* the package database, for programs in /usr */
#define PACKAGES   "/var/lib/dpkg"
#define WHOLE_PROC "/run/.nested"
#define COUNT(a)   (sizeof(a) / sizeof((a)[0]))
#define USE        (CSN_LL_READ | CSN_LL_EXEC)
#define SYSTEM     (CSN_MOUNT_RDONLY | CSN_MOUNT_TRUSTED)
#define BY_HELPER  (CSN_MOUNT_TRUSTED | CSN_MOUNT_BY_HELPER)

static const char *const programs[] = {"/usr",   "/bin",    "/sbin", "/lib",      "/lib32",
                                       "/lib64", "/libx32", "/opt",  "/nix/store"};
/* Settings of the administrator in the trees of programs. Like those in /etc they may contain
 * tokens (npmrc, gitconfig, pip.conf), and programs work without them. */
static const char *const settings[] = {
    "/usr/local/etc",      /* of programs installed with the prefix /usr/local */
    "/usr/etc",            /* npm's npmrc for the prefix /usr */
    "/usr/local/pip.conf", /* pip's, for a Python of that prefix */
    "/usr/pip.conf",
};
static const char *const nodes[] = {"/dev/null",   "/dev/zero",    "/dev/full",
                                    "/dev/random", "/dev/urandom", "/dev/tty"};

/* Adds links as on the host (merged /usr). Returns a bit for each directory to mount. */
static uint32_t find_programs(csn_rootfs_template *t)
{
    uint32_t found = 0;
    struct stat st;
    char text[PATH_MAX];

    for (size_t i = 0; i < COUNT(programs); i++) {
        if (lstat(programs[i], &st) < 0)
            continue;
        ssize_t n = S_ISLNK(st.st_mode) ? readlink(programs[i], text, sizeof(text) - 1) : -1;
        if (n > 0) {
            text[n] = '\0';
            csn_rootfs_template_add(t, CSN_MOUNT_LINK, csn_arena_strdup(t->arena, text),
                                    programs[i]);
        } else if (S_ISDIR(st.st_mode)) {
            csn_rootfs_template_mountpoint(t, programs[i], true);
            found |= 1u << i;
        }
    }
    return found;
}

static void mount_programs(csn_jail *j, uint32_t found)
{
    for (size_t i = 0; i < COUNT(programs); i++)
        if (found & (1u << i))
            csn_jail_add(j, CSN_MOUNT_BIND, SYSTEM, USE, programs[i], programs[i]);
}

/* Directories look empty: programs may fail if they cannot search one. */
static void hide_settings(csn_jail *j)
{
    for (size_t i = 0; i < COUNT(settings); i++)
        if (access(settings[i], F_OK) == 0)
            csn_jail_add(j, CSN_MOUNT_MASK,
                         CSN_MOUNT_OPTIONAL | CSN_MOUNT_RDONLY | CSN_MOUNT_TRUSTED, 0, NULL,
                         settings[i]);
}

static void mount_dev(csn_jail *j)
{
    csn_jail_add(j, CSN_MOUNT_PTS, CSN_MOUNT_DEVICES | CSN_MOUNT_NOEXEC, 0, NULL, "/dev/pts");
    csn_jail_add(j, CSN_MOUNT_SCRATCH, CSN_MOUNT_STICKY | CSN_MOUNT_NOEXEC,
                 CSN_LL_READ | CSN_LL_WRITE, NULL, "/dev/shm");
    /* mq_open(3) needs no mount, but Landlock requires a rule for queues, and a rule needs a
     * path. Optional, because the kernel may lack POSIX message queues. */
    csn_jail_add(j, CSN_MOUNT_QUEUES, CSN_MOUNT_OPTIONAL | CSN_MOUNT_NOEXEC,
                 CSN_LL_READ | CSN_LL_WRITE, NULL, "/dev/mqueue");
    for (size_t i = 0; i < COUNT(nodes); i++)
        csn_jail_add(j, CSN_MOUNT_BIND,
                     CSN_MOUNT_DEVICES | CSN_MOUNT_NOEXEC | CSN_MOUNT_NARROW | BY_HELPER |
                         (j->as_root ? CSN_MOUNT_RDONLY : 0), /* keeps the owner from chmod */
                     CSN_LL_DEVICE, nodes[i], nodes[i]);
}

static void add_proc(csn_jail *j)
{
    /* Others can be opened only by root. */
    static const char *const covered[] = {"/proc/acpi",      "/proc/kallsyms",    "/proc/kcore",
                                          "/proc/key-users", "/proc/keys",        "/proc/kmsg",
                                          "/proc/modules",   "/proc/sched_debug", "/proc/scsi",
                                          "/proc/timer_list"};

    if (j->as_root)
        csn_weaker_user_cover_proc(j);
    if (j->nested) /* commands, which have the keeper's uid, could change its OOM score */
        csn_jail_add(j, CSN_MOUNT_MASK, 0, 0, NULL, "/proc/1");
    for (size_t i = 0; i < COUNT(covered); i++)
        csn_jail_add(j, CSN_MOUNT_MASK, CSN_MOUNT_OPTIONAL | BY_HELPER, 0, NULL, covered[i]);
}

/* The kernel lets a namespace mount a /proc only if it has a whole one, without covers,
 * wherever that is. Nothing inside can reach this one. */
static void mount_whole_proc(csn_jail *j)
{
    csn_jail_add(j, CSN_MOUNT_PROC, CSN_MOUNT_NOEXEC, 0, NULL, WHOLE_PROC "/proc");
    csn_jail_add(j, CSN_MOUNT_MASK, 0, 0, NULL, WHOLE_PROC);
}

/* Adds entries outside of any mount, and mount points. */
static void fill_template(csn_rootfs_template *t, const char *home)
{
    static const char *const links[][2] = {{"/proc/self/fd", "/dev/fd"},
                                           {"/proc/self/fd/0", "/dev/stdin"},
                                           {"/proc/self/fd/1", "/dev/stdout"},
                                           {"/proc/self/fd/2", "/dev/stderr"},
                                           {"pts/ptmx", "/dev/ptmx"}};
    static const char *const mountpoints[] = {"/proc",       "/dev/pts", "/dev/shm",
                                              "/dev/mqueue", "/tmp",     "/var/tmp"};

    for (size_t i = 0; i < COUNT(links); i++)
        csn_rootfs_template_add(t, CSN_MOUNT_LINK, links[i][0], links[i][1]);
    for (size_t i = 0; i < COUNT(mountpoints); i++)
        csn_rootfs_template_mountpoint(t, mountpoints[i], true);
    for (size_t i = 0; i < COUNT(nodes); i++)
        csn_rootfs_template_mountpoint(t, nodes[i], false);
    if (home)
        csn_rootfs_template_mountpoint(t, home, true);
    csn_rootfs_template_add(t, CSN_MOUNT_DIR, NULL, "/run");
    /* World-readable but without a Landlock rule: unreadable inside if Landlock is active. */
    csn_rootfs_template_add(t, CSN_MOUNT_TEXT, "", "/run/.landlock");
}

void csn_jail_add_system(const csn_runtime *rt, csn_jail *j, const char *home,
                         const csn_jail_share *shares, size_t count)
{
    csn_autofree csn_rootfs_template *t = calloc(1, sizeof(*t));
    const csn_etc *etc = csn_etc_find(j);

    if (!t || !etc) {
        j->mount_count = CSN_MOUNTS_MAX + 1; /* csn_jail_plan fails */
        return;
    }
    t->arena = j->arena;
    t->etc = etc;
    fill_template(t, rt->config->home ? NULL : home);
    if (j->nested)
        csn_rootfs_template_mountpoint(t, WHOLE_PROC "/proc", true);
    csn_etc_add_generated(t, j, home, etc);
    uint32_t programs_found = find_programs(t);
    bool packages = access(PACKAGES, F_OK) == 0;
    if (packages)
        csn_rootfs_template_mountpoint(t, PACKAGES, true);
    csn_jail_add_template(rt, j, t, shares, count);
    /* Landlock lets the keeper write to its own mount of it. Who makes a user namespace writes
     * its maps there. */
    csn_jail_add(j, CSN_MOUNT_PROC, (j->nested ? 0 : CSN_MOUNT_RDONLY) | CSN_MOUNT_NOEXEC,
                 CSN_LL_READ | CSN_LL_WRITE, NULL, "/proc");
    if (j->nested)
        mount_whole_proc(j);
    csn_jail_add(j, CSN_MOUNT_DIR, CSN_MOUNT_WIDE, CSN_LL_DEVICE, NULL, "/dev");
    /* One Landlock rule for the whole directory, since each rule costs time. */
    csn_jail_add(j, CSN_MOUNT_DIR, CSN_MOUNT_WIDE, CSN_LL_READ, NULL, "/etc");
    csn_etc_mount_dirs(j, etc);
    mount_dev(j);
    add_proc(j);
    mount_programs(j, programs_found);
    hide_settings(j);
    if (packages)
        csn_jail_add(j, CSN_MOUNT_BIND, SYSTEM | CSN_MOUNT_OPTIONAL, CSN_LL_READ, PACKAGES,
                     PACKAGES);
    csn_jail_add(j, CSN_MOUNT_SCRATCH, CSN_MOUNT_STICKY, USE | CSN_LL_WRITE, NULL, "/tmp");
    csn_jail_add(j, CSN_MOUNT_SCRATCH, CSN_MOUNT_STICKY, USE | CSN_LL_WRITE, NULL, "/var/tmp");
}
