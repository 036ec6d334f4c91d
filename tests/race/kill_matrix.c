/* kill_matrix.c: kill -9 at random moments, and what is left afterwards.
 *
 *   kill_matrix [N [KIND]]     N points (default 60) over seven kinds, or of one: the owner of
 * an attached sandbox, the owner of a detached one, the keeper of each, `caisson run`
 * ($CAISSON); and the owner of a sandbox with limits that does nothing else, and `caisson run`
 * likewise
 *
 * The owner is this program in another role. It makes a jail, starts something in the
 * background, runs commands, writes a file and destroys the jail, again and again, until the
 * kill comes. Then no process, mount, control group or directory of it may be left, the file
 * must be one whole version of those written, and not older than the last one that was
 * acknowledged. A detached sandbox outlives its owner by design: it must be in the list, and
 * destroying it must leave nothing. The times from the kill to the last end are printed; a busy
 * machine may make them long, so only what never ends is a failure. The last two kinds are for
 * what exists for microseconds only: their turn is short, the moment is chosen to a
 * microsecond, there are more points of them, and every fourth kill is of the whole process
 * group. A kill in the middle of a file write leaves nothing either, where the file system has
 * files without a name (O_TMPFILE). One that replaces another has a name of its own for the
 * length of two system calls: a file that such a kill leaves is complete, and a few of those
 * are allowed (WINDOW_ONE_IN). Speaks TAP. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "caisson/caisson.h"
#include "child.h"
#include "leftover.h"
#include "support/support.h"

#define N_DEFAULT   60
#define FILE_SIZE   (256u * 1024u) /* large enough that a kill can hit the write */
#define NEVER_MS    60000
#define PROMISE_MS  1000
#define DENSER      3  /* times as many points of the short kinds */
#define SHORT_TURNS 20 /* to see how long one takes */
/* Points for one file that the window may leave, and one more. A turn has two windows of some
 * microseconds each and takes many milliseconds; a busy disk makes them longer. */
#define WINDOW_ONE_IN 500

enum { OWNER, OWNER_DETACHED, KEEPER, KEEPER_DETACHED, PROGRAM, LIMITS, PROGRAM_LIMITS, KINDS };

static const char *const kind_names[KINDS] = {
    "owner, attached", "owner, detached", "keeper, attached",   "keeper, detached",
    "caisson run",     "owner, limits",   "caisson run, limits"};

static char *top, *run_dir, *state_dir;
static char self[4096];
static leftover_base base;
static int64_t span_ms = 50;    /* how long one turn of an owner takes here */
static int64_t short_us = 5000; /* a short one, with the start of its process */
static int number;
static unsigned failed, over_promise, hits[KINDS], writes_lost, torn;
static unsigned temps_cut, temps_whole; /* temporary files of killed writers */
static int64_t slowest[KINDS],
    slowest_notice; /* of ends; of an owner whose keeper was killed */

/* ---- the owner ---- */

static volatile sig_atomic_t stop;
static int unexpected; /* the owner's exit status: a call failed as it must not */

static void on_term(int sig)
{
    (void)sig;
    stop = 1;
}

/* Only who expects its keeper to be killed may see a call fail, and only in these ways. */
static void expect(csn_status st, csn_error **err, const char *what, bool may_fail)
{
    bool told = st == CSN_UNAVAILABLE || st == CSN_GONE || st == CSN_IO;

    if (st < 0 && !(may_fail && told)) {
        printf("# %s: %s: %s\n", what, csn_status_name(st), csn_error_message(*err));
        unexpected = 3;
    }
    csn_error_free(*err);
    *err = NULL;
}

static void write_version(csn_sandbox *sb, uint64_t version, int ack, bool may_fail)
{
    static uint64_t content[FILE_SIZE / sizeof(uint64_t)];
    csn_error *err = NULL;

    for (size_t i = 0; i < FILE_SIZE / sizeof(uint64_t); i++)
        content[i] = version;
    csn_status st = csn_write(sb, "f", content, sizeof(content), NULL, NULL, &err);
    if (st == CSN_OK && write(ack, &version, sizeof(version)) != (ssize_t)sizeof(version))
        _exit(4);
    expect(st, &err, "write", may_fail);
}

