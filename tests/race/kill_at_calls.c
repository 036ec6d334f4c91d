/* kill_at_calls.c: kills the keeper, the sweeper or the owner at each system call of the owner.
 *
 *   kill_at_calls [STRIDE]     every STRIDEth call (default 1)
 *
 * The owner is this program in another role: it opens a sandbox, runs a command, and destroys
 * the sandbox. This program traces it (ptrace), stops it before its nth system call, kills the
 * victim that exists by then, lets the sweeper of a killed keeper end, and detaches; n grows by
 * STRIDE until the owner ends before its nth call. kill_matrix.c does the same at random
 * moments, and hits a window of two system calls once in thousands of kills; here each window
 * is hit.
 *
 * An owner that is not the victim must end by itself; each of its calls must succeed or report
 * that the sandbox ended (CSN_GONE, CSN_UNAVAILABLE or CSN_IO). A detached sandbox that
 * outlives its owner must be in the list, and is destroyed. Then no process, mount, control
 * group, record or name may be left. Speaks TAP. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "caisson/caisson.h"
#include "child.h"
#include "leftover.h"
#include "support/support.h"

#define CALLS_MAX 20000 /* an owner makes far fewer */
#define SWEEP_MS  30    /* a sweeper that has its keeper's pidfd ends much sooner */
#define END_MS    60000 /* an owner that takes longer hangs */

#define FAILURES_MAX 5 /* of one kind; then it stops */
#define SWEEPER_NAME "caisson-sweeper"

typedef enum victim { KEEPER, SWEEPER, OWNER } victim;

typedef struct kind {
    const char *name, *backend;
    bool detached;
    victim victim;
} kind;

static const kind kinds[] = {
    {"jail, keeper", "jail", false, KEEPER},
    {"detached jail, keeper", "jail", true, KEEPER},
    {"local, keeper", "local", false, KEEPER},
    {"detached local, keeper", "local", true, KEEPER},
    {"detached jail, sweeper", "jail", true, SWEEPER},
    {"jail, owner", "jail", false, OWNER},
    {"detached jail, owner", "jail", true, OWNER},
    {"detached local, owner", "local", true, OWNER},
};

static char *top, *run_dir, *state_dir;
static char self[4096];
static leftover_base base;

/* ---- the owner ---- */

static int unexpected;

static void expect(csn_status st, csn_error *err, const char *what)
{
    if (st < 0 && st != CSN_UNAVAILABLE && st != CSN_GONE && st != CSN_IO) {
        printf("# %s: %s: %s\n", what, csn_status_name(st), csn_error_message(err));
        unexpected = 3;
    }
    csn_error_free(err);
}

/* argv: --owner BACKEND DETACHED WORKSPACE */
static int owner(char **argv)
{
    const char *quick[] = {"/bin/true", NULL};
    csn_config config = {.size = sizeof(config),
                         .flags = argv[3][0] == '1' ? CSN_OPEN_DETACHED : 0,
                         .backend = argv[2],
                         .name = argv[3][0] == '1' ? "killed" : NULL,
                         .workspace = argv[4]};
    csn_sandbox *sb = NULL;
    csn_exec_result *r = NULL;
    csn_error *err = NULL;

    csn_status st = csn_open(&config, &sb, &err);
    expect(st, err, "open");
    if (st < 0)
        return unexpected;
    err = NULL;
    expect(csn_exec(sb, quick, NULL, &r, &err), err, "exec");
    csn_exec_result_free(r);
    err = NULL;
    expect(csn_destroy(sb, &err), err, "destroy");
    csn_close(sb);
    return unexpected;
}

static pid_t start_owner(const kind *k, char *ws)
{
    char *argv[] = {self, "--owner", (char *)(uintptr_t)k->backend, k->detached ? "1" : "0",
                    ws,   NULL};
    pid_t pid = fork();

    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
            _exit(126);
        execv(self, argv);
        _exit(127);
    }
    return pid;
}

/* ---- the kill ---- */

/* Waits for the tracee alone; others are reaped by leftover_no_children. True: it is stopped.
 */
static bool next_stop(pid_t pid, int *ret_status)
{
    return waitpid(pid, ret_status, __WALL) == pid && WIFSTOPPED(*ret_status);
}

/* Lets the owner run to its next system call (entry or exit). */
static bool step(pid_t pid, int *ret_status)
{
    int sig = 0;

    do {
        if (ptrace(PTRACE_SYSCALL, pid, NULL, (void *)(intptr_t)sig) < 0)
            return false;
        if (!next_stop(pid, ret_status))
            return false;
        sig = WSTOPSIG(*ret_status) == SIGTRAP ? 0 : WSTOPSIG(*ret_status);
    } while (WSTOPSIG(*ret_status) != (SIGTRAP | 0x80));
    return true;
}

static bool kill_child(pid_t pid)
{
    if (pid == 0 || kill(pid, SIGKILL) < 0)
        return false;
    while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
        ;
    return true;
}

/* A sweeper that knows its keeper ends soon after it; one that does not waits for the owner. */
static void let_sweeper_end(pid_t owner_pid)
{
    pid_t sweeper;

    for (unsigned i = 0; i < SWEEP_MS && (sweeper = leftover_child(owner_pid, "")) != 0; i++)
        if (waitpid(sweeper, NULL, WNOHANG | __WALL) == 0)
            csn_child_nap(1);
}

