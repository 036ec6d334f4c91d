/* fsuid.c: switches the file-system uid and gid of a thread.
 *
 * A root caller switches around every file operation of a jail, so that file calls may do
 * exactly what commands, which have an unprivileged uid, may do. Raw system calls, because libc
 * changes all threads of the host's process. The kernel clears the capabilities that override
 * permissions together with fsuid 0 and restores them with it. Invariant: no file operation
 * runs under a partly changed identity. */
#include "os/fsuid.h"

#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/vfork_lock.h"

/* setfsuid makes the memory undumpable; a vfork child that shares it can then not write its own
 * files in /proc. `frozen` excludes such changes while a child starts. */
static pthread_rwlock_t switching = PTHREAD_RWLOCK_INITIALIZER;
static csn_vfork_lock frozen;

static void lock_unfrozen(int (*lock)(pthread_rwlock_t *))
{
    for (;;) {
        lock(&switching);
        if (!csn_vfork_lock_is_taken(&frozen))
            return;
        pthread_rwlock_unlock(&switching);
        csn_vfork_lock_wait(&frozen);
    }
}

void csn_fsuid_freeze(void)
{
    lock_unfrozen(pthread_rwlock_wrlock);
    csn_vfork_lock_take(&frozen);
    pthread_rwlock_unlock(&switching);
}

CSN_IN_CHILD void csn_fsuid_thaw(void)
{
    csn_vfork_lock_release(&frozen);
}

/* setfsuid reports no failure; with an invalid id it returns the current one. */
static bool is_current(long call, unsigned want)
{
    return (unsigned)syscall(call, -1) == want;
}

#define CAP_VERSION_3 0x20080522u
/* CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID, LINUX_IMMUTABLE, MKNOD; MAC_OVERRIDE */
static const unsigned fs_caps[2] = {0x0800021fu, 0x1u};

typedef struct thread_caps {
    struct {
        unsigned version;
        int pid;
    } head;
    struct {
        unsigned effective, permitted, inheritable;
    } set[2];
} thread_caps;

/* The kernel clears these capabilities with fsuid 0; for uid 0 itself this does. */
static int drop_fs_caps(csn_fsuid *g)
{
    thread_caps c = {.head = {CAP_VERSION_3, 0}};

    if (syscall(SYS_capget, &c.head, c.set) < 0)
        return -errno;
    for (int i = 0; i < 2; i++) {
        g->caps[i] = c.set[i].effective;
        c.set[i].effective &= ~fs_caps[i];
    }
    if (syscall(SYS_capset, &c.head, c.set) < 0)
        return -errno;
    g->dropped = true;
    return 0;
}

static void restore_fs_caps(csn_fsuid *g)
{
    thread_caps c = {.head = {CAP_VERSION_3, 0}};

    if (!g->dropped || syscall(SYS_capget, &c.head, c.set) < 0)
        return;
    for (int i = 0; i < 2; i++)
        c.set[i].effective = g->caps[i];
    (void)syscall(SYS_capset, &c.head, c.set);
    g->dropped = false;
}

int csn_fsuid_switch(csn_fsuid *g, uid_t uid, gid_t gid)
{
    g->on = g->dropped = false;
    g->groups = getgroups(CSN_FSUID_GROUPS, g->group);
    if (g->groups < 0)
        return -errno;
    if (g->groups > 0 && syscall(SYS_setgroups, 0, NULL) < 0) {
        if (errno != EPERM || uid != geteuid())
            return -errno;
        g->groups = 0; /* a user namespace that denies setgroups: commands keep them too */
    }
    g->on = true;
    lock_unfrozen(pthread_rwlock_rdlock);
    g->gid = (gid_t)syscall(SYS_setfsgid, gid);
    g->uid = (uid_t)syscall(SYS_setfsuid, uid);
    pthread_rwlock_unlock(&switching);
    int rc = is_current(SYS_setfsgid, gid) && is_current(SYS_setfsuid, uid) ? 0 : -EPERM;
    if (rc == 0 && uid == 0)
        rc = drop_fs_caps(g);
    if (rc < 0)
        csn_fsuid_restore(g);
    return rc;
}

bool csn_fsuid_may_become(uid_t uid)
{
    csn_fsuid g;

    if (csn_fsuid_switch(&g, uid, uid) < 0)
        return false;
    csn_fsuid_restore(&g);
    return true;
}

void csn_fsuid_restore(csn_fsuid *g)
{
    if (!g->on)
        return;
    restore_fs_caps(g);
    lock_unfrozen(pthread_rwlock_rdlock);
    (void)syscall(SYS_setfsuid, g->uid);
    (void)syscall(SYS_setfsgid, g->gid);
    pthread_rwlock_unlock(&switching);
    if (g->groups > 0)
        (void)syscall(SYS_setgroups, g->groups, g->group);
    g->on = false;
}