static void one_turn(const csn_config *config, const char *token, uint64_t turn, int ack,
                     bool may_fail)
{
    const char *sleeper[] = {"sleep", token, NULL}, *quick[] = {"/bin/true", NULL};
    char script[128];
    csn_sandbox *sb = NULL;
    csn_process *p = NULL;
    csn_error *err = NULL;
    csn_exec_result *r = NULL;

    csn_status st = csn_open(config, &sb, &err);
    expect(st, &err, "open", may_fail);
    if (st < 0)
        return;
    expect(csn_start(sb, sleeper, NULL, &p, &err), &err, "start", may_fail);
    expect(csn_exec(sb, quick, NULL, &r, &err), &err, "exec", may_fail);
    csn_exec_result_free(r);
    r = NULL;
    write_version(sb, 2 * turn, ack, may_fail);
    snprintf(script, sizeof(script), "setsid sleep %s >/dev/null 2>&1 & exit 0", token);
    expect(csn_sh(sb, script, NULL, &r, &err), &err, "sh", may_fail);
    csn_exec_result_free(r);
    write_version(sb, 2 * turn + 1, ack, may_fail);
    csn_process_free(p);
    expect(csn_destroy(sb, &err), &err, "destroy", may_fail);
    csn_close(sb);
}

/* Made, used and ended: as much of its time as can be is in what makes and removes groups. */
static void short_turn(const csn_config *config)
{
    const char *quick[] = {"/bin/true", NULL};
    csn_sandbox *sb = NULL;
    csn_error *err = NULL;
    csn_exec_result *r = NULL;

    csn_status st = csn_open(config, &sb, &err);
    expect(st, &err, "open", false);
    if (st < 0)
        return;
    expect(csn_exec(sb, quick, NULL, &r, &err), &err, "exec", false);
    csn_exec_result_free(r);
    expect(csn_destroy(sb, &err), &err, "destroy", false);
    csn_close(sb);
}

/* argv: --owner KIND TOKEN WORKSPACE TURNS; descriptor 3 takes the acknowledgements. */
static int owner(char **argv)
{
    int kind = (int)strtol(argv[2], NULL, 10);
    uint64_t turns = strtoull(argv[5], NULL, 10);
    bool detached = kind == OWNER_DETACHED || kind == KEEPER_DETACHED;
    csn_config config = {.size = sizeof(config),
                         .flags = detached ? CSN_OPEN_DETACHED : 0,
                         .backend = "jail",
                         .workspace = argv[4]};

    signal(SIGTERM, on_term);
    config.pids_max = 50;
    config.memory_max = 64u << 20;
    for (uint64_t i = 1; kind == LIMITS && i <= turns && unexpected == 0; i++)
        short_turn(&config);
    config.memory_max = 0;
    for (uint64_t i = 1; kind != LIMITS && i <= turns && !stop; i++) {
        config.pids_max = i % 2 ? 64 : 0; /* with a control group and without */
        one_turn(&config, argv[3], i, 3, kind == KEEPER || kind == KEEPER_DETACHED);
        stop |= unexpected != 0;
    }
    return unexpected;
}

/* By fork and exec: the child has none of our state, and its command line says what it is. */
static pid_t start(char *const argv[], int ack)
{
    pid_t pid = fork();

    if (pid == 0) {
        if ((ack >= 0 && dup2(ack, 3) < 0) || setpgid(0, 0) < 0)
            _exit(126);
        execv(argv[0], argv);
        _exit(127);
    }
    if (pid > 0)
        (void)setpgid(pid, pid); /* whoever is first: there is a group to kill */
    return pid;
}

static pid_t start_owner(int kind, char *token, char *ws, const char *turns, int ack)
{
    char what[16];

    snprintf(what, sizeof(what), "%d", kind);
    char *argv[] = {self, "--owner", what, token, ws, (char *)(uintptr_t)turns, NULL};
    return start(argv, ack);
}

