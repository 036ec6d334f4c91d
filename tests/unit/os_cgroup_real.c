/* os_cgroup_real.c: limits that the real kernel enforces, where this user may set them.
 *
 * Root can nearly everywhere, an ordinary user only with delegation. Where a limit is
 * unavailable, the reason is tested. os_cgroup.c tests fake hierarchies. */
#include <grp.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>

#include <cmocka.h>

#include "child.h"
#include "corpus.h"
#include "os/cgroup.h"

#define MIB    (1024u * 1024u)
#define NOBODY 65534

/* Unique, also among concurrent runs. */
static const char *fresh_id(void)
{
    static char id[48];
    static unsigned count;

    snprintf(id, sizeof(id), "test-%d-%u", (int)getpid(), ++count);
    return id;
}

static int create(const csn_cgroup_host *host, const char *id, const csn_cgroup_limits *l,
                  csn_cgroup *g, csn_cgroup_fault *fault)
{
    int rc = csn_cgroup_plan(host, id, l, g, fault);

    return rc < 0 ? rc : csn_cgroup_create(host, g, l, fault);
}

/* Creates a group; false, with the reason printed, where it is unavailable. */
static bool make(const csn_cgroup_limits *l, csn_cgroup *g)
{
    csn_cgroup_fault fault = {0};
    int rc = create(NULL, fresh_id(), l, g, &fault);

    if (rc == 0)
        return true;
    print_message("# cgroup: %s: %s (%s)\n", fault.path, strerrordesc_np(-rc),
                  csn_cgroup_why_text(fault.why));
    assert_true(rc == -EACCES || rc == -ENOTSUP);
    assert_int_not_equal(fault.why, CSN_CGROUP_USABLE);
    assert_int_not_equal(fault.why, CSN_CGROUP_REFUSED);
    return false;
}

/* Each call waits a second; a busy machine may need more. */
static int retry_while_busy(int (*end)(const csn_cgroup *g), const csn_cgroup *g)
{
    int rc = end(g);

    for (int i = 0; rc == -EBUSY && i < 60; i++)
        rc = end(g);
    return rc;
}

static void remove_group(const csn_cgroup *g)
{
    assert_int_equal(retry_while_busy(csn_cgroup_remove, g), 0);
    for (uint32_t i = 0; i < g->count; i++)
        assert_int_equal(access(g->dirs[i].path, F_OK), -1);
    assert_int_equal(csn_cgroup_remove(g), 0); /* and again */
}

/* Moves the calling process into the group. */
static bool enter(const csn_cgroup *g)
{
    int fds[CSN_CGROUP_KINDS];
    bool ok = csn_cgroup_procs_fds(g, fds) == 0;

    for (uint32_t i = 0; ok && i < g->count; i++) {
        ok = write(fds[i], "0", 1) == 1;
        close(fds[i]);
    }
    return ok;
}

static const char *read_text(const char *path)
{
    static char text[8192];
    FILE *f = fopen(path, "re");

    text[f ? fread(text, 1, sizeof(text) - 1, f) : 0] = '\0';
    if (f)
        fclose(f);
    return text;
}

/* As the current user: probe and create agree. */
static int check_probe(void *ctx)
{
    csn_cgroup_offer offer[CSN_CGROUP_KINDS];
    static const csn_cgroup_limits one[CSN_CGROUP_KINDS] = {
        {.memory_max = 64 * MIB}, {.pids_max = 20}, {.cpu_milli = 200}};

    (void)ctx;
    assert_int_equal(csn_cgroup_probe(NULL, offer), 0);
    for (int k = 0; k < CSN_CGROUP_KINDS; k++) {
        csn_cgroup g;
        csn_cgroup_fault fault = {0};
        int rc = create(NULL, fresh_id(), &one[k], &g, &fault);

        print_message("# uid %d, kind %d: v%d, %s, %s\n", (int)geteuid(), k, offer[k].version,
                      csn_cgroup_why_text(offer[k].why), offer[k].where);
        if (offer[k].version) {
            assert_int_equal(rc, 0);
            assert_int_equal(g.count, 1);
            assert_int_equal(g.dirs[0].version, offer[k].version);
            remove_group(&g);
            continue;
        }
        assert_int_equal(fault.why, offer[k].why);
        assert_string_equal(fault.path, offer[k].where);
        assert_int_equal(rc, fault.why == CSN_CGROUP_NOT_DELEGATED ||
                                     fault.why == CSN_CGROUP_READ_ONLY
                                 ? -EACCES
                                 : -ENOTSUP);
    }
    return 0;
}