/* True: there was a victim, and it is dead. */
static bool kill_victim(victim v, pid_t owner_pid)
{
    pid_t keeper = leftover_child(owner_pid, SWEEPER_NAME);

    if (v == OWNER)
        return keeper != 0 && kill(owner_pid, SIGKILL) == 0;
    if (v == SWEEPER)
        return kill_child(leftover_child_named(SWEEPER_NAME));
    if (!kill_child(keeper))
        return false;
    let_sweeper_end(owner_pid);
    return true;
}

/* True: the owner ended as it must: by itself, or by the kill. */
static bool await_owner(pid_t pid, int status, bool by_kill)
{
    for (int64_t until = csn_child_now_ms() + END_MS; csn_child_now_ms() < until;) {
        if (WIFEXITED(status))
            return !by_kill && WEXITSTATUS(status) == 0;
        if (WIFSIGNALED(status))
            return by_kill && WTERMSIG(status) == SIGKILL;
        if (waitpid(pid, &status, WNOHANG | __WALL) == 0)
            csn_child_nap(1);
    }
    printf("# the owner hangs\n");
    kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, __WALL);
    return false;
}

typedef enum outcome { NO_VICTIM, KILLED, ENDED, FAILED } outcome;

/* Stops the owner before its nth system call, and kills the victim there. */
static outcome one_point(const kind *k, char *ws, unsigned nth)
{
    const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL;
    int status = 0;
    pid_t pid = start_owner(k, ws);
    bool stopped = next_stop(pid, &status) &&
                   ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(intptr_t)options) == 0;

    for (unsigned i = 0; stopped && i < 2 * nth - 1; i++) /* the stops of entries and exits */
        stopped = step(pid, &status);
    bool killed = stopped && kill_victim(k->victim, pid), itself = killed && k->victim == OWNER;
    if (stopped && !itself && ptrace(PTRACE_DETACH, pid, NULL, NULL) < 0)
        return FAILED;
    if (!await_owner(pid, status, itself))
        return FAILED;
    return !stopped ? ENDED : killed ? KILLED : NO_VICTIM;
}

/* ---- what is left ---- */

/* Destroys the sandboxes that outlived their owner. */
static bool destroy_listed(void)
{
    csn_sandbox_list *l = NULL;
    bool good = csn_sandboxes(&l, NULL) == CSN_OK;

    for (size_t i = 0; good && i < l->count; i++) {
        csn_error *err = NULL;
        good = csn_destroy_id(l->items[i].id, &err) == CSN_OK;
        if (!good)
            printf("# destroy %s: %s\n", l->items[i].id, csn_error_message(err));
        csn_error_free(err);
    }
    csn_sandbox_list_free(l);
    return good;
}

static bool children_end(void)
{
    for (int64_t until = csn_child_now_ms() + END_MS; csn_child_now_ms() < until;) {
        if (leftover_no_children())
            return true;
        csn_child_nap(1);
    }
    csn_test_print_children();
    csn_test_kill_children();
    return false;
}

static bool nothing_is_left(bool outlives)
{
    csn_sandbox_list *l = NULL;
    csn_error *err = NULL;
    bool good = (!outlives || destroy_listed()) && children_end();

    /* What its creator could not remove goes with the next list. */
    csn_status st = csn_sandboxes(&l, &err);
    if (st < 0 || l->count > 0)
        printf("# list: %s\n", st < 0 ? csn_error_message(err) : l->items[0].id);
    good &= st == CSN_OK && l->count == 0;
    csn_error_free(err);
    csn_sandbox_list_free(l);
    return good && leftover_mounts(&base) == 0 && leftover_directories(&base) == 0;
}

static bool run_kind(const kind *k, unsigned stride)
{
    unsigned kills = 0, failures = 0, nth = 1;
    outcome o = NO_VICTIM;

    for (; o != ENDED && nth < CALLS_MAX && failures < FAILURES_MAX; nth += stride) {
        char *ws = csn_test_join(top, "ws");
        csn_test_mkdir(ws);
        o = one_point(k, ws, nth);
        bool clean = nothing_is_left(k->victim == OWNER && k->detached);
        kills += o == KILLED;
        failures += o == FAILED || !clean;
        if (o == FAILED || !clean)
            printf("# %s, killed at call %u: %s\n", k->name, nth,
                   clean ? "the owner failed" : "something is left");
        csn_test_remove(ws);
        free(ws);
    }
    printf("# %s: %u kills in %u calls\n", k->name, kills, nth);
    return failures == 0 && kills > 0 && o == ENDED && leftover_groups(&base) == 0;
}

/* ---- the program ---- */

int main(int argc, char **argv)
{
    unsigned stride = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    const size_t count = sizeof(kinds) / sizeof(kinds[0]);
    bool good = true;

    if (argc == 5 && strcmp(argv[1], "--owner") == 0)
        return owner(argv);
    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
        return 99;
    setvbuf(stdout, NULL, _IOLBF, 0);
    csn_child_adopt();
    top = leftover_make_place(&run_dir, &state_dir);
    leftover_note(&base, top, run_dir, state_dir);
    for (size_t i = 0; i < count; i++) {
        bool ok = run_kind(&kinds[i], stride ? stride : 1);
        printf("%sok %zu - %s: may be killed at any call\n", ok ? "" : "not ", i + 1,
               kinds[i].name);
        good &= ok;
    }
    printf("1..%zu\n", count);
    leftover_release(&base);
    csn_test_remove(top);
    free(top);
    free(run_dir);
    free(state_dir);
    return good ? 0 : 1;
}
