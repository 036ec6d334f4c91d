/* os_cgroup_real.c: limits that a real kernel enforces, where this user may set them.
 *
 * Root can nearly everywhere; an ordinary user only with delegation. Who cannot must be told
 * why, and that is tested too. The faked counterpart is os_cgroup.c. */
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

/* An id nobody else has, not even another run of this at the same time. */
static const char *fresh_id(void)
{
    static char id[48];
    static unsigned count;

    snprintf(id, sizeof(id), "test-%d-%u", (int)getpid(), ++count);
    return id;
}

/* Makes a group; false, with the reason printed, where it cannot be had. */
static bool make(const csn_cgroup_limits *l, csn_cgroup *g)
{
    csn_cgroup_fault fault = {0};
    int rc = csn_cgroup_create(NULL, fresh_id(), l, g, &fault);

    if (rc == 0)
        return true;
    print_message("# cgroup: %s: %s (%s)\n", fault.path, strerrordesc_np(-rc),
                  csn_cgroup_why_text(fault.why));
    assert_true(rc == -EACCES || rc == -ENOTSUP);
    assert_int_not_equal(fault.why, CSN_CGROUP_USABLE);
    assert_int_not_equal(fault.why, CSN_CGROUP_REFUSED);
    return false;
}

/* A call has a second for it, and a busy machine may need more: it may be called again. */
static int patiently(int (*end)(const csn_cgroup *g), const csn_cgroup *g)
{
    int rc = end(g);

    for (int i = 0; rc == -EBUSY && i < 60; i++)
        rc = end(g);
    return rc;
}

static void gone(const csn_cgroup *g)
{
    assert_int_equal(patiently(csn_cgroup_remove, g), 0);
    for (uint32_t i = 0; i < g->count; i++)
        assert_int_equal(access(g->dirs[i].path, F_OK), -1);
    assert_int_equal(csn_cgroup_remove(g), 0); /* and again */
}