/* A tree of the usual kinds: a child, one in a session of its own, an orphan. */
static pid_t start_program(char *token, char *ws, bool group)
{
    char script[320];
    char *program = getenv("CAISSON");

    snprintf(script, sizeof(script),
             "sleep %s & setsid sleep %s & (sleep %s &) ; exec sleep %s", token, token, token,
             token);
    char *plain[] = {program, "run", "--workspace", ws, "--", "/bin/sh", "-c", script, NULL};
    char *limited[] = {program, "run",     "--pids", "64",   "--workspace", ws,
                       "--",    "/bin/sh", "-c",     script, NULL};
    return start(group ? limited : plain, -1);
}

static pid_t start_limited(char *ws)
{
    char *argv[] = {getenv("CAISSON"), "run", "--memory", "64m",  "--pids", "50",
                    "--workspace",     ws,    "--",       "true", NULL};

    return start(argv, -1);
}

/* ---- looking ---- */

/* Destroys what is in the list: the survivors of a killed owner. */
static void destroy_listed(void)
{
    csn_sandbox_list *l = NULL;
    csn_error *err = NULL;

    if (csn_sandboxes(&l, &err) < 0) {
        printf("# list: %s\n", csn_error_message(err));
        csn_error_free(err);
        failed++;
        return;
    }
    for (size_t i = 0; i < l->count; i++) {
        csn_sandbox *sb = NULL;
        csn_status st = csn_connect(l->items[i].id, &sb, &err);
        if (st == CSN_OK)
            st = csn_destroy(sb, &err);
        csn_close(sb);
        if (st < 0 && st != CSN_GONE && st != CSN_NOT_FOUND) {
            printf("# destroy %s: %s\n", l->items[i].id, csn_error_message(err));
            failed++;
        }
        csn_error_free(err);
        err = NULL;
    }
    csn_sandbox_list_free(l);
}

/* How long until nobody is left; -1: never. Keepers and sweepers are children of ours by now,
 * so having no child means that they have ended, whatever they are called. */
static int64_t until_gone(const char *token)
{
    int64_t from = csn_child_now_ms();

    while (!leftover_no_children() || leftover_processes(token) != 0) {
        if (csn_child_now_ms() - from > NEVER_MS)
            return -1;
        csn_child_nap(2);
    }
    return csn_child_now_ms() - from;
}

/* Temporary files in the workspace. */
static void check_temps(const char *ws, size_t point, int kind)
{
    DIR *d = opendir(ws);
    struct dirent *e;
    struct stat st;

    while (d && (e = readdir(d))) {
        if (strncmp(e->d_name, ".csn-", 5) != 0 || fstatat(dirfd(d), e->d_name, &st, 0) < 0)
            continue;
        bool whole = st.st_size == FILE_SIZE;
        printf("# point %zu (%s): a temporary file, %s\n", point, kind_names[kind],
               whole ? "whole" : "cut off");
        temps_whole += whole;
        temps_cut += !whole;
    }
    if (d)
        closedir(d);
}

/* A writer that was killed may have published a version that it could not acknowledge any more:
 * newer than the last acknowledged one is fine, older is a lost write. */
static void check_file(const char *ws, int ack, size_t point)
{
    uint64_t last = 0, got;
    size_t len = 0;
    char *path = csn_test_join(ws, "f");
    uint64_t *content = (uint64_t *)(void *)csn_test_get(path, &len);

    while (read(ack, &got, sizeof(got)) == (ssize_t)sizeof(got))
        last = got;
    bool whole = !content || len == FILE_SIZE;
    for (size_t i = 1; content && whole && i < len / sizeof(*content); i++)
        whole = content[i] == content[0];
    if (!whole) {
        printf("# point %zu: the file is torn\n", point);
        torn++;
    } else if (last > 0 && (!content || content[0] < last)) {
        printf("# point %zu: version %llu was acknowledged, %llu is there\n", point,
               (unsigned long long)last, content ? (unsigned long long)content[0] : 0ull);
        writes_lost++;
    }
    free(content);
    free(path);
}

/* What a maker left that was killed half-way is removed by whoever lists next. */
static void check_rest(size_t point, int kind)
{
    csn_sandbox_list *l = NULL;

    if (csn_sandboxes(&l, NULL) == CSN_OK)
        csn_sandbox_list_free(l);
    size_t n = leftover_mounts(&base) + leftover_directories(&base) + leftover_groups(&base);

    if (n > 0) {
        printf("# point %zu (%s): %zu things are left\n", point, kind_names[kind], n);
        failed++;
    }
}

