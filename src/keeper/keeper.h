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

#include "keeper/protocol.h"
#include "keeper/ring.h"
#include "keeper/spec.h"
#include "os/proctree.h"

/* Intrusive and circular; the first member of everything that is in a list. */
typedef struct kp_link {
    struct kp_link *prev, *next;
} kp_link;

typedef struct kp_list {
    kp_link head;
    size_t count;
} kp_list;

void kp_list_init(kp_list *l);
void kp_list_add(kp_list *l, kp_link *item);
void kp_list_drop(kp_list *l, kp_link *item);
#define KP_EACH(list, item, safe)                                                              \
    for (kp_link *item = (list)->head.next, *safe = item->next; item != &(list)->head;         \
         item = safe, safe = item->next)

typedef enum kp_watch_kind {
    KP_WATCH_SIGNALS,
    KP_WATCH_OWNER,
    KP_WATCH_LISTEN,
    KP_WATCH_CONN,
    KP_WATCH_CHANNEL,      /* of a job */
    KP_WATCH_KEPT_CHANNEL, /* of one that has ended */
    KP_WATCH_OUTPUT,       /* of a background job */
    KP_WATCH_WAITER,
    KP_WATCH_DRAIN,
    KP_WATCH_NET,  /* the link to a gateway */
    KP_WATCH_IDLE, /* output of a session nobody uses just now */
} kp_watch_kind;

/* One descriptor in the epoll set. fd -1: none. */
typedef struct kp_watch {
    kp_watch_kind kind;
    int fd;
    bool on;
    void *owner;
} kp_watch;

typedef struct kp_conn {
    kp_link link;
    kp_watch watch;
    bool control; /* the one we were born with */
} kp_conn;

typedef enum kp_job_kind {
    KP_JOB_FOREGROUND,
    KP_JOB_BACKGROUND,
    KP_JOB_SESSION,
} kp_job_kind;

typedef struct kp_stream {
    kp_watch watch;
    kp_ring ring;
    struct kp_job *job;
    bool ended;   /* no more will be kept */
    bool discard; /* the process is gone; somebody else still holds the pipe */
} kp_stream;

typedef enum kp_kill_phase {
    KP_KILL_NONE,
    KP_KILL_TERM,
    KP_KILL_KILL,
} kp_kill_phase;

struct kp_session;

typedef struct kp_job {
    kp_link link;
    kp_job_kind kind;
    pid_t pid;
    uint64_t tag;
    bool running; /* the direct child was not reaped yet */
    bool reaped;  /* it was, and nobody was told yet */
    bool tied;
    bool keep_channel; /* its channel may stay for the next one */
    bool pty;
    bool killed;      /* somebody asked for its end */
    bool over_memory; /* it was ended for the memory it had */
    kp_watch channel;
    kp_stream out, err;
    int stdin_w;
    uint32_t status;
    uint64_t cpu_ns, peak_memory;
    int64_t started_ms;
    uint64_t deadline_ns; /* 0: none */
    uint64_t drain_ns;    /* 0: none; output that comes later is not kept */
    kp_kill_phase phase;
    uint64_t kill_next_ns, kill_term_ns;
    uint32_t kill_nap_ms;
    char *command;
    struct kp_session *session;
} kp_job;

typedef struct kp_session {
    kp_link link;
    char *name;
    kp_job *job;
    int script_w, ctl_r;
    kp_watch out, err;
    bool merge;
    bool busy;
} kp_session;

/* A request whose reply is deferred. */
typedef struct kp_waiter {
    kp_link link;
    kp_watch watch;    /* its channel */
    csn_msg_type type; /* PROCESSES, LOGS or SESSION */
    int64_t pid;       /* PROCESSES, LOGS */
    csn_logs_msg logs; /* LOGS */
    uint32_t flags;    /* SESSION */
    char *name;        /* SESSION; malloc'd */
    uint64_t deadline_ns;
} kp_waiter;

typedef struct kp_drain {
    kp_link link;
    kp_watch watch;
} kp_drain;

typedef struct kp_meter {
    uint64_t next_ns;
    uint64_t peak;       /* the most that was seen, bytes */
    unsigned over_count; /* so many looks in succession saw too much */
} kp_meter;

