/* cow_kill.c: kills the process that commits, snapshots, rolls back or forks a copy-on-write
 * workspace, before each of its system calls.
 *
 *   cow_kill [user] [POINTS]     of each verb (default 2), spread over its system calls
 *
 * For each point a detached sandbox with changes is made. This program in another role connects
 * to it, stops, and calls the verb; it is traced from there (ptrace) and killed before its nth
 * system call. Then another process must find the sandbox usable: commands run and see the
 * files from before the verb or from after it, on the host as well as inside; a snapshot or
 * fork that is listed is whole; and the verb succeeds when it is repeated. After the sandbox is
 * destroyed no process, mount, layer, journal or temporary file may be left. `merge` is a
 * snapshot that merges a long stack. Speaks TAP. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "caisson/caisson.h"
#include "child.h"
#include "leftover.h"
#include "support/support.h"

#define POINTS       2
#define END_MS       60000
#define FAILURES_MAX 5
#define STACK        23 /* layers; with the one of a fork, the next snapshot merges them */
#define NOBODY       65534

/* What is in the files, and in those of the host. */
#define AT_START "changed=old gone=old dir/in=old new=- made/in=- "
#define CHANGED  "changed=one gone=- dir/in=old new=one made/in=one "
#define LATER    "changed=two gone=- dir/in=two new=two made/in=- "

static const char *const paths[] = {"changed", "gone", "dir/in", "new", "made/in"};
#define PATHS (sizeof(paths) / sizeof(paths[0]))

static char *top, *run_dir, *state_dir, *ws;
static char self[4096];
static leftover_base base;
static csn_sandbox *parent; /* with a long stack; NULL: not for this verb */
static bool point_failed;
static unsigned turn;

static bool check(csn_status st, csn_error **err, const char *what)
{
    if (st < 0)
        printf("# %s: %s: %s\n", what, csn_status_name(st), csn_error_message(*err));
    point_failed |= st < 0;
    csn_error_free(*err);
    *err = NULL;
    return st == CSN_OK;
}

static void expect(bool good, const char *what, const char *got)
{
    if (!good)
        printf("# %s: %s\n", what, got ? got : "nothing");
    point_failed |= !good;
}

/* ---- the files ---- */

static void fill_host(void)
{
    csn_test_remove(ws);
    csn_test_mkdir(ws);
    char *dir = csn_test_join(ws, "dir");
    csn_test_mkdir(dir);
    free(dir);
    for (size_t i = 0; i < 3; i++) {
        char *path = csn_test_join(ws, paths[i]);
        csn_test_put(path, "old", 3);
        free(path);
    }
}

static char *host_files(void)
{
    char *all = strdup("");

    for (size_t i = 0; i < PATHS; i++) {
        char *path = csn_test_join(ws, paths[i]), *text = csn_test_get(path, NULL);
        char *more = csn_test_format("%s%s=%s ", all, paths[i], text ? text : "-");
        free(path);
        free(text);
        free(all);
        all = more;
    }
    return all;
}

static char *run(csn_sandbox *sb, const char *script)
{
    csn_exec_result *r = NULL;
    csn_error *err = NULL;
    char *out = NULL;

    if (check(csn_sh(sb, script, NULL, &r, &err), &err, "sh")) {
        expect(!r->failed, "a command failed", r->err.data);
        out = strdup(r->out.data);
    }
    csn_exec_result_free(r);
    return out;
}

static void change(csn_sandbox *sb, bool later)
{
    free(run(sb, later
                     ? "for f in changed dir/in new; do printf two >$f; done; rm -fr gone made"
                     : "mkdir -p made; for f in changed new made/in; do printf one >$f; done; "
                       "rm -f gone"));
}

static void files_are(csn_sandbox *sb, const char *one, const char *other, const char *what)
{
    char *now = run(sb, "for f in changed gone dir/in new made/in; do "
                        "printf '%s=%s ' $f \"$(cat $f 2>/dev/null || printf -- -)\"; done");

    expect(now && (strcmp(now, one) == 0 || (other && strcmp(now, other) == 0)), what, now);
    free(now);
}

/* ---- the verbs ---- */

typedef struct verb {
    const char *name;
    bool later; /* there is a snapshot "first", and changes after it */
    csn_status (*act)(csn_sandbox *sb, csn_error **err);
    void (*check)(csn_sandbox *sb);
} verb;

static csn_status act_commit(csn_sandbox *sb, csn_error **err)
{
    csn_commit_result *r = NULL;
    csn_status st = csn_commit(sb, NULL, &r, err);

    csn_commit_result_free(r);
    return st;
}

static csn_status act_snapshot(csn_sandbox *sb, csn_error **err)
{
    csn_snapshot_result *r = NULL;
    csn_status st = csn_snapshot_as(sb, "taken", &r, err);

    csn_snapshot_result_free(r);
    return st;
}

