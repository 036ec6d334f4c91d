/* link.h: sends requests to the keeper and receives its answers, for src/runtime and the jail
 * backend. */
#pragma once
#include "keeper/protocol.h"
#include "os/pump.h"
#include "runtime/runtime.h"

#define CSN_KEEPER_SOCKET "sock" /* in the directory of a detached sandbox */

/* find_program.c. For tests, which are not installed next to the keeper: sets its path. Not
 * thread-safe. */
void csn_keeper_path_set(const char *path);
/* Finds a program of ours; *ret is malloc'd. */
csn_status csn_program_find(const char *name, char **ret, csn_error **err);
csn_status csn_keeper_find(char **ret, csn_error **err);

/* keeper_process.c. Starts the keeper's program with a socket connected to *ret_control; name
 * and id are its argv. listener: socket of a detached sandbox; -1: the program ends when this
 * process ends. */
csn_status csn_keeper_start_begin(csn_keeper_start *s, const char *name, const char *id,
                                  const csn_spawn_namespaces *ns, int listener,
                                  int *ret_control, csn_error **err);
int csn_keeper_start_finish(csn_keeper_start *s, pid_t *ret_pid, int *ret_pidfd,
                            enum csn_spawn_stage *ret_stage);
/* Sends the spec, which must be the first message to the program. 0 or -errno. */
int csn_keeper_send_spec(int control, const csn_keeper_spec *spec);
bool csn_runtime_keeper_is_dead(const csn_runtime *rt);
/* Kills the keeper with SIGKILL, since it may be stopped, and then its commands. */
void csn_runtime_kill_keeper(csn_runtime *rt);
/* Kills the commands of a dead keeper. In a pid namespace the kernel has done so. */
void csn_runtime_sweep_commands(const csn_runtime *rt);
void csn_runtime_sweep_tagged(const char *id);

/* link.c. Sends a request, after starting the keeper if it is not running, and returns the
 * channel for its replies. `msg` is the struct of the type (keeper/protocol.h) or NULL. The
 * caller keeps ownership of the descriptors. */
csn_status csn_link_ask(csn_runtime *rt, csn_msg_type type, const void *msg, const int *fds,
                        size_t nfds, int *ret_channel, csn_error **err);
/* The same without starting the keeper. */
csn_status csn_link_send(csn_runtime *rt, csn_msg_type type, const void *msg, const int *fds,
                         size_t nfds, int *ret_channel, csn_error **err);
/* Receives the next message on a channel, which may be ERROR; the caller releases it. A keeper
 * that sends nothing until the deadline (0: CSN_KEEPER_ANSWER_MS from now) is an error; it is
 * not killed. */
csn_status csn_link_answer(csn_runtime *rt, int channel, uint64_t deadline_ns, void *buf,
                           size_t size, csn_msg *ret, csn_error **err);
/* Sends one request without descriptors and receives one reply, which must be of type `want`
 * and is decoded into *reply (NULL: no fields). For an ERROR reply, returns CSN_OK and stores
 * its errno in *ret_errno; otherwise stores 0. */
csn_status csn_link_call(csn_runtime *rt, csn_msg_type type, const void *msg, csn_msg_type want,
                         void *reply, int *ret_errno, csn_error **err);
/* The same for a reply that may take up to wait_ms longer, carries descriptors, or borrows from
 * the message: *m uses buf; the caller releases it if *ret_errno is 0. */
csn_status csn_link_call_long(csn_runtime *rt, csn_msg_type type, const void *msg,
                              uint64_t wait_ms, csn_msg_type want, void *reply, void *buf,
                              size_t size, csn_msg *m, int *ret_errno, csn_error **err);
/* Checks that the keeper answers. */
csn_status csn_link_check(csn_runtime *rt, csn_error **err);
/* The time at which the keeper ends by itself, in ms since the epoch; 0: never. */
csn_status csn_link_expiry(csn_runtime *rt, int64_t *ret_ms, csn_error **err);
/* The error after the keeper hung up: CSN_GONE if its end was expected, else CSN_UNAVAILABLE.
 * If it is dead, kills the commands it left. */
csn_status csn_link_lost(csn_runtime *rt, csn_error **err);
/* Call after resolving a path in the keeper's mounts, with the result st. Returns st, or
 * csn_link_lost if the keeper ended meanwhile, which makes the result meaningless. */