/* ---- one point ---- */

/* In the kinds that do not kill it, an owner ends by itself, and tells by its status whether a
 * call failed in a way that it must not. */
static bool owner_ended_well(pid_t pid)
{
    int status = 0;

    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Kills a keeper as soon as one is there; the owner then ends its turn and itself. */
static void kill_keeper(pid_t owner_pid, int kind, size_t point)
{
    pid_t keeper = 0;

    for (int i = 0; i < 2000 && keeper == 0; i++) {
        keeper = leftover_child(owner_pid, "caisson-sweeper");
        if (keeper == 0)
            csn_child_nap(1);
    }
    if (keeper > 0 && kill(keeper, SIGKILL) == 0)
        hits[kind]++;
    kill(owner_pid, SIGTERM);
    int64_t from = csn_child_now_ms();
    bool well = owner_ended_well(owner_pid);
    int64_t took = csn_child_now_ms() - from;
    slowest_notice = took > slowest_notice ? took : slowest_notice;
    over_promise += took > PROMISE_MS;
    if (!well) {
        printf("# point %zu (%s): the owner failed\n", point, kind_names[kind]);
        failed++;
    }
}

/* An owner loops for ever and `caisson run` sleeps for a day: whoever is already gone has
 * failed, but for a short command. */
static void kill_main(pid_t pid, int kind, size_t point)
{
    int status = 0;
    bool group = kind >= LIMITS && point % 4 == 0;

    kill(group ? -pid : pid, SIGKILL);
    bool ended = waitpid(pid, &status, 0) == pid;
    bool done =
        kind == PROGRAM_LIMITS && ended && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!ended || (!WIFSIGNALED(status) && !done)) {
        printf("# point %zu (%s): it ended before the kill, wait status %d\n", point,
               kind_names[kind], status);
        failed++;
    }
    hits[kind]++;
}

static void one_point(size_t point, int kind)
{
    char token[64];
    char *ws = csn_test_join(top, "ws");
    int ack[2];

    csn_test_mkdir(ws);
    if (pipe2(ack, O_CLOEXEC | O_NONBLOCK) < 0)
        abort();
    /* A duration that nobody else sleeps for: found in the arguments of every descendant. */
    snprintf(token, sizeof(token), "86400.%d%05zu", (int)getpid(), point);
    pid_t pid = kind == PROGRAM          ? start_program(token, ws, point % 2)
                : kind == PROGRAM_LIMITS ? start_limited(ws)
                                         : start_owner(kind, token, ws, "1000000", ack[1]);
    close(ack[1]);
    /* Up to one and a half turns: before the first call of the library, in each one, and at the
     * seams between two sandboxes. */
    int64_t us = kind >= LIMITS ? random() % (short_us * 3 / 2)
                                : random() % (span_ms * 3 / 2 + 1) * 1000;
    nanosleep(&(struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000}, NULL);
    if (kind == KEEPER || kind == KEEPER_DETACHED)
        kill_keeper(pid, kind, point);
    else
        kill_main(pid, kind, point);
    if (kind == OWNER_DETACHED) {
        failed += leftover_unkept(&base) > 0;
        destroy_listed();
    }
    int64_t took = until_gone(token);
    if (took < 0) {
        printf("# point %zu (%s): processes are left\n", point, kind_names[kind]);
        csn_test_print_children();
        csn_test_kill_children();
        failed++;
    }
    slowest[kind] = took > slowest[kind] ? took : slowest[kind];
    over_promise += took > PROMISE_MS;
    check_file(ws, ack[0], point);
    close(ack[0]);
    check_rest(point, kind);
    check_temps(ws, point, kind);
    csn_test_remove(ws);
    free(ws);
}

/* ---- the program ---- */

static void report(bool ok, const char *what)
{
    printf("%sok %d - %s\n", ok ? "" : "not ", ++number, what);
    failed += !ok;
}