static csn_status act_rollback(csn_sandbox *sb, csn_error **err)
{
    return csn_rollback(sb, "first", err);
}

static csn_status act_fork(csn_sandbox *sb, csn_error **err)
{
    csn_sandbox *fork = NULL;
    csn_status st = csn_fork(sb, "forked", &fork, err);

    csn_close(fork);
    return st;
}

/* The next command on the directory recovers it, whatever kind it is. */
static void recover_by(csn_sandbox *sb)
{
    const char *backends[] = {"jail", "local"};
    csn_config config = {
        .size = sizeof(config), .backend = backends[turn % 2], .workspace = ws};
    csn_sandbox *plain = NULL;
    csn_diff_result *diff = NULL;
    csn_error *err = NULL;

    if (turn % 3 == 0) {
        check(csn_diff(sb, NULL, &diff, &err), &err, "diff");
        csn_diff_result_free(diff);
    } else if (check(csn_open(&config, &plain, &err), &err, "open")) {
        csn_close(plain);
    }
}

static void no_temporary_files(const char *dir)
{
    DIR *d = opendir(dir);

    for (struct dirent *e; d && (e = readdir(d));)
        expect(strncmp(e->d_name, ".csn-", 5) != 0, "a temporary file is left", e->d_name);
    if (d)
        closedir(d);
}

static void check_commit(csn_sandbox *sb)
{
    csn_error *err = NULL;

    files_are(sb, CHANGED, NULL, "inside after a killed commit");
    char *host = host_files();
    expect(strcmp(host, AT_START) == 0 || strcmp(host, CHANGED) == 0, "a part was committed",
           host);
    free(host);
    no_temporary_files(ws);
    check(act_commit(sb, &err), &err, "second commit");
    host = host_files();
    expect(strcmp(host, CHANGED) == 0, "the second commit wrote", host);
    free(host);
    change(sb, true);
    check(act_commit(sb, &err), &err, "commit of later changes");
    host = host_files();
    expect(strcmp(host, LATER) == 0, "the last commit wrote", host);
    free(host);
    no_temporary_files(ws);
}

static bool has_snapshot(csn_sandbox *sb, const char *name)
{
    csn_snapshot_list *l = NULL;
    csn_error *err = NULL;
    bool found = false;

    if (check(csn_snapshots(sb, &l, &err), &err, "snapshots"))
        for (size_t i = 0; i < l->count; i++)
            found |= strcmp(l->items[i].name, name) == 0;
    csn_snapshot_list_free(l);
    return found;
}

/* Commands after the kill must not change what the snapshot has. */
static void check_snapshot(csn_sandbox *sb)
{
    csn_error *err = NULL;

    files_are(sb, CHANGED, NULL, "inside after a killed snapshot");
    if (!has_snapshot(sb, "taken"))
        check(act_snapshot(sb, &err), &err, "second snapshot");
    change(sb, true);
    files_are(sb, LATER, NULL, "later changes");
    if (check(csn_rollback(sb, "taken", &err), &err, "rollback"))
        files_are(sb, CHANGED, NULL, "the snapshot");
}

static void check_rollback(csn_sandbox *sb)
{
    csn_error *err = NULL;

    files_are(sb, LATER, CHANGED, "inside after a killed rollback");
    change(sb, true);
    files_are(sb, LATER, NULL, "changes after a killed rollback");
    if (check(act_rollback(sb, &err), &err, "second rollback"))
        files_are(sb, CHANGED, NULL, "second rollback");
}

static void check_fork(csn_sandbox *sb)
{
    csn_sandbox *fork = NULL;
    csn_error *err = NULL;

    files_are(sb, CHANGED, NULL, "inside after a killed fork");
    if (csn_connect("forked", &fork, NULL) < 0 &&
        check(csn_fork(sb, "again", &fork, &err), &err, "second fork"))
        change(sb, true);
    if (fork) {
        files_are(fork, CHANGED, NULL, "the fork");
        check(csn_destroy(fork, &err), &err, "destroy the fork");
    }
    csn_close(fork);
    change(sb, true);
    files_are(sb, LATER, NULL, "the forked sandbox");
}

static const verb verbs[] = {
    {"commit", false, act_commit, check_commit},
    {"snapshot", false, act_snapshot, check_snapshot},
    {"rollback", true, act_rollback, check_rollback},
    {"fork", false, act_fork, check_fork},
    {"merge", false, act_snapshot, check_snapshot},
};
#define VERBS (sizeof(verbs) / sizeof(verbs[0]))

/* ---- the process that is killed ---- */

