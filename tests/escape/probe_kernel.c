/* probe_kernel.c: takes many of one object of the kernel, or makes others wait.
 *
 * What is made here is removed again before the probe ends. */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

#define MB       (1ul << 20)
#define IDS_MAX  4096
#define SET_SIZE 1000
#define NOTIFY   1026 /* F_NOTIFY */

static int ids[IDS_MAX];

/* N terminals */
static int take_ptys(char **a)
{
    for (int i = number(a[0]); i > 0; i--)
        if (open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC) < 0)
            return errno;
    return 0;
}

static int make_shm(int i)
{
    (void)i;
    return shmget(IPC_PRIVATE, MB, IPC_CREAT | 0600);
}

static void drop_shm(int id)
{
    (void)shmctl(id, IPC_RMID, NULL);
}

static int make_queue(int i)
{
    (void)i;
    return msgget(IPC_PRIVATE, IPC_CREAT | 0600);
}

static void drop_queue(int id)
{
    (void)msgctl(id, IPC_RMID, NULL);
}

static int make_set(int i)
{
    (void)i;
    return semget(IPC_PRIVATE, SET_SIZE, IPC_CREAT | 0600);
}

static void drop_set(int id)
{
    (void)semctl(id, 0, IPC_RMID);
}

static int make_mq(int i)
{
    char name[64];

    snprintf(name, sizeof(name), "/csn-probe-%d-%d", (int)getpid(), i);
    struct mq_attr as = {.mq_maxmsg = 10, .mq_msgsize = 8192};
    mqd_t q = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &as);
    if (q != (mqd_t)-1)
        (void)mq_unlink(name);
    return (int)q;
}

static void drop_mq(int id)
{
    (void)mq_close(id);
}

/* KIND N */
static int take_objects(char **a)
{
    static const struct {
        const char *name;
        int (*make)(int i);
        void (*drop)(int id);
    } kinds[] = {{"shm", make_shm, drop_shm}, /* of 1 MiB each */
                 {"msg", make_queue, drop_queue},
                 {"sem", make_set, drop_set},
                 {"mq", make_mq, drop_mq}};
    int want = number(a[1]), made = 0, rc = EINVAL;

    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        if (strcmp(a[0], kinds[k].name) != 0)
            continue;
        for (rc = 0; rc == 0 && made < want && made < IDS_MAX; made++) {
            ids[made] = kinds[k].make(made);
            rc = ids[made] < 0 ? errno : 0;
        }
        for (int i = made - (rc != 0) - 1; i >= 0; i--)
            kinds[k].drop(ids[i]);
    }
    detail("%d", made);
    return rc;
}

/* N timers; the kernel counts them as signals of the user. */
static int take_timers(char **a)
{
    struct sigevent none = {.sigev_notify = SIGEV_NONE};
    int id;

    for (int i = number(a[0]); i > 0; i--)
        if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &none, &id) < 0)
            return errno;
    return 0;
}

/* FILE */
static int take_lease(char **a)
{
    int fd = open(a[0], O_RDONLY | O_CLOEXEC);

    return fd < 0 || fcntl(fd, F_SETLEASE, F_RDLCK) < 0 ? errno : 0;
}

/* DIR */
static int take_dnotify(char **a)
{
    int fd = open(a[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 || fcntl(fd, NOTIFY, 1L) < 0 ? errno : 0;
}

const attempt kernel_attempts[] = {
    {"take-ptys", 1, take_ptys},       {"take-objects", 2, take_objects},
    {"take-timers", 1, take_timers},   {"take-lease", 1, take_lease},
    {"take-dnotify", 1, take_dnotify}, {NULL, 0, NULL}};
