/* keeper.h: the state of a running keeper, shared by its files.
 *
 *   main.c      reads the spec, makes the process what it must be, serves, ends
 *   boot/confine.c     what stands around a jail, built once before anything is served
 *   gateway_sockets.c       the sockets that a gateway outside has of the jail's network
 *   sweep.c     removing what is left, and the other life of this program: to do only that
 *   meter.c     how much memory all processes have, where the kernel does not bound it
 *   serve.c     the loop: descriptors, timers, connections, which request goes where
 *   start_command.c     from a SPAWN request to a running child
 *   jobs.c      commands: their output, their end, who is told
 *   deferred_replies.c     answers that are put off until something happens
 *   treekill.c  ending whole trees
 *   session.c   persistent shells
 *
 * One thread, no locks. Objects are linked lists with named ceilings; what is closed while a
 * batch of events is handled is freed after it, so an event never meets freed memory. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "keeper/proto.h"
#include "keeper/ring.h"
#include "keeper/spec.h"
#include "os/proctree.h"

/* Intrusive and circular; the first member of everything that is in a list. */
typedef struct csn_link {
    struct csn_link *prev, *next;
} csn_link;

typedef struct csn_list {
    csn_link head;
    size_t count;
} csn_list;

void csn_list_init(csn_list *l);
void csn_list_add(csn_list *l, csn_link *item);
void csn_list_drop(csn_list *l, csn_link *item);
#define CSN_EACH(list, item, safe)                                                             \
    for (csn_link *item = (list)->head.next, *safe = item->next; item != &(list)->head;        \
         item = safe, safe = item->next)

typedef enum csn_watch_kind {
    CSN_WATCH_SIGNALS,
    CSN_WATCH_OWNER,
    CSN_WATCH_LISTEN,
    CSN_WATCH_CONN,
    CSN_WATCH_CHANNEL, /* of a job */
    CSN_WATCH_RESTING, /* of one that has ended */
    CSN_WATCH_OUTPUT,  /* of a background job */
    CSN_WATCH_WAITER,
    CSN_WATCH_DRAIN,
    CSN_WATCH_NET,  /* the link to a gateway */
    CSN_WATCH_IDLE, /* output of a session nobody uses just now */
} csn_watch_kind;

/* One descriptor in the epoll set. fd -1: none. */
typedef struct csn_watch {
    csn_watch_kind kind;
    int fd;
    bool on;
    void *owner;
} csn_watch;

typedef struct csn_conn {
    csn_link link;
    csn_watch watch;
    bool control; /* the one we were born with */
} csn_conn;

typedef enum csn_job_kind {
    CSN_JOB_FOREGROUND,
    CSN_JOB_BACKGROUND,
    CSN_JOB_SESSION,
} csn_job_kind;

typedef struct csn_stream {
    csn_watch watch;
    csn_ring ring;
    struct csn_job *job;
    bool ended;   /* no more will be kept */
    bool discard; /* the process is gone; somebody else still holds the pipe */
} csn_stream;

typedef enum csn_kill_phase {
    CSN_KILL_NONE,
    CSN_KILL_TERM,
    CSN_KILL_KILL,
} csn_kill_phase;

struct csn_session;

typedef struct csn_job {
    csn_link link;
    csn_job_kind kind;
    pid_t pid;
    uint64_t tag;
    bool running; /* the direct child was not reaped yet */
    bool reaped;  /* it was, and nobody was told yet */
    bool tied;
    bool again; /* its channel may stay for the next one */
    bool pty;
    bool killed; /* somebody asked for its end */
    bool over;   /* it was ended for the memory it had */
    csn_watch channel;
    csn_stream out, err;
    int stdin_w;
    uint32_t status;
    uint64_t cpu_ns, peak_memory;
    int64_t started_ms;
    uint64_t deadline_ns; /* 0: none */
    uint64_t drain_ns;    /* 0: none; output that comes later is not kept */
    csn_kill_phase phase;
    uint64_t kill_next_ns, kill_term_ns;
    uint32_t kill_nap_ms;
    char *command;
    struct csn_session *session;
} csn_job;

typedef struct csn_session {
    csn_link link;
    char *name;
    csn_job *job;
    int script_w, ctl_r;
    csn_watch out, err;
    bool merge;
    bool busy;
} csn_session;