/* argv: --act VERB ID */
static int actor(char **argv)
{
    csn_sandbox *sb = NULL;
    csn_error *err = NULL;
    csn_status st = csn_connect(argv[3], &sb, &err);

    (void)raise(SIGSTOP); /* its calls are counted from here */
    for (size_t i = 0; st == CSN_OK && i < VERBS; i++)
        if (strcmp(argv[2], verbs[i].name) == 0)
            st = verbs[i].act(sb, &err);
    if (st < 0)
        printf("# %s: %s\n", argv[2], csn_error_message(err));
    csn_close(sb);
    return st < 0 ? 3 : 0;
}

static pid_t start_actor(const verb *v, const char *id)
{
    char *argv[] = {self, "--act", (char *)(uintptr_t)v->name, (char *)(uintptr_t)id, NULL};
    pid_t pid = fork();

    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
            _exit(126);
        execv(self, argv);
        _exit(127);
    }
    return pid;
}

/* Lets it run to its next system call, entry or exit, or to its own SIGSTOP. */
static bool step(pid_t pid, bool calls, int *status)
{
    int sig = 0;

    for (;;) {
        if (ptrace(calls ? PTRACE_SYSCALL : PTRACE_CONT, pid, NULL, (void *)(intptr_t)sig) <
                0 ||
            waitpid(pid, status, __WALL) != pid || !WIFSTOPPED(*status))
            return false;
        sig = WSTOPSIG(*status);
        if (sig == (calls ? (SIGTRAP | 0x80) : SIGSTOP))
            return true;
        sig = sig == SIGTRAP ? 0 : sig;
    }
}

/* Kills the actor before its nth call after the mark; nth 0: never. Returns how many calls it
 * made until then. */
static unsigned act(const verb *v, const char *id, unsigned nth)
{
    const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL;
    pid_t pid = start_actor(v, id);
    unsigned calls = 0;
    int status = 0;
    bool stopped = waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status) &&
                   ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(intptr_t)options) == 0 &&
                   step(pid, false, &status);

    while (stopped && (nth == 0 || calls < nth) && (stopped = step(pid, true, &status))) {
        calls++;
        if (calls != nth)
            stopped = step(pid, true, &status);
    }
    if (stopped)
        kill(pid, SIGKILL);
    while (stopped && waitpid(pid, &status, __WALL) < 0 && errno == EINTR)
        ;
    expect(stopped ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0,
           "the verb failed", v->name);
    return calls;
}

/* ---- one point ---- */

static csn_sandbox *open_sandbox(void)
{
    csn_config config = {.size = sizeof(config),
                         .flags = CSN_OPEN_COW | CSN_OPEN_DETACHED,
                         .backend = "jail",
                         .workspace = ws};
    csn_sandbox *sb = NULL;
    csn_error *err = NULL;

    check(parent ? csn_fork(parent, NULL, &sb, &err) : csn_open(&config, &sb, &err), &err,
          "open");
    return sb;
}

static bool children_end(const char *except)
{
    for (int64_t until = csn_child_now_ms() + END_MS; csn_child_now_ms() < until;) {
        if (leftover_no_children() || (except && leftover_processes(except) > 0))
            return true;
        csn_child_nap(1);
    }
    csn_test_print_children();
    return false;
}

/* Layers, in all trees. */
static size_t count_layers(void)
{
    char *dir = csn_test_join(state_dir, "layers");
    DIR *trees = opendir(dir);
    size_t n = 0;

    for (struct dirent *t; trees && (t = readdir(trees));) {
        char *path = csn_test_format("%s/%s", dir, t->d_name);
        DIR *d = t->d_name[0] == '.' ? NULL : opendir(path);
        for (struct dirent *e; d && (e = readdir(d));)
            n += strlen(e->d_name) == 4 && strcmp(e->d_name, "base") != 0;
        if (d)
            closedir(d);
        free(path);
    }
    if (trees)
        closedir(trees);
    free(dir);
    return n;
}

static void no_journals(void)
{
    char *dir = csn_test_join(state_dir, "commits");
    DIR *stores = opendir(dir);

    for (struct dirent *s; stores && (s = readdir(stores));) {
        char *path = csn_test_format("%s/%s", dir, s->d_name);
        DIR *d = s->d_name[0] == '.' ? NULL : opendir(path);
        for (struct dirent *e; d && (e = readdir(d));)
            expect(e->d_name[0] == '.', "a journal is left", e->d_name);
        if (d)
            closedir(d);
        free(path);
    }
    if (stores)
        closedir(stores);
    free(dir);
}

static void end_all(const char *id)
{
    csn_sandbox_list *l = NULL;
    csn_error *err = NULL;

    check(csn_destroy_id(id, &err), &err, "destroy");
    if (check(csn_sandboxes(&l, &err), &err, "list"))
        for (size_t i = 0; i < l->count; i++)
            if (!parent || strcmp(l->items[i].id, csn_id(parent)) != 0)
                check(csn_destroy_id(l->items[i].id, &err), &err, "destroy");
    csn_sandbox_list_free(l);
    if (!parent)
        expect(children_end(NULL), "a process", "is left");
}