static int as_nobody(void *ctx)
{
    if (setgid(65534) != 0 || setuid(65534) != 0)
        return 1;
    return check_probe(ctx);
}

static void probe_and_create_agree(void **state)
{
    (void)state;
    check_probe(NULL);
    if (geteuid() == 0)
        assert_int_equal(csn_child_run(as_nobody, NULL, -1, 60000).exit_code, 0);
}

static int eat_memory(void *ctx)
{
    size_t size = 256 * MIB;

    if (!enter(ctx))
        return 1;
    char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return 2;
    for (size_t i = 0; i < size; i += 4096)
        ((volatile char *)p)[i] = 1;
    return 0;
}

static void memory_hog_is_killed_and_counted(void **state)
{
    csn_cgroup g;
    csn_cgroup_events u;

    (void)state;
    if (!make(&(csn_cgroup_limits){.memory_max = 64 * MIB}, &g))
        SKIP("no memory limit for this user here");
    csn_child_end end = csn_child_run(eat_memory, &g, -1, 60000);
    csn_cgroup_read_events(&g, &u);
    remove_group(&g);
    assert_int_equal(end.signal, SIGKILL);
    assert_false(end.hung);
    assert_int_equal(u.memory_oom_kills, 1);
    if (u.memory_peak != CSN_CGROUP_UNKNOWN)
        assert_in_range(u.memory_peak, 32 * MIB, 64 * MIB);
    assert_true(u.pids_limit_hits == CSN_CGROUP_UNKNOWN); /* no such limit was asked for */
}

typedef struct forker {
    const csn_cgroup *g;
    pid_t pid;
    int out; /* how many forks succeeded, one int */
} forker;

/* A process in the group that forks `tries` times; it and its children stay until killed. With
 * replace, children end at once and are replaced without end. */
static void start_forker(forker *f, int tries, bool replace)
{
    int ends[2], made = 0;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    fflush(NULL);
    f->pid = fork();
    assert_true(f->pid >= 0);
    if (f->pid == 0) {
        signal(SIGCHLD, SIG_IGN);
        if (!enter(f->g))
            _exit(1);
        for (int i = 0; i < tries; i++) {
            pid_t child = fork();
            while (child == 0 && replace)
                if (fork() > 0) /* the new one goes on in our place */
                    _exit(0);
            while (child == 0)
                pause();
            made += child > 0;
        }
        if (write(ends[1], &made, sizeof(made)) != sizeof(made))
            _exit(2);
        for (;;)
            pause();
    }
    close(ends[1]);
    f->out = ends[0];
}

static int forks_made(const forker *f)
{
    int made = -1;

    assert_int_equal(read(f->out, &made, sizeof(made)), sizeof(made));
    close(f->out);
    return made;
}

static void fork_loop_stops_at_the_limit(void **state)
{
    csn_cgroup g;
    csn_cgroup_events u;
    forker f = {.g = &g};

    (void)state;
    if (!make(&(csn_cgroup_limits){.pids_max = 20}, &g))
        SKIP("no limit of processes for this user here");
    start_forker(&f, 100, false);
    assert_int_equal(forks_made(&f), 19); /* and itself */
    csn_cgroup_read_events(&g, &u);
    assert_int_equal(u.pids_limit_hits, 81);
    assert_int_equal(retry_while_busy(csn_cgroup_kill, &g), 0);
    assert_int_equal(waitpid(f.pid, NULL, 0), f.pid);
    remove_group(&g);
}

