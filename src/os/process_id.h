/* process_id.h: names a process so that it can be found again later, by another process.
 *
 * A pid alone is reused. With its start time it is unique within one boot and one pid
 * namespace; csn_host_id names these. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CSN_BOOT_ID_SIZE   40u
#define CSN_HOST_NAME_SIZE 65u
#define CSN_FD_PATH_SIZE   64u

typedef struct csn_process_id {
    int64_t pid;    /* 0: none */
    uint64_t start; /* clock ticks since boot */
} csn_process_id;

/* Where a process id is valid. */
typedef struct csn_host_id {
    char
        boot[CSN_BOOT_ID_SIZE]; /* of the kernel: new at each boot, different on each machine */
    char name[CSN_HOST_NAME_SIZE];
    uint64_t pid_ns; /* inode number */
} csn_host_id;

/* 0 or -errno; -ESRCH: there is no such process in this pid namespace. */
int csn_pid_identify(pid_t pid, csn_process_id *ret);
/* A pidfd of exactly this process; -ESRCH: it has ended, even if it is not reaped yet.
 * *ret_stopped (may be NULL): a signal or a debugger has stopped it. */
int csn_pid_open(const csn_process_id *id, bool *ret_stopped);
/* True if the process was stopped by a signal or a debugger. */
bool csn_pid_is_stopped(pid_t pid);
/* The path below /proc of a descriptor that the process holds of this file, even if the file
 * was unlinked. 0, or -ENOENT, or -EACCES: the process does not show its descriptors. */
int csn_pid_find_fd(const csn_process_id *id, uint64_t dev, uint64_t ino,
                    char ret[CSN_FD_PATH_SIZE]);
/* Identifies this host for this process. 0 or -errno. */
int csn_host_identify(csn_host_id *ret);
/* The inode number of this process's mount namespace; 0: unknown. */
uint64_t csn_host_mount_ns(void);
