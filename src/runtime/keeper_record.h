/* keeper_record.h: which process keeps a detached sandbox, and whether it lives.
 *
 * The file `keeper` in the directory of a detached sandbox is one JSON object. It is created
 * empty and locked before the keeper is started, and filled when the sandbox is complete. In
 * the pid namespace where that was done, pid and start time tell whether the keeper lives. In
 * others the lock does, which the keeper inherits and the kernel drops with it. */
#pragma once
#include "caisson/caisson.h"
#include "os/process_id.h"

typedef struct csn_keeper_record {
    char version[32];  /* of the caisson that made it; "" while the sandbox is being made */
    uint64_t protocol; /* CSN_KEEPER_VERSION of that caisson */
    csn_process_id keeper;
    csn_process_id holder;  /* has a descriptor of the socket */
    csn_process_id gateway; /* pid 0: none */
    csn_host_id host;       /* where these pids are valid */
    csn_host_id here;       /* of the process that read the record */
    int here_error;         /* -errno if that is unknown */
    uint64_t sock_dev, sock_ino;
    char **dirs; /* without confinement: paths of the base and of the granted directories */
} csn_keeper_record;

typedef enum csn_keeper_life {
    CSN_KEEPER_LIVES,
    CSN_KEEPER_STARTING,      /* its creator lives and has not finished */
    CSN_KEEPER_ENDED,         /* certain */
    CSN_KEEPER_OTHER_BOOT,    /* of this host: it ended with that boot */
    CSN_KEEPER_OTHER_HOST,    /* unknown: another machine shares the state directory */
    CSN_KEEPER_OTHER_VERSION, /* it lives, and speaks another protocol */
} csn_keeper_life;

/* Creates the empty file in `dir`. Returns a descriptor that has its lock, or -errno. */
int csn_keeper_record_create(int dir);
/* Fills it. 0 or -errno. */
int csn_keeper_record_write(int dir, const csn_keeper_record *r);
/* 0; -ENOENT: there is none; other -errno. A damaged or empty file gives an empty record. */
int csn_keeper_record_read(int dir, csn_keeper_record *ret);
csn_keeper_life csn_keeper_record_life(int dir, const csn_keeper_record *r);
/* The same. *ret_pidfd: of a keeper that lives in this pid namespace, else -1. */
csn_keeper_life csn_keeper_record_find(int dir, const csn_keeper_record *r, int *ret_pidfd,
                                       bool *ret_stopped);
/* 1 if its pids are valid in the process that read it, 0, or -errno. */
int csn_keeper_record_is_near(const csn_keeper_record *r);
/* A pidfd of its gateway, or -1: none that this process can see. */
int csn_keeper_record_open_gateway(const csn_keeper_record *r);
void csn_keeper_record_release(csn_keeper_record *r);