/* As the user we are: what the probe promises is what create does. */
static int probe_keeps_its_word(void *ctx)
{
    csn_cgroup_offer offer[CSN_CGROUP_KINDS];
    static const csn_cgroup_limits one[CSN_CGROUP_KINDS] = {
        {.memory_max = 64 * MIB}, {.pids_max = 20}, {.cpu_milli = 200}};

    (void)ctx;
    assert_int_equal(csn_cgroup_probe(NULL, offer), 0);
    for (int k = 0; k < CSN_CGROUP_KINDS; k++) {
        csn_cgroup g;
        csn_cgroup_fault fault = {0};
        int rc = csn_cgroup_create(NULL, fresh_id(), &one[k], &g, &fault);

        print_message("# uid %d, kind %d: v%d, %s, %s\n", (int)geteuid(), k, offer[k].version,
                      csn_cgroup_why_text(offer[k].why), offer[k].where);
        if (offer[k].version) {
            assert_int_equal(rc, 0);
            assert_int_equal(g.count, 1);
            assert_int_equal(g.dirs[0].version, offer[k].version);
            gone(&g);
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
    return probe_keeps_its_word(ctx);
}

static void probe_and_create_agree(void **state)
{
    (void)state;
    probe_keeps_its_word(NULL);
    if (geteuid() == 0)
        assert_int_equal(csn_child_run(as_nobody, NULL, -1, 60000).exit_code, 0);
}

static int eat_memory(void *ctx)
{
    size_t size = 256 * MIB;

    if (csn_cgroup_attach(ctx, getpid()) != 0)
        return 1;
    char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return 2;
    for (size_t i = 0; i < size; i += 4096)
        ((volatile char *)p)[i] = 1;
    return 0;
}

static void memory_hog_is_killed_and_told(void **state)
{
    csn_cgroup g;
    csn_cgroup_usage u;

    (void)state;
    if (!make(&(csn_cgroup_limits){.memory_max = 64 * MIB}, &g))
        SKIP("no memory limit for this user here");
    csn_child_end end = csn_child_run(eat_memory, &g, -1, 60000);
    assert_int_equal(csn_cgroup_usage_read(&g, &u), 0);
    gone(&g);
    assert_int_equal(end.signal, SIGKILL);
    assert_false(end.hung);
    assert_int_equal(u.memory_oom_kills, 1);
    assert_true(u.memory_limit_hits >= 1);
    if (u.memory_peak != CSN_CGROUP_UNKNOWN)
        assert_in_range(u.memory_peak, 32 * MIB, 64 * MIB);
    assert_true(u.memory_current < 64 * MIB);
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
        if (csn_cgroup_attach(f->g, getpid()) != 0)
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
    csn_cgroup_usage u;
    forker f = {.g = &g};

    (void)state;
    if (!make(&(csn_cgroup_limits){.pids_max = 20}, &g))
        SKIP("no limit of processes for this user here");
    start_forker(&f, 100, false);
    assert_int_equal(forks_made(&f), 19); /* and itself */
    assert_int_equal(csn_cgroup_usage_read(&g, &u), 0);
    assert_int_equal(u.pids_current, 20);
    assert_int_equal(u.pids_limit_hits, 81);
    assert_true(u.pids_peak == 20 || u.pids_peak == CSN_CGROUP_UNKNOWN);
    assert_int_equal(patiently(csn_cgroup_kill, &g), 0);
    assert_int_equal(waitpid(f.pid, NULL, 0), f.pid);
    gone(&g);
}

/* Processes that flee by forking: no pass over the list finds all of them. */
static void kill_catches_up_with_endless_forks(void **state)
{
    csn_cgroup g;
    forker f = {.g = &g};

    (void)state;
    if (!make(&(csn_cgroup_limits){.pids_max = 64}, &g))
        SKIP("no limit of processes for this user here");
    start_forker(&f, 8, true);
    assert_true(forks_made(&f) > 0);
    assert_int_equal(patiently(csn_cgroup_kill, &g), 0);
    assert_int_equal(waitpid(f.pid, NULL, 0), f.pid);
    gone(&g);
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

    if (csn_cgroup_enter(s->g) != 0)
        return 1;
    double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    while (seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu < 0.3)
        ;
    double took[2] = {seconds(CLOCK_MONOTONIC) - wall, seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu};
    return write(s->out, took, sizeof(took)) == sizeof(took) ? 0 : 2;
}

static void busy_loop_gets_its_share_and_no_more(void **state)
{
    csn_cgroup g;
    csn_cgroup_usage u;
    int ends[2];
    double took[2];

    (void)state;
    if (!make(&(csn_cgroup_limits){.cpu_milli = 200}, &g))
        SKIP("no limit of cpu time for this user here");
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    spinner s = {&g, ends[1]};
    csn_child_end end = csn_child_run(spin, &s, -1, 120000);
    assert_int_equal(csn_cgroup_usage_read(&g, &u), 0);
    gone(&g);
    assert_int_equal(end.exit_code, 0);
    assert_int_equal(read(ends[0], took, sizeof(took)), sizeof(took));
    close(ends[0]);
    close(ends[1]);
    print_message("# cpu %.3f s in %.3f s, throttled %llu times, %llu us\n", took[1], took[0],
                  (unsigned long long)u.cpu_throttled_hits,
                  (unsigned long long)u.cpu_throttled_us);
    /* Load on the machine only makes it longer. Never throttled is possible only when others
     * left it less than its share. */
    assert_true(took[0] > 2 * took[1]);
    assert_true(u.cpu_throttled_hits > 0 || took[0] > 4.5 * took[1]);
}

/* All limits at once, one of whose groups is somebody else's already. */
typedef struct guest {
    const csn_cgroup *g;
    int doors[CSN_CGROUP_KINDS];
    const char *id;
} guest;

/* Goes in through open files alone, and is found there by its process number. */
static int enter_by_doors(void *arg)
{
    const guest *v = arg;
    csn_cgroup found;

    for (uint32_t i = 0; i < v->g->count; i++)
        if (write(v->doors[i], "0", 1) != 1)
            return 1;
    if (csn_cgroup_of(getpid(), v->id, 1u << CSN_CGROUP_MEMORY | 1u << CSN_CGROUP_PIDS,
                      &found) < 0 ||
        found.count != v->g->count)
        return 2;
    for (uint32_t i = 0; i < found.count; i++)
        if (strcmp(found.dirs[i].path, v->g->dirs[i].path) != 0 ||
            found.dirs[i].kinds != v->g->dirs[i].kinds ||
            found.dirs[i].version != v->g->dirs[i].version)
            return 3;
    return csn_cgroup_of(getpid(), "test-0-0", 7u, &found) == 0 && found.count == 0 ? 0 : 4;
}

static void who_came_through_a_door_is_found_inside(void **state)
{
    csn_cgroup g, none;
    guest v = {.g = &g};

    (void)state;
    if (!make(&(csn_cgroup_limits){.memory_max = 64 * MIB, .pids_max = 20}, &g))
        SKIP("no limits for this user here");
    v.id = strstr(g.dirs[0].path, "test-");
    assert_int_equal(csn_cgroup_of(getpid(), v.id, 7u, &none), 0);
    assert_int_equal(none.count, 0);
    assert_int_equal(csn_cgroup_doors(&g, v.doors), 0);
    csn_child_end end = csn_child_run(enter_by_doors, &v, -1, 60000);
    for (uint32_t i = 0; i < g.count; i++)
        close(v.doors[i]);
    gone(&g);
    assert_int_equal(end.exit_code, 0);
    assert_int_equal(csn_cgroup_doors(&g, v.doors), -ENOENT);
}

static void failure_half_way_leaves_nothing(void **state)
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
    int rc = csn_cgroup_create(NULL, id, &(csn_cgroup_limits){64 * MIB, 20, 500}, &g, &fault);
    bool there = access(other.dirs[0].path, F_OK) == 0;
    gone(&other);
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

/* As a jail's keeper of root's does: nobody, in namespaces of its own, and no right to anything
 * there but the open files. */
static int enter_as_nobody(void *arg)
{
    const guest *v = arg;
    char text[8192] = "";

    if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
                           setresuid(NOBODY, NOBODY, NOBODY) < 0))
        return 1;
    if (unshare(CLONE_NEWUSER | CLONE_NEWCGROUP) < 0)
        return 77;
    for (uint32_t i = 0; i < v->g->count; i++)
        if (write(v->doors[i], "0", 1) != 1)
            return 2;
    FILE *f = fopen("/proc/self/cgroup", "re");
    size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
    return n > 0 && strstr(text, v->id) ? 0 : 3;
}