static unsigned one_point(const verb *v, unsigned nth)
{
    size_t layers = parent ? count_layers() : 0;
    csn_snapshot_result *r = NULL;
    csn_error *err = NULL;

    turn++;
    if (!parent)
        fill_host();
    csn_sandbox *sb = open_sandbox();
    if (!sb)
        return 0;
    char *id = strdup(csn_id(sb));
    change(sb, false);
    if (v->later && check(csn_snapshot_as(sb, "first", &r, &err), &err, "snapshot"))
        change(sb, true);
    csn_snapshot_result_free(r);
    csn_close(sb);
    unsigned calls = act(v, id, nth);
    sb = NULL;
    if (check(csn_connect(id, &sb, &err), &err, "connect")) {
        if (v->act == act_commit)
            recover_by(sb);
        v->check(sb);
    }
    csn_close(sb);
    end_all(id);
    no_journals();
    expect(count_layers() == layers, "layers are left", v->name);
    free(id);
    return calls;
}

/* A sandbox whose stack is almost as long as it may be. */
static void make_parent(void)
{
    csn_snapshot_result *r = NULL;
    csn_error *err = NULL;

    fill_host();
    csn_sandbox *sb = open_sandbox();
    for (unsigned i = 0; sb && i < STACK; i++) {
        free(run(sb, "echo >>more"));
        check(csn_snapshot(sb, &r, &err), &err, "snapshot");
        csn_snapshot_result_free(r);
        r = NULL;
    }
    parent = sb;
    if (sb)
        (void)one_point(&verbs[VERBS - 1],
                        0); /* its layers are shared with forks from now on */
}

static void end_parent(void)
{
    csn_error *err = NULL;

    if (!parent)
        return;
    check(csn_destroy(parent, &err), &err, "destroy");
    csn_close(parent);
    parent = NULL;
    expect(children_end(NULL), "a process", "is left");
    expect(count_layers() == 0, "layers are left", "at the end");
}

static bool run_verb(const verb *v, unsigned points)
{
    unsigned failures = 0, kills = 0;

    point_failed = false;
    if (strcmp(v->name, "merge") == 0)
        make_parent();
    unsigned calls = one_point(v, 0);
    failures += point_failed;
    for (unsigned i = 0; i < points && calls > 0 && failures < FAILURES_MAX; i++) {
        /* One in each part, at random. */
        unsigned nth =
            1 + (unsigned)(((uint64_t)i * calls + (uint64_t)random() % calls) / points);
        point_failed = false;
        kills += one_point(v, nth) == nth;
        if (point_failed)
            printf("# %s, killed before call %u of %u\n", v->name, nth, calls);
        failures += point_failed;
    }
    point_failed = false;
    end_parent();
    expect(leftover_mounts(&base) + leftover_directories(&base) == 0, "mounts or directories",
           "are left");
    printf("# %s: %u kills in %u calls\n", v->name, kills, calls);
    return failures == 0 && !point_failed && kills > 0;
}

/* ---- the program ---- */

/* Becomes an ordinary user and starts again, so that /proc/self belongs to that user. */
static void become_user(char **argv)
{
    if (geteuid() != 0) {
        printf("1..0 # SKIP the caller is an ordinary user already\n");
        exit(0);
    }
    if (setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
        setresuid(NOBODY, NOBODY, NOBODY) == 0)
        execv("/proc/self/exe", argv);
    printf("1..0 # SKIP a user cannot reach the program\n");
    exit(0);
}

int main(int argc, char **argv)
{
    unsigned points = 0;
    bool good = true;

    if (argc == 4 && strcmp(argv[1], "--act") == 0)
        return actor(argv);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1 && strcmp(argv[1], "user") == 0)
        become_user(argv + 1);
    points = (unsigned)strtoul(argv[argc - 1], NULL, 10);
    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
        return 99;
    srandom((unsigned)csn_child_now_ms() ^ (unsigned)getpid());
    csn_child_adopt();
    top = leftover_make_place(&run_dir, &state_dir);
    leftover_note(&base, top, run_dir, state_dir);
    ws = csn_test_join(top, "ws");
    for (size_t i = 0; i < VERBS; i++) {
        bool ok = run_verb(&verbs[i], points ? points : POINTS);
        printf("%sok %zu - %s may be killed at any call\n", ok ? "" : "not ", i + 1,
               verbs[i].name);
        good &= ok;
    }
    printf("1..%zu\n", VERBS);
    leftover_release(&base);
    csn_test_remove(top);
    free(top);
    free(ws);
    free(run_dir);
    free(state_dir);
    return good ? 0 : 1;
}