csn_status csn_link_check_alive(csn_runtime *rt, csn_status st, csn_error **err);
/* Call when the keeper broke the protocol: kills it and all its commands. */
csn_status csn_link_hostile(csn_runtime *rt, const char *what, csn_error **err);

/* reconnect.c. Ends what a dead keeper has left: commands, gateway and control groups. */
void csn_runtime_end_rest(const char *id, const csn_keeper_record *r);
/* Gets the directories that the keeper of a sandbox without confinement holds. */
csn_status csn_runtime_ask_dirs(csn_runtime *rt, csn_error **err);
/* The error after csn_runtime_end_keeper has failed. */
csn_status csn_runtime_not_ended(const csn_runtime *rt, csn_error **err);

/* kill_wait.c. Call begin when KILL was sent, and next at each deadline that they return, until
 * the command has ended or next returns 0: then it was killed, with its keeper if that did not
 * run, or a process of it is stuck in the kernel. */
typedef struct csn_kill_wait {
    uint64_t end_ns, switches;
    bool answered; /* the keeper, after end_ns */
} csn_kill_wait;
uint64_t csn_kill_wait_begin(const csn_runtime *rt, csn_kill_wait *w);
uint64_t csn_kill_wait_next(csn_runtime *rt, csn_kill_wait *w);

/* environ.c: merges the sandbox's variables, those of the call, and PWD; each name occurs once.
 * `extra` and `pwd` may be NULL. The array is malloc'd; its strings borrow from the arguments
 * and from *ret_pwd. */
csn_status csn_runtime_environ_merge(const csn_runtime *rt, const char *const *extra,
                                     const char *pwd, const char ***ret, char **ret_pwd,
                                     csn_error **err);

/* exec.c, also used by session.c and process.c */
/* Working directory and environment of a command. */
typedef struct csn_runtime_command_env {
    int cwd_fd;
    char *cwd_path; /* resolved; NULL if unknown */
    char *pwd;
    const char **env;
} csn_runtime_command_env;

csn_status csn_runtime_command_env_make(csn_runtime *rt, const csn_exec_req *req,
                                        csn_runtime_command_env *ret, csn_error **err);
void csn_runtime_command_env_release(csn_runtime_command_env *s);
/* *ret: a file with all of the stdin that `req` gives to a background process. */
csn_status csn_runtime_process_input(const csn_exec_req *req, int *ret, csn_error **err);
/* The fields of SPAWN that foreground and background commands share. Add new options that reach
 * the child here. */
csn_spawn_msg csn_runtime_spawn_msg(const csn_runtime *rt, const csn_exec_req *req,
                                    const csn_runtime_command_env *set);
/* Records that a limit ended the command: `what` names it; peak 0: unknown. */
void csn_runtime_end_limit(csn_exec_end *end, uint32_t how, const char *what, uint64_t limit,
                           uint64_t peak);
/* Why it ended: CSN_END_TIMEOUT, `asked` (what our KILL stood for, if one was sent), or
 * CSN_END_EXITED, also if it ended before our KILL arrived. The result is the same whether the
 * keeper or this process notices the deadline first. */
uint32_t csn_runtime_end_how(const csn_exit_msg *b, uint32_t asked);
/* Fills how, exit_code, signal, message and usage from the keeper's EXIT. */
void csn_runtime_end_fill(const csn_runtime *rt, const csn_exit_msg *b, const char *argv0,
                          csn_exec_end *ret);
/* True: the message is a REFUSED, and was reported. A command gets a bounded number of them;
 * *count begins with 0. */
bool csn_runtime_take_refused(csn_runtime *rt, const csn_exec_req *req, const csn_msg *m,
                              uint32_t *count);
/* After CSN_PUMP_NOTICE. */
void csn_runtime_take_notice(csn_pump *p, const csn_exec_extra *extra);
/* After EXIT: delivers the rest of the output, waits up to CSN_DRAIN_MS for other processes
 * that hold the pipes, then passes the pipes to the keeper. */
void csn_runtime_drain(csn_runtime *rt, csn_pump *p);
/* Writes the message for a failed start ("cmd: command not found\n", or "Error: ...") and
 * returns the exit code. */
int csn_runtime_spawn_text(uint32_t stage, int errnum, const char *argv0, char *text,
                           size_t size);

/* session.c */
csn_status csn_runtime_session_exec(csn_runtime *rt, const csn_exec_req *req,
                                    const csn_exec_extra *extra, const csn_sink *sink,
                                    csn_exec_end *ret, csn_error **err);