/* No single pass over cgroup.procs finds all of them. */
static void kill_ends_a_fork_loop(void **state)
{
    csn_cgroup g;
    forker f = {.g = &g};

    (void)state;
    if (!make(&(csn_cgroup_limits){.pids_max = 64}, &g))
        SKIP("no limit of processes for this user here");
    start_forker(&f, 8, true);
    assert_true(forks_made(&f) > 0);
    assert_int_equal(retry_while_busy(csn_cgroup_kill, &g), 0);
    assert_int_equal(waitpid(f.pid, NULL, 0), f.pid);
    remove_group(&g);
}

static double seconds(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

typedef struct spinner {
    const csn_cgroup *g;
    int out;
} spinner;

/* Uses 0.3 s of a cpu, and says how long that took. */
static int spin(void *ctx)
{
    spinner *s = ctx;

    if (!enter(s->g))
        return 1;
    double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    while (seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu < 0.3)
        ;
    double took[2] = {seconds(CLOCK_MONOTONIC) - wall, seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu};
    return write(s->out, took, sizeof(took)) == sizeof(took) ? 0 : 2;
}

static void cpu_limit_throttles_a_busy_loop(void **state)
{
    csn_cgroup g;
    char stat[CSN_CGROUP_PATH_MAX + 16];
    int ends[2];
    double took[2];

    (void)state;
    if (!make(&(csn_cgroup_limits){.cpu_milli = 200}, &g))
        SKIP("no limit of cpu time for this user here");
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    spinner s = {&g, ends[1]};
    csn_child_end end = csn_child_run(spin, &s, -1, 120000);
    snprintf(stat, sizeof(stat), "%s/cpu.stat", g.dirs[0].path);
    const char *throttled = strstr(read_text(stat), "nr_throttled ");
    long hits = throttled ? strtol(throttled + strlen("nr_throttled "), NULL, 10) : 0;
    remove_group(&g);
    assert_int_equal(end.exit_code, 0);
    assert_int_equal(read(ends[0], took, sizeof(took)), sizeof(took));
    close(ends[0]);
    close(ends[1]);
    print_message("# cpu %.3f s in %.3f s, throttled %ld times\n", took[1], took[0], hits);
    /* Load on the machine only makes it longer. Without throttling, other processes must have
     * left it less than its share. */
    assert_true(took[0] > 2 * took[1]);
    assert_true(hits > 0 || took[0] > 4.5 * took[1]);
}

typedef struct member {
    const csn_cgroup *g;
    int fds[CSN_CGROUP_KINDS];
    const char *id;
} member;

/* Enters through inherited descriptors and is found by its pid. */
static int enter_by_fds(void *arg)
{
    const member *v = arg;
    csn_cgroup found;

    for (uint32_t i = 0; i < v->g->count; i++)
        if (write(v->fds[i], "0", 1) != 1)
            return 1;
    if (csn_cgroup_find_by_pid(getpid(), v->id, 1u << CSN_CGROUP_MEMORY | 1u << CSN_CGROUP_PIDS,
                               &found) < 0 ||
        found.count != v->g->count)
        return 2;
    for (uint32_t i = 0; i < found.count; i++)
        if (strcmp(found.dirs[i].path, v->g->dirs[i].path) != 0 ||
            found.dirs[i].kinds != v->g->dirs[i].kinds ||
            found.dirs[i].version != v->g->dirs[i].version)
            return 3;
    return csn_cgroup_find_by_pid(getpid(), "test-0-0", 7u, &found) == 0 && found.count == 0
               ? 0
               : 4;
}

static void process_that_entered_is_found_by_pid(void **state)
{
    csn_cgroup g, none;
    member v = {.g = &g};

    (void)state;
    if (!make(&(csn_cgroup_limits){.memory_max = 64 * MIB, .pids_max = 20}, &g))
        SKIP("no limits for this user here");
    v.id = strstr(g.dirs[0].path, "test-");
    assert_int_equal(csn_cgroup_find_by_pid(getpid(), v.id, 7u, &none), 0);
    assert_int_equal(none.count, 0);
    assert_int_equal(csn_cgroup_procs_fds(&g, v.fds), 0);
    csn_child_end end = csn_child_run(enter_by_fds, &v, -1, 60000);
    for (uint32_t i = 0; i < g.count; i++)
        close(v.fds[i]);
    remove_group(&g);
    assert_int_equal(end.exit_code, 0);
    assert_int_equal(csn_cgroup_procs_fds(&g, v.fds), -ENOENT);
}

static void failed_create_leaves_no_group(void **state)
{
    csn_cgroup g, other;
    csn_cgroup_fault fault;
    csn_cgroup_offer offer[CSN_CGROUP_KINDS];
    char id[48], path[CSN_CGROUP_PATH_MAX + 64];

    (void)state;
    if (!make(&(csn_cgroup_limits){.cpu_milli = 500}, &other))
        SKIP("no limit of cpu time for this user here");
    snprintf(id, sizeof(id), "%s", strstr(other.dirs[0].path, "test-"));
    assert_int_equal(csn_cgroup_probe(NULL, offer), 0);
    int rc = create(NULL, id, &(csn_cgroup_limits){64 * MIB, 20, 500}, &g, &fault);
    bool there = access(other.dirs[0].path, F_OK) == 0;
    remove_group(&other);
    assert_true(there);
    assert_int_equal(rc, -EEXIST);
    assert_string_equal(fault.path, other.dirs[0].path);
    for (int k = 0; k < CSN_CGROUP_KINDS; k++) {
        snprintf(path, sizeof(path), "%s/caisson-%s", offer[k].where, id);
        assert_int_equal(access(path, F_OK), -1);
    }
}

/* A bare group of the unified hierarchy: no controller is needed for it. */
static bool make_unified(csn_cgroup *g)
{
    static const char *const tops[] = {"/sys/fs/cgroup/unified", "/sys/fs/cgroup"};
    char file[CSN_CGROUP_PATH_MAX + 16];

    *g = (csn_cgroup){.count = 1, .dirs[0] = {.version = 2}};
    for (int i = 0; i < 2; i++) {
        snprintf(file, sizeof(file), "%s/cgroup.subtree_control", tops[i]);
        snprintf(g->dirs[0].path, CSN_CGROUP_PATH_MAX, "%s/caisson-%s", tops[i], fresh_id());
        if (access(file, F_OK) == 0 && mkdir(g->dirs[0].path, 0755) == 0)
            return true;
    }
    return false;
}

/* As the keeper of a root caller: uid nobody, in namespaces of its own, with no permission but
 * the open descriptors. */
static int enter_as_nobody(void *arg)
{
    const member *v = arg;

    if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
                           setresuid(NOBODY, NOBODY, NOBODY) < 0))
        return 1;
    if (unshare(CLONE_NEWUSER | CLONE_NEWCGROUP) < 0)
        return 77;
    for (uint32_t i = 0; i < v->g->count; i++)
        if (write(v->fds[i], "0", 1) != 1)
            return 2;
    return strstr(read_text("/proc/self/cgroup"), v->id) ? 0 : 3;
}