/* An answer that is put off. */
typedef struct csn_waiter {
    csn_link link;
    csn_watch watch;
    uint16_t type; /* CSN_MSG_PROCESSES, LOGS or SESSION */
    csn_ask_body ask;
    uint64_t deadline_ns;
    char *name; /* SESSION */
} csn_waiter;

typedef struct csn_drain {
    csn_link link;
    csn_watch watch;
} csn_drain;

typedef struct csn_meter {
    uint64_t next_ns;
    uint64_t peak;       /* the most that was seen, bytes */
    unsigned over_count; /* so many looks in succession saw too much */
} csn_meter;

#define CSN_PAGE        4096u /* where they are larger, less is given back, which is no harm */
#define CSN_CHILD_STACK (15u * CSN_PAGE + 1280u) /* of a child between clone and exec */
#define CSN_SPOTS       2u /* the connection we were born with, and a job */

/* There may be thousands of keepers, and each has pages of its own for what it has written to.
 * So whatever a command needs lies together: the end of the stack that its child has, our
 * state, the first objects, the beginning of its message. No malloc, which would begin a heap.
 */
typedef struct csn_keeper {
    _Alignas(CSN_PAGE) char child_stack[CSN_CHILD_STACK];
    csn_keeper_spec spec;
    csn_ask_body ready; /* what was told when the walls stood */
    int inner_wall;     /* that commands step behind, see boot/confine.c; -1: none */
    int epfd;
    csn_watch signals, owner, listen;
    csn_watch net; /* fresh sockets are asked for here; fd -1: nobody does */
    csn_list conns, jobs, ended, waiters, sessions, drains;
    csn_list resting; /* foreground jobs that are nothing but a channel */
    csn_list graves;  /* freed after the batch */
    csn_proctree tree;
    csn_proctree_want want; /* whose tree is being looked for */
    uint64_t sequence;
    int64_t started_ms, ends_ms; /* epoch; 0: never */
    uint64_t ends_ns;            /* monotonic; 0: never */
    bool reaped;                 /* some job's child was, and nobody was told yet */
    bool ending;
    bool settled; /* detached: it is on record, and lives on when its maker goes */
    csn_meter meter;
    struct {
        _Alignas(16) char bytes[sizeof(csn_job)];
        bool taken;
    } spots[CSN_SPOTS];
    uint8_t packet[CSN_KEEPER_MSG_MAX];
} csn_keeper;

/* main.c. Until there is a message on the connection we were born with, or it has hung up;
 * -errno: our owner has ended. Before anything is served. */
int csn_await_message(void);
/* Whole pages between these are not needed any more. */
void csn_give_back(void *start, void *end);

/* boot/confine.c. Where the mounts of the orders are put (CSN_MOUNTS_MAX), until the walls stand. */
csn_mount *csn_walls_room(void);
/* Begins what is the same for every jail, before its orders are there. No failure is
 * final: what could not be begun is tried again when they are. */
void csn_walls_ahead(void);
void csn_walls_ordered(void); /* they are */
/* The keeper is behind all walls of its spec, or must end: -errno. */
int csn_walls_build(csn_keeper *k);

/* gateway_sockets.c. A network as ordered: *told says what it became, ret_fds (room for all of a message)
 * what READY is to bring of it; they are closed by csn_net_told. Nothing ordered: nothing. */
int csn_net_build(csn_keeper *k, csn_net_body *told, int *ret_fds, size_t *ret_count,
                  uint64_t *ret_where);
void csn_net_told(void);
int csn_net_begin(csn_keeper *k); /* serves the link from now on */
void csn_net_serve(csn_keeper *k);

/* sweep.c. Removes what the spec lists. */
void csn_sweep_listed(const csn_keeper_spec *spec);
int csn_sweep(const csn_keeper_spec *spec); /* when the keeper has ended, or none comes */

/* meter.c. Is more memory in use than the spec allows? When to look again; 0: no need. */
uint64_t csn_meter_tick(csn_keeper *k, uint64_t now);

/* serve.c */
int csn_serve(csn_keeper *k);
void *csn_object_new(csn_keeper *k, size_t size); /* zeroed; NULL: no memory */
void csn_object_free(csn_keeper *k, void *object);
int csn_watch_open(csn_keeper *k, csn_watch *w, csn_watch_kind kind, int fd, void *owner);
void csn_watch_close(csn_keeper *k, csn_watch *w);  /* closes the descriptor */
int csn_watch_release(csn_keeper *k, csn_watch *w); /* gives it back, unwatched */
void csn_bury(csn_keeper *k, csn_link *item);       /* free it after this batch */
void csn_reply(int channel, uint16_t type, const csn_ask_body *body);
void csn_reply_error(int channel, int errnum, uint32_t stage);