/* Whole turns without a kill: how long they take together; -1: they failed. */
static int64_t time_turns(int kind, const char *turns)
{
    char *ws = csn_test_join(top, "ws");
    int ack[2];
    int64_t from = csn_child_now_ms();

    csn_test_mkdir(ws);
    if (pipe2(ack, O_CLOEXEC) < 0)
        abort();
    bool ok = owner_ended_well(start_owner(kind, "0.5", ws, turns, ack[1]));
    int64_t took = csn_child_now_ms() - from;
    close(ack[0]);
    close(ack[1]);
    (void)until_gone("0.5");
    csn_test_remove(ws);
    free(ws);
    return ok ? took : -1;
}

/* Is there a jail here, and how long does it take? A short one has its process's start in it.
 */
static bool calibrate(void)
{
    char turns[16];

    snprintf(turns, sizeof(turns), "%d", SHORT_TURNS);
    span_ms = time_turns(OWNER, "2");
    int64_t many = span_ms < 0 ? -1 : time_turns(LIMITS, turns);
    int64_t none = many < 0 ? -1 : time_turns(LIMITS, "0");
    short_us = (many - none) * 1000 / SHORT_TURNS + none * 1000 + 1000;
    return none >= 0;
}

static bool has_unnamed(void)
{
    int fd = open(top, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void check_window(size_t n)
{
    if (!has_unnamed()) {
        printf("ok %d - no temporary file is left # SKIP no O_TMPFILE here: %u are\n", ++number,
               temps_cut + temps_whole);
        return;
    }
    report(temps_cut == 0, "no interrupted write leaves a file");
    report(temps_whole <= 1 + n / WINDOW_ONE_IN, "hardly ever is one left at the last step");
}

/* only: one kind, or KINDS. */
static void run_all(size_t n, int only)
{
    bool program = getenv("CAISSON") != NULL;
    unsigned before;

    /* One kind after the other and not in turn: a failure names its kind, and what one kind
     * leaves behind is found before the next begins. */
    for (int kind = 0; kind < KINDS; kind++) {
        char what[128];
        size_t points = only == kind ? n : (n / KINDS + 1) * (kind >= LIMITS ? DENSER : 1);
        if (only != kind && only != KINDS)
            continue;
        if ((kind == PROGRAM || kind == PROGRAM_LIMITS) && !program) {
            printf("ok %d - %s # SKIP CAISSON is not set\n", ++number, kind_names[kind]);
            continue;
        }
        before = failed;
        for (size_t i = 0; i < points; i++)
            one_point(i * KINDS + (size_t)kind, kind);
        snprintf(what, sizeof(what), "%s: nothing is left, %u kills, slowest end %lld ms",
                 kind_names[kind], hits[kind], (long long)slowest[kind]);
        report(failed == before, what);
    }
    report(torn == 0, "no file is torn");
    report(writes_lost == 0, "no acknowledged write is lost");
    check_window(n);
    printf("# %u ends took over %d ms; an owner whose keeper was killed ended its turn within "
           "%lld "
           "ms\n",
           over_promise, PROMISE_MS, (long long)slowest_notice);
}

int main(int argc, char **argv)
{
    size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    int only = argc == 3 ? (int)strtol(argv[2], NULL, 10) : KINDS;

    if (argc == 6 && strcmp(argv[1], "--owner") == 0)
        return owner(argv);
    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
        return 99;
    setvbuf(stdout, NULL, _IOLBF, 0);
    srandom((unsigned)csn_child_now_ms() ^ (unsigned)getpid());
    csn_child_adopt();
    top = leftover_make_place(&run_dir, &state_dir);
    leftover_note(&base, top, run_dir, state_dir);
    if (calibrate()) {
        run_all(n ? n : N_DEFAULT, only);
        printf("1..%d\n# a turn takes %lld ms here\n", number, (long long)span_ms / 2);
    } else if (getenv("CSN_MUST_WORK")) {
        printf("1..1\nnot ok 1 - there is a jail here\n");
        failed = 1;
    } else {
        printf("1..0 # SKIP no jail here\n");
    }
    leftover_release(&base);
    csn_test_remove(top);
    free(top);
    free(run_dir);
    free(state_dir);
    return failed != 0;
}