/* Once the groups are removed, entering fails. */
static void enter_and_remove(const csn_cgroup *g)
{
    member v = {.g = g, .id = strstr(g->dirs[0].path, "test-")};

    assert_int_equal(csn_cgroup_procs_fds(g, v.fds), 0);
    csn_child_end in = csn_child_run(enter_as_nobody, &v, -1, 60000);
    remove_group(g);
    csn_child_end late = csn_child_run(enter_as_nobody, &v, -1, 60000);
    for (uint32_t i = 0; i < g->count; i++)
        close(v.fds[i]);
    if (in.exit_code == 77)
        SKIP("no user namespaces for this user here");
    assert_int_equal(in.exit_code, 0);
    assert_int_equal(late.exit_code, 2);
}

static void fds_need_no_permission_and_fail_after_removal(void **state)
{
    csn_cgroup g;
    bool any = false;

    (void)state;
    if (make(&(csn_cgroup_limits){.memory_max = 64 * MIB, .pids_max = 20}, &g)) {
        enter_and_remove(&g);
        any = true;
    }
    if (make_unified(&g)) {
        enter_and_remove(&g);
        any = true;
    }
    if (!any)
        SKIP("no groups for this user here");
}

/* cgroup.kill needs no controller. */
static void unified_group_is_killed_and_removed_with_groups_inside(void **state)
{
    csn_cgroup g;
    char *dir = g.dirs[0].path, inner[CSN_CGROUP_PATH_MAX + 16];
    forker f = {.g = &g}, deep = {.g = &g};

    (void)state;
    if (!make_unified(&g))
        SKIP("no groups in the unified hierarchy for this user here");
    snprintf(inner, sizeof(inner), "%s/inner", dir);
    must(mkdir(inner, 0755) == 0, "inner group");
    start_forker(&f, 3, false);
    assert_int_equal(forks_made(&f), 3);
    csn_cgroup below = g;
    snprintf(below.dirs[0].path, CSN_CGROUP_PATH_MAX, "%.*s/inner", CSN_CGROUP_PATH_MAX - 10,
             dir);
    deep.g = &below;
    start_forker(&deep, 2, false);
    assert_int_equal(forks_made(&deep), 2);
    assert_int_equal(csn_cgroup_remove(&g), -EBUSY);
    assert_int_equal(retry_while_busy(csn_cgroup_kill, &g), 0);
    assert_int_equal(waitpid(f.pid, NULL, 0), f.pid);
    assert_int_equal(waitpid(deep.pid, NULL, 0), deep.pid);
    remove_group(&g);
}