/* start_command.c */
typedef struct csn_child {
    const csn_spawn_body *body;
    uint64_t tag;
    const csn_walls *walls; /* for what they bound of a command and not of the keeper */
    int cwd, in, out, err;  /* -1: the keeper's own (/dev/null; for cwd: the path in body) */
    int ctl;                /* session: becomes 9; else -1 */
    int inner_wall;         /* or -1 */
    int sockets;            /* who makes its sockets; -1: itself */
    const char *file;       /* the program; NULL: argv[0], searched for */
    char *stack;            /* CSN_CHILD_STACK */
    uint32_t stage, errnum; /* set by the child when it cannot go on */
} csn_child;

pid_t csn_child_start(csn_child *c);                          /* -1: see stage and errnum */
void csn_spawn_serve(csn_keeper *k, csn_msg *m, int channel); /* owns channel */
void csn_spawn_again(csn_keeper *k, csn_job *job);            /* its channel is readable */

/* jobs.c */
csn_job *csn_job_new(csn_keeper *k, csn_job_kind kind);
void csn_job_forget(csn_keeper *k, csn_job *job);  /* closes all it has */
void csn_job_wake(csn_keeper *k, csn_job *job);    /* a resting one becomes a new one */
csn_job *csn_job_find(csn_keeper *k, int64_t pid); /* background ones, running or ended */
void csn_jobs_reap(csn_keeper *k);    /* every child that ended, and tells about it */
void csn_jobs_collect(csn_keeper *k); /* only reaps: safe at any time */
void csn_job_settle(csn_keeper *k, csn_job *job); /* its child is reaped, its killing is over */
/* As the reaper of a pid namespace we are the parent of every orphan: no child, no process. */
bool csn_alone(void);
void csn_job_send_exit(csn_job *job, uint32_t stage, uint32_t errnum);
void csn_job_channel(csn_keeper *k, csn_job *job); /* its channel is readable or hung up */
void csn_stream_read(csn_keeper *k, csn_stream *s);
uint64_t csn_job_tick(csn_keeper *k, csn_job *job,
                      uint64_t now); /* when it wants the next one */
uint64_t csn_next_tag(csn_keeper *k);
void csn_drain_serve(csn_keeper *k, csn_msg *m, int channel);
void csn_drain_add(csn_keeper *k, int fd);        /* owns fd */
void csn_drain_read(csn_keeper *k, csn_watch *w); /* of any watch: read and forget */

/* deferred_replies.c */
void csn_processes_serve(csn_keeper *k, csn_msg *m, int channel);
void csn_logs_serve(csn_keeper *k, csn_msg *m, int channel);
void csn_signal_serve(csn_keeper *k, csn_msg *m, int channel);
void csn_feed_serve(csn_keeper *k, csn_msg *m, int channel);
void csn_resize_serve(csn_keeper *k, csn_msg *m, int channel);
/* Owns channel and name. -errno: too many. */
int csn_waiter_add(csn_keeper *k, int channel, uint16_t type, const csn_ask_body *ask,
                   uint64_t deadline_ns, char *name);
void csn_waiter_forget(csn_keeper *k, csn_waiter *w);
void csn_waiters_look(csn_keeper *k, int64_t pid); /* something happened to this process */
uint64_t csn_waiter_tick(csn_keeper *k, csn_waiter *w, uint64_t now);

/* treekill.c */
void csn_job_kill(csn_keeper *k, csn_job *job, uint64_t grace_ms);
uint64_t csn_kill_tick(csn_keeper *k, csn_job *job, uint64_t now); /* 0: nothing to do */
ssize_t csn_job_signal_tree(csn_keeper *k, const csn_job *job, int signo);
void csn_kill_everything(csn_keeper *k);

/* session.c */
void csn_session_serve(csn_keeper *k, csn_msg *m, int channel);
void csn_session_idle(csn_keeper *k, csn_session *s);   /* released: next waiter, or drain */
void csn_session_detach(csn_keeper *k, csn_session *s); /* its name is free for a new shell */
void csn_session_forget(csn_keeper *k, csn_session *s);