#define KP_PAGE           4096u /* where they are larger, less is given back, which is no harm */
#define KP_CHILD_STACK    (15u * KP_PAGE + 1280u) /* of a child between clone and exec */
#define KP_INLINE_OBJECTS 2u /* the connection we were born with, and a job */

/* There may be thousands of keepers, and each has pages of its own for what it has written to.
 * So whatever a command needs lies together: the end of the stack that its child has, our
 * state, the first objects, the beginning of its message. No malloc, which would begin a heap.
 */
typedef struct kp_keeper {
    _Alignas(KP_PAGE) char child_stack[KP_CHILD_STACK];
    csn_keeper_spec spec;
    csn_ready_msg ready; /* what was told when the walls stood */
    int command_ruleset; /* that commands step behind, see boot/confine.c; -1: none */
    int epfd;
    kp_watch signals, owner, listen;
    kp_watch net; /* fresh sockets are asked for here; fd -1: nobody does */
    kp_list conns, jobs, ended, waiters, sessions, drains;
    kp_list kept_channels; /* foreground jobs that are nothing but a channel */
    kp_list deferred_free; /* freed after the batch */
    csn_proctree tree;
    csn_proctree_query want; /* whose tree is being looked for */
    uint64_t sequence;
    int64_t started_ms, ends_ms; /* epoch; 0: never */
    uint64_t ends_ns;            /* monotonic; 0: never */
    bool reaped;                 /* some job's child was, and nobody was told yet */
    bool ending;
    bool committed;          /* detached: it is on record, and lives on when its maker ends */
    int record[2];           /* files without which it cannot be found, O_PATH; or -1 */
    uint64_t record_next_ns; /* when they are checked next; 0: never */
    kp_meter meter;
    struct {
        _Alignas(16) char bytes[sizeof(kp_job)];
        bool taken;
    } inline_objects[KP_INLINE_OBJECTS];
    uint8_t packet[CSN_KEEPER_MSG_MAX];
} kp_keeper;

/* main.c. Until there is a message on the connection we were born with, or it has hung up;
 * -errno: our owner has ended. Before anything is served. */
int kp_await_message(void);
/* Whole pages between these are not needed any more. */
void kp_release_pages(void *start, void *end);

/* boot/confine.c. Where the mounts of the orders are put (CSN_MOUNTS_MAX), until the walls
 * stand. */
csn_mount *kp_confine_mount_list(void);
/* Begins what is the same for every jail, before its orders are there. No failure is
 * final: what could not be begun is tried again when they are. */
void kp_confine_begin(void);
/* The keeper is behind all walls of its spec, or must end: -errno. */
int kp_confine(kp_keeper *k);

/* gateway_sockets.c. Builds the network of the spec, if it has one. Fills the net fields of
 * *ready and lists in ret_fds (CSN_KEEPER_FDS_MAX) the descriptors that READY carries;
 * kp_net_told closes them. On failure *failed says at which step. */
int kp_net_build(kp_keeper *k, csn_ready_msg *ready, int *ret_fds, size_t *ret_count,
                 csn_failed_msg *failed);
void kp_net_release(void);
int kp_net_watch(kp_keeper *k); /* serves the link from now on */
void kp_net_serve(kp_keeper *k);

/* sweep.c. Removes what the spec lists. */
void kp_sweep_listed(const csn_keeper_spec *spec);
int kp_sweeper_run(const csn_keeper_spec *spec); /* when the keeper has ended, or none comes */

/* meter.c. Is more memory in use than the spec allows? When to look again; 0: no need. */
uint64_t kp_meter_tick(kp_keeper *k, uint64_t now);

/* serve.c */
int kp_serve(kp_keeper *k);
void *kp_object_new(kp_keeper *k, size_t size); /* zeroed; NULL: no memory */
void kp_object_free(kp_keeper *k, void *object);
int kp_watch_open(kp_keeper *k, kp_watch *w, kp_watch_kind kind, int fd, void *owner);
void kp_watch_close(kp_keeper *k, kp_watch *w);  /* closes the descriptor */
int kp_watch_release(kp_keeper *k, kp_watch *w); /* gives it back, unwatched */
void kp_free_later(kp_keeper *k, kp_link *item); /* free it after this batch */
void kp_reply(int channel, csn_msg_type type, const void *msg);
void kp_reply_error(int channel, int errnum, csn_stage stage);