/* In a nested hierarchy of its own, so that no other new group is removed. */
static void sweep_removes_what_a_crash_left(void **state)
{
    csn_cgroup nested, left, lives;
    csn_cgroup_limits few = {.pids_max = 20};
    char self[] = "/tmp/csn-self-XXXXXX", mounts[] = "/tmp/csn-mounts-XXXXXX";
    csn_cgroup_host host = {.self_cgroup = self, .mountinfo = mounts, .uid = geteuid()};
    forker f = {.g = &lives};

    (void)state;
    if (!make(&few, &nested))
        SKIP("no limit of processes for this user here");
    if (nested.dirs[0].version != 1) {
        remove_group(&nested);
        SKIP("v2 groups of ours have no groups inside");
    }
    int a = mkostemp(self, O_CLOEXEC), b = mkostemp(mounts, O_CLOEXEC);
    dprintf(a, "5:pids:/\n");
    dprintf(b, "5 1 0:1 / %s rw - cgroup cgroup rw,pids\n", nested.dirs[0].path);
    close(a);
    close(b);
    assert_int_equal(create(&host, "left", &few, &left, NULL), 0);
    assert_int_equal(create(&host, "lives", &few, &lives, NULL), 0);
    start_forker(&f, 1, false);
    assert_int_equal(forks_made(&f), 1);
    int young = csn_cgroup_sweep(&host, 3600), old = csn_cgroup_sweep(&host, 0);
    bool left_there = access(left.dirs[0].path, F_OK) == 0;
    bool lives_there = access(lives.dirs[0].path, F_OK) == 0;
    unlink(self);
    unlink(mounts);
    assert_int_equal(retry_while_busy(csn_cgroup_kill, &nested),
                     0); /* v1: also in groups inside */
    assert_int_equal(waitpid(f.pid, NULL, 0), f.pid);
    remove_group(&nested);
    assert_int_equal(young, 0);
    assert_int_equal(old, 1);
    assert_false(left_there);
    assert_true(lives_there);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probe_and_create_agree),
        cmocka_unit_test(memory_hog_is_killed_and_counted),
        cmocka_unit_test(fork_loop_stops_at_the_limit),
        cmocka_unit_test(kill_ends_a_fork_loop),
        cmocka_unit_test(cpu_limit_throttles_a_busy_loop),
        cmocka_unit_test(process_that_entered_is_found_by_pid),
        cmocka_unit_test(fds_need_no_permission_and_fail_after_removal),
        cmocka_unit_test(failed_create_leaves_no_group),
        cmocka_unit_test(unified_group_is_killed_and_removed_with_groups_inside),
        cmocka_unit_test(sweep_removes_what_a_crash_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