/* And when the groups are gone nobody gets in: there is no running beside them. */
static void let_in(const csn_cgroup *g)
{
    guest v = {.g = g, .id = strstr(g->dirs[0].path, "test-")};

    assert_int_equal(csn_cgroup_doors(g, v.doors), 0);
    csn_child_end in = csn_child_run(enter_as_nobody, &v, -1, 60000);
    gone(g);
    csn_child_end late = csn_child_run(enter_as_nobody, &v, -1, 60000);
    for (uint32_t i = 0; i < g->count; i++)
        close(v.doors[i]);
    if (in.exit_code == 77)
        SKIP("no user namespaces for this user here");
    assert_int_equal(in.exit_code, 0);
    assert_int_equal(late.exit_code, 2);
}

static void doors_need_no_right_and_lead_nowhere_later(void **state)
{
    csn_cgroup g;
    bool any = false;

    (void)state;
    if (make(&(csn_cgroup_limits){.memory_max = 64 * MIB, .pids_max = 20}, &g)) {
        let_in(&g);
        any = true;
    }
    if (make_unified(&g)) {
        let_in(&g);
        any = true;
    }
    if (!any)
        SKIP("no groups for this user here");
}

/* v2's own way of killing needs no controller, so a bare group of it will do. */
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
    assert_int_equal(patiently(csn_cgroup_kill, &g), 0);
    assert_int_equal(waitpid(f.pid, NULL, 0), f.pid);
    assert_int_equal(waitpid(deep.pid, NULL, 0), deep.pid);
    gone(&g);
}

/* In a corner of the hierarchy of our own, so that nobody else's new group is taken away. */
static void sweep_takes_what_a_crash_left(void **state)
{
    csn_cgroup corner, left, lives;
    csn_cgroup_limits few = {.pids_max = 20};
    char self[] = "/tmp/csn-self-XXXXXX", mounts[] = "/tmp/csn-mounts-XXXXXX";
    csn_cgroup_host host = {.self_cgroup = self, .mountinfo = mounts, .uid = geteuid()};
    forker f = {.g = &lives};

    (void)state;
    if (!make(&few, &corner))
        SKIP("no limit of processes for this user here");
    if (corner.dirs[0].version != 1) {
        gone(&corner);
        SKIP("v2 groups of ours have no groups inside");
    }
    int a = mkostemp(self, O_CLOEXEC), b = mkostemp(mounts, O_CLOEXEC);
    dprintf(a, "5:pids:/\n");
    dprintf(b, "5 1 0:1 / %s rw - cgroup cgroup rw,pids\n", corner.dirs[0].path);
    close(a);
    close(b);
    assert_int_equal(csn_cgroup_create(&host, "left", &few, &left, NULL), 0);
    assert_int_equal(csn_cgroup_create(&host, "lives", &few, &lives, NULL), 0);
    start_forker(&f, 1, false);
    assert_int_equal(forks_made(&f), 1);
    int young = csn_cgroup_sweep(&host, 3600), old = csn_cgroup_sweep(&host, 0);
    bool left_there = access(left.dirs[0].path, F_OK) == 0;
    bool lives_there = access(lives.dirs[0].path, F_OK) == 0;
    unlink(self);
    unlink(mounts);
    assert_int_equal(patiently(csn_cgroup_kill, &corner), 0); /* v1: also in groups inside */
    assert_int_equal(waitpid(f.pid, NULL, 0), f.pid);
    gone(&corner);
    assert_int_equal(young, 0);
    assert_int_equal(old, 1);
    assert_false(left_there);
    assert_true(lives_there);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probe_and_create_agree),
        cmocka_unit_test(memory_hog_is_killed_and_told),
        cmocka_unit_test(fork_loop_stops_at_the_limit),
        cmocka_unit_test(kill_catches_up_with_endless_forks),
        cmocka_unit_test(busy_loop_gets_its_share_and_no_more),
        cmocka_unit_test(who_came_through_a_door_is_found_inside),
        cmocka_unit_test(doors_need_no_right_and_lead_nowhere_later),
        cmocka_unit_test(failure_half_way_leaves_nothing),
        cmocka_unit_test(unified_group_is_killed_and_removed_with_groups_inside),
        cmocka_unit_test(sweep_takes_what_a_crash_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