/* A decoded request. The loop closes the channel and the descriptors of `m` that the handler
 * did not take. */
typedef struct kp_request {
    csn_msg *m;
    int channel;
    csn_any_request body;
} kp_request;

/* Handlers return 0: reply DONE; -errno: reply ERROR; KP_REPLIED: nothing more to send. */
#define KP_REPLIED 1

/* start_command.c */
typedef struct kp_child {
    const csn_spawn_msg *spawn;
    uint64_t tag;
    const csn_confinement
        *confinement;       /* for what they bound of a command and not of the keeper */
    int cwd, in, out, err;  /* -1: the keeper's own (/dev/null; for cwd: the path in body) */
    int ctl;                /* session: becomes 9; else -1 */
    int command_ruleset;    /* or -1 */
    int sockets;            /* who makes its sockets; -1: itself */
    const char *file;       /* the program; NULL: argv[0], searched for */
    char *stack;            /* KP_CHILD_STACK */
    uint32_t stage, errnum; /* set by the child when it cannot go on */
} kp_child;

pid_t kp_child_start(kp_child *c); /* -1: see stage and errnum */
int kp_spawn_serve(kp_keeper *k, kp_request *r);
void kp_kept_channel_read(kp_keeper *k, kp_job *job); /* its channel is readable */

/* jobs.c */
kp_job *kp_job_new(kp_keeper *k, kp_job_kind kind);
void kp_job_free(kp_keeper *k, kp_job *job);    /* closes all it has */
void kp_job_reuse(kp_keeper *k, kp_job *job);   /* a resting one becomes a new one */
kp_job *kp_job_find(kp_keeper *k, int64_t pid); /* background ones, running or ended */
void kp_jobs_reap(kp_keeper *k);                /* every child that ended, and tells about it */
void kp_jobs_collect(kp_keeper *k);             /* only reaps: safe at any time */
void kp_job_finish(kp_keeper *k, kp_job *job);  /* its child is reaped, its killing is over */
/* As the reaper of a pid namespace we are the parent of every orphan: no child, no process. */
bool kp_has_no_children(void);
void kp_job_send_exit(kp_job *job, uint32_t stage, uint32_t errnum);
void kp_job_channel_read(kp_keeper *k, kp_job *job); /* its channel is readable or hung up */
void kp_stream_read(kp_keeper *k, kp_stream *s);
uint64_t kp_job_tick(kp_keeper *k, kp_job *job, uint64_t now); /* when it wants the next one */
uint64_t kp_next_tag(kp_keeper *k);
int kp_drain_serve(kp_keeper *k, kp_request *r);
void kp_drain_add(kp_keeper *k, int fd);       /* owns fd */
void kp_drain_read(kp_keeper *k, kp_watch *w); /* of any watch: read and forget */

/* deferred_replies.c */
int kp_processes_serve(kp_keeper *k, kp_request *r);
int kp_logs_serve(kp_keeper *k, kp_request *r);
int kp_signal_serve(kp_keeper *k, kp_request *r);
int kp_feed_serve(kp_keeper *k, kp_request *r);
int kp_resize_serve(kp_keeper *k, kp_request *r);
/* Takes the channel of the request, and w->name also on failure. Returns KP_REPLIED, or
 * -EAGAIN: there are too many. */
int kp_waiter_add(kp_keeper *k, kp_request *r, const kp_waiter *w);
void kp_waiter_free(kp_keeper *k, kp_waiter *w);
void kp_waiters_notify(kp_keeper *k, int64_t pid); /* something happened to this process */
uint64_t kp_waiter_tick(kp_keeper *k, kp_waiter *w, uint64_t now);

/* treekill.c */
void kp_job_kill(kp_keeper *k, kp_job *job, uint64_t grace_ms);
uint64_t kp_kill_tick(kp_keeper *k, kp_job *job, uint64_t now); /* 0: nothing to do */
ssize_t kp_job_signal_tree(kp_keeper *k, const kp_job *job, int signo);
void kp_kill_everything(kp_keeper *k);

/* session.c */
int kp_session_serve(kp_keeper *k, kp_request *r);
void kp_session_idle(kp_keeper *k, kp_session *s);   /* released: next waiter, or drain */
void kp_session_detach(kp_keeper *k, kp_session *s); /* its name is free for a new shell */
void kp_session_free(kp_keeper *k, kp_session *s);
