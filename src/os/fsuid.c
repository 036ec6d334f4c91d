/* fsuid.c: the file-system identity of a thread.
 *
 * Called around every file operation of a jail whose caller is root: what the file calls may do
 * must be what commands may do, and those are a user of no account. Raw system calls, because
 * libc changes all threads of a process at once, and the process is not ours. The kernel takes
 * the capabilities that override permissions out of the effective set with the fsuid and puts
 * them back with it. What must hold: nothing is done under a half-changed identity. */
#include "os/fsuid.h"

#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/vfork_lock.h"

/* A thread that changes its identity makes the memory that all threads share undumpable, and
 * with it what a child in that memory may write of its own in /proc. */
static pthread_rwlock_t identity = PTHREAD_RWLOCK_INITIALIZER;
static csn_vfork_lock frozen;

static void lock_thawed(int (*lock)(pthread_rwlock_t *))
{
    for (;;) {
        lock(&identity);
        if (!csn_vfork_lock_is_taken(&frozen))
            return;
        pthread_rwlock_unlock(&identity);
        csn_vfork_lock_wait(&frozen);
    }
}

void csn_fsuid_freeze(void)
{
    lock_thawed(pthread_rwlock_wrlock);
    csn_vfork_lock_take(&frozen);
    pthread_rwlock_unlock(&identity);
}

CSN_IN_CHILD void csn_fsuid_thaw(void)
{
    csn_vfork_lock_release(&frozen);
}

/* The call itself tells nothing; asking for an impossible user tells who we are. */
static bool now_is(long call, unsigned want)
{
    return (unsigned)syscall(call, -1) == want;
}

int csn_fsuid_switch(csn_fsuid *g, uid_t uid, gid_t gid)
{
    g->on = false;
    g->groups = getgroups(CSN_FSUID_GROUPS, g->group);
    if (g->groups < 0)
        return -errno;
    if (g->groups > 0 && syscall(SYS_setgroups, 0, NULL) < 0)
        return -errno;
    g->on = true;
    lock_thawed(pthread_rwlock_rdlock);
    g->gid = (gid_t)syscall(SYS_setfsgid, gid);
    g->uid = (uid_t)syscall(SYS_setfsuid, uid);
    pthread_rwlock_unlock(&identity);
    if (now_is(SYS_setfsgid, gid) && now_is(SYS_setfsuid, uid))
        return 0;
    csn_fsuid_restore(g);
    return -EPERM;
}

void csn_fsuid_restore(csn_fsuid *g)
{
    if (!g->on)
        return;
    lock_thawed(pthread_rwlock_rdlock);
    (void)syscall(SYS_setfsuid, g->uid);
    (void)syscall(SYS_setfsgid, g->gid);
    pthread_rwlock_unlock(&identity);
    if (g->groups > 0)
        (void)syscall(SYS_setgroups, g->groups, g->group);
    g->on = false;
}
