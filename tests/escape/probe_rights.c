/* probe_rights.c: ways to be more than one is: users, capabilities, namespaces. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif
#define CAP_ALL_VERSION_3 0x20080522u

/* FIELD VALUE: a line of /proc/self/status has another value than ordered */
static int status_is_not(char **a)
{
    char line[256];
    FILE *f = fopen("/proc/self/status", "re");
    size_t len = strlen(a[0]);

    while (f && fgets(line, sizeof(line), f)) {
        if (strncmp(line, a[0], len) != 0 || line[len] != ':')
            continue;
        char *value = line + len + 1 + strspn(line + len + 1, "\t ");
        value[strcspn(value, "\t\n")] = '\0';
        fclose(f);
        detail("%s", value);
        return strcmp(value, a[1]) == 0 ? AS_ORDERED : 0;
    }
    return 0; /* nobody to say that it holds */
}

/* ---- namespaces ---- */

static unsigned namespace_flag(const char *name)
{
    static const struct {
        const char *name;
        unsigned flag;
    } all[] = {{"user", CLONE_NEWUSER}, {"mnt", CLONE_NEWNS},       {"pid", CLONE_NEWPID},
               {"net", CLONE_NEWNET},   {"ipc", CLONE_NEWIPC},      {"uts", CLONE_NEWUTS},
               {"time", CLONE_NEWTIME}, {"cgroup", CLONE_NEWCGROUP}};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (strcmp(all[i].name, name) == 0)
            return all[i].flag;
    return 0;
}

static int try_unshare(char **a)
{
    return unshare((int)namespace_flag(a[0])) < 0 ? errno : 0;
}

/* The child ends at once; zero stays with the child. */
static int born(long pid)
{
    if (pid == 0)
        _exit(0);
    if (pid < 0)
        return errno;
    (void)waitpid((pid_t)pid, NULL, 0);
    return 0;
}

static int try_clone(char **a)
{
    return born(syscall(SYS_clone, namespace_flag(a[0]) | SIGCHLD, NULL, NULL, NULL, NULL));
}

static int try_clone3(char **a)
{
    struct {
        uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
    } args = {.flags = namespace_flag(a[0]), .exit_signal = SIGCHLD};

    return born(syscall(SYS_clone3, &args, sizeof(args)));
}

/* Together with the user namespace everybody may make the others. */
static int try_unshare_all(char **a)
{
    (void)a;
    return unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET) < 0 ? errno : 0;
}

/* PID NAME: EPERM because of setns itself, not of /proc: it is opened first */
static int try_setns(char **a)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%s/ns/%s", a[0], a[1]);
    int fd = open(path, O_RDONLY);
    return fd < 0 || setns(fd, 0) < 0 ? errno : 0;
}

/* The first number of a map: who somebody is inside. */
static unsigned first_of_map(const char *pid, const char *map)
{
    char path[64];
    unsigned id = 0;

    snprintf(path, sizeof(path), "/proc/%s/%s", pid, map);
    FILE *f = fopen(path, "re");
    if (!f || fscanf(f, "%u", &id) != 1)
        fprintf(stderr, "probe: %s cannot be read\n", path);
    if (f)
        fclose(f);
    return id;
}

/* Run outside by the owner of a jail: PID: enters the user namespace of a process, where no
 * filter follows, and makes another below it. Only "there is none left" is an answer: anything
 * else is a mistake in getting there. */
static int nest_in(char **a)
{
    char path[64];
    unsigned uid = first_of_map(a[0], "uid_map"), gid = first_of_map(a[0], "gid_map");

    snprintf(path, sizeof(path), "/proc/%s/ns/user", a[0]);
    int fd = open(path, O_RDONLY);
    if (fd < 0 || setns(fd, CLONE_NEWUSER) < 0 || setresgid(gid, gid, gid) < 0 ||
        setresuid(uid, uid, uid) < 0) {
        fprintf(stderr, "probe: %s cannot be entered: %s\n", path, errno_name(errno));
        return SAID;
    }
    if (unshare(CLONE_NEWUSER) == 0)
        return 0;
    if (errno == ENOSPC)
        return ENOSPC;
    fprintf(stderr, "probe: unshare in there: %s\n", errno_name(errno));
    return SAID;
}

/* ---- users and capabilities ---- */

static int be_uid(void)
{
    return setresuid(0, 0, 0);
}

static int be_gid(void)
{
    return setresgid(0, 0, 0);
}

static int be_groups(void)
{
    const gid_t root = 0;

    return setgroups(1, &root);
}

static int be_fsuid(void)
{
    (void)syscall(SYS_setfsuid, 0);
    errno = EPERM;
    return syscall(SYS_setfsuid, -1) == 0 ? 0 : -1;
}

static int be_capable(void)
{
    struct {
        uint32_t version;
        int pid;
    } head = {CAP_ALL_VERSION_3, 0};
    struct {
        uint32_t effective, permitted, inheritable;
    } caps[2] = {{1u << 21, 1u << 21, 0}, {0, 0, 0}}; /* CAP_SYS_ADMIN */

    return (int)syscall(SYS_capset, &head, caps);
}

static int be_without_securebits(void)
{
    return prctl(PR_SET_SECUREBITS, 0L, 0L, 0L, 0L);
}

static int be(char **a)
{
    static const struct {
        const char *what;
        int (*run)(void);
    } ways[] = {{"uid", be_uid},         {"gid", be_gid},
                {"groups", be_groups},   {"fsuid", be_fsuid},
                {"capable", be_capable}, {"without-securebits", be_without_securebits}};

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        if (strcmp(ways[i].what, a[0]) == 0)
            return ways[i].run() < 0 ? errno : 0;
    return ENOSYS;
}

static int user_is_root(char **a)
{
    (void)a;
    return geteuid() == 0 ? 0 : EPERM;
}

const attempt rights_attempts[] = {{"status-is-not", 2, status_is_not},
                                   {"unshare", 1, try_unshare},
                                   {"unshare-all", 0, try_unshare_all},
                                   {"clone", 1, try_clone},
                                   {"clone3", 1, try_clone3},
                                   {"setns", 2, try_setns},
                                   {"nest-in", 1, nest_in},
                                   {"be", 1, be},
                                   {"user-is-root", 0, user_is_root},
                                   {NULL, 0, NULL}};
