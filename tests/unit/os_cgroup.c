/* os_cgroup.c: placement of groups and the values written into them, on fake hierarchies.
 * os_cgroup_real.c tests the real kernel. */
#include "os/cgroup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cgroup_fake.h"
#include "child.h"

static int setup(void **state)
{
    (void)state;
    snprintf(top, sizeof(top), "/tmp/csn-cgroup-XXXXXX");
    must(mkdtemp(top) && chmod(top, 0755) == 0, "mkdtemp");
    snprintf(self_file, sizeof(self_file), "%s/self", top);
    snprintf(mounts_file, sizeof(mounts_file), "%s/mountinfo", top);
    host = (csn_cgroup_host){self_file, mounts_file, USER, fake_mkdir, fake_rmdir};
    fake_lacks = "";
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    int fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(fd >= 0 && csn_tree_remove(fd, strrchr(top, '/') + 1) == 0, "clean up");
    close(fd);
    return 0;
}

static const csn_cgroup_limits all = {64u << 20, 20, 1500};

static int create(const csn_cgroup_host *h, const char *id, const csn_cgroup_limits *l,
                  csn_cgroup *ret, csn_cgroup_fault *fault)
{
    csn_cgroup g;
    int rc = csn_cgroup_plan(h, id, l, &g, fault);

    if (rc == 0)
        rc = csn_cgroup_create(h, &g, l, fault);
    if (rc == 0)
        *ret = g;
    return rc;
}

static void enter(const csn_cgroup *g)
{
    int fds[CSN_CGROUP_KINDS];

    assert_int_equal(csn_cgroup_procs_fds(g, fds), 0);
    for (uint32_t i = 0; i < g->count; i++) {
        assert_int_equal(write(fds[i], "0", 1), 1);
        close(fds[i]);
    }
}

static void create_writes_the_limits_of_v2(void **state)
{
    csn_cgroup g;

    (void)state;
    user_layout("cpu memory pids\n");
    assert_int_equal(create(&host, "jail-1", &all, &g, NULL), 0);
    assert_int_equal(g.count, 1);
    assert_int_equal(g.dirs[0].version, 2);
    assert_int_equal(g.dirs[0].kinds, 7);
    assert_string_equal(g.dirs[0].path, at("v2 mount/user/app/caisson-jail-1"));
    assert_string_equal(get(at("v2 mount/user/app/caisson-jail-1/memory.max")), "67108864");
    assert_string_equal(get(at("v2 mount/user/app/caisson-jail-1/memory.swap.max")), "0");
    assert_string_equal(get(at("v2 mount/user/app/caisson-jail-1/memory.oom.group")), "0");
    assert_string_equal(get(at("v2 mount/user/app/caisson-jail-1/pids.max")), "20");
    assert_string_equal(get(at("v2 mount/user/app/caisson-jail-1/cpu.max")), "150000 100000");
    assert_string_equal(get(at("v2 mount/user/app/caisson-jail-1/cgroup.max.descendants")),
                        "0");
    /* what was enabled already is not written again */
    assert_string_equal(get(at("v2 mount/user/app/cgroup.subtree_control")),
                        "cpu memory pids\n");
    enter(&g);
    assert_string_equal(get(at("v2 mount/user/app/caisson-jail-1/cgroup.procs")), "0");
}

static void create_leaves_other_controllers_unlimited(void **state)
{
    csn_cgroup g;

    (void)state;
    user_layout("cpu memory pids\n");
    assert_int_equal(create(&host, "a", &(csn_cgroup_limits){.pids_max = 9}, &g, NULL), 0);
    assert_int_equal(g.dirs[0].kinds, 1 << CSN_CGROUP_PIDS);
    assert_string_equal(get(at("v2 mount/user/app/caisson-a/memory.max")), "max\n");
    assert_string_equal(get(at("v2 mount/user/app/caisson-a/cpu.max")), "max\n");
    g.count = 99;
    assert_int_equal(create(&host, "b", &(csn_cgroup_limits){0}, &g, NULL), 0);
    assert_int_equal(g.count, 0);
    assert_false(exists(at("v2 mount/user/app/caisson-b")));
    enter(&g);
    assert_int_equal(csn_cgroup_kill(&g), 0);
    assert_int_equal(csn_cgroup_remove(&g), 0);
}

static void create_refuses_limits_it_cannot_express(void **state)
{
    csn_cgroup g;
    csn_cgroup_limits odd = {.cpu_milli = 5, .pids_max = UINT64_MAX};

    (void)state;
    user_layout("cpu memory pids\n");
    assert_int_equal(create(&host, "a", &odd, &g, NULL), 0);
    assert_string_equal(get(at("v2 mount/user/app/caisson-a/cpu.max")), "5000 1000000");
    assert_string_equal(get(at("v2 mount/user/app/caisson-a/pids.max")), "4194304");
    odd = (csn_cgroup_limits){.cpu_milli = 10};
    assert_int_equal(create(&host, "b", &odd, &g, NULL), 0);
    assert_string_equal(get(at("v2 mount/user/app/caisson-b/cpu.max")), "1000 100000");
    odd = (csn_cgroup_limits){.cpu_milli = UINT64_MAX};
    assert_int_equal(create(&host, "c", &odd, &g, NULL), -EINVAL);
    odd = (csn_cgroup_limits){.memory_max = UINT64_MAX};
    assert_int_equal(create(&host, "c", &odd, &g, NULL), -EINVAL);
    assert_int_equal(create(&host, "../c", &all, &g, NULL), -EINVAL);
    assert_int_equal(create(&host, "", &all, &g, NULL), -EINVAL);
}

static void plan_enables_missing_controllers(void **state)
{
    csn_cgroup g;
    csn_cgroup_offer offer[CSN_CGROUP_KINDS];

    (void)state;
    user_layout("memory\n");
    /* memory alone needs no change; for cpu a group higher up has all that it takes */
    assert_int_equal(csn_cgroup_probe(&host, offer), 0);
    assert_string_equal(offer[CSN_CGROUP_MEMORY].where, at("v2 mount/user/app"));
    assert_string_equal(offer[CSN_CGROUP_CPU].where, at("v2 mount/user"));
    put(at("v2 mount/user/cgroup.subtree_control"), "memory\n");
    put(at("v2 mount/cgroup.controllers"), "memory cpu pids\n");
    put(at("v2 mount/cgroup.subtree_control"), "memory\n");
    assert_int_equal(csn_cgroup_probe(&host, offer), 0);
    assert_int_equal(offer[CSN_CGROUP_CPU].version, 2);
    assert_string_equal(offer[CSN_CGROUP_CPU].where, at("v2 mount/user/app"));
    assert_string_equal(get(at("v2 mount/user/app/cgroup.subtree_control")), "memory\n");
    assert_int_equal(create(&host, "a", &all, &g, NULL), 0);
    assert_string_equal(get(at("v2 mount/user/app/cgroup.subtree_control")), "+pids +cpu");
    assert_string_equal(g.dirs[0].path, at("v2 mount/user/app/caisson-a"));
}

static void plan_skips_groups_with_processes(void **state)
{
    csn_cgroup g;
    csn_cgroup_fault fault;

    (void)state;
    user_layout("cpu memory pids\n");
    put(at("v2 mount/user/app/cgroup.procs"), "5\n");
    assert_int_equal(create(&host, "a", &all, &g, NULL), 0);
    assert_string_equal(g.dirs[0].path, at("v2 mount/user/caisson-a"));
    /* in a namespace whose top is not the top of all, and nothing is free */
    put(at("v2 mount/user/cgroup.procs"), "6\n");
    put(at("v2 mount/cgroup.events"), "populated 1\n");
    assert_int_equal(create(&host, "b", &all, &g, &fault), -ENOTSUP);
    assert_int_equal(fault.why, CSN_CGROUP_OCCUPIED);
    assert_string_equal(fault.path, at("v2 mount/user/app"));
    assert_false(exists(at("v2 mount/user/caisson-b")));
}

static void probe_reports_controllers_that_are_not_enabled(void **state)
{
    csn_cgroup g;
    csn_cgroup_offer offer[CSN_CGROUP_KINDS];
    csn_cgroup_fault fault;

    (void)state;
    user_layout("memory pids\n");
    put(at("v2 mount/cgroup.controllers"), "hugetlb memory pids\n");
    assert_int_equal(csn_cgroup_probe(&host, offer), 0);
    assert_int_equal(offer[CSN_CGROUP_MEMORY].version, 2);
    assert_int_equal(offer[CSN_CGROUP_CPU].version, 0);
    assert_int_equal(offer[CSN_CGROUP_CPU].why, CSN_CGROUP_NOT_ENABLED);
    assert_int_equal(create(&host, "a", &all, &g, &fault), -ENOTSUP);
    assert_int_equal(fault.why, CSN_CGROUP_NOT_ENABLED);
    assert_false(exists(at("v2 mount/user/app/caisson-a")));
}

static void root_uses_the_group_caisson(void **state)
{
    csn_cgroup g;
    csn_cgroup_fault fault;

    (void)state;
    user_layout("cpu memory pids\n");
    host.uid = 0;
    put(at("v2 mount/cgroup.subtree_control"), "hugetlb\n");
    assert_int_equal(create(&host, "a", &all, &g, NULL), 0);
    assert_string_equal(g.dirs[0].path, at("v2 mount/caisson/caisson-a"));
    assert_string_equal(get(at("v2 mount/cgroup.subtree_control")), "+memory +pids +cpu");
    fake_rmdir(at("v2 mount/caisson/caisson-a"));
    fake_rmdir(at("v2 mount/caisson"));
    put(at("v2 mount/cgroup.subtree_control"), "cpu memory pids\n");
    assert_int_equal(create(&host, "b", &all, &g, NULL), 0);
    assert_string_equal(get(at("v2 mount/caisson/cgroup.subtree_control")),
                        "+memory +pids +cpu");
    fake_rmdir(at("v2 mount/caisson/caisson-b"));
    fake_rmdir(at("v2 mount/caisson"));
    /* a failure takes the new parent away too */
    fake_lacks = "pids.max";
    assert_int_equal(create(&host, "c", &all, &g, &fault), -ENOENT);
    assert_int_equal(fault.why, CSN_CGROUP_REFUSED);
    assert_string_equal(fault.path, at("v2 mount/caisson/caisson-c/pids.max"));
    assert_false(exists(at("v2 mount/caisson")));
}

static void root_in_a_container_is_placed_like_a_user(void **state)
{
    csn_cgroup g;

    (void)state;
    host.uid = 0;
    user_layout("cpu memory pids\n");
    put(at("v2 mount/cgroup.events"), "populated 1\n");
    assert_int_equal(create(&host, "a", &all, &g, NULL), 0);
    assert_string_equal(g.dirs[0].path, at("v2 mount/user/app/caisson-a"));
    assert_false(exists(at("v2 mount/caisson")));
}

static csn_cgroup_why memory_reason(void)
{
    csn_cgroup_offer offer[CSN_CGROUP_KINDS];

    assert_int_equal(csn_cgroup_probe(&host, offer), 0);
    assert_int_equal(offer[CSN_CGROUP_MEMORY].version != 0,
                     offer[CSN_CGROUP_MEMORY].why == CSN_CGROUP_USABLE);
    assert_true(strlen(csn_cgroup_why_text(offer[CSN_CGROUP_MEMORY].why)) > 5);
    return offer[CSN_CGROUP_MEMORY].why;
}

static void probe_refuses_groups_outside_the_mount(void **state)
{
    (void)state;
    user_layout("cpu memory pids\n");
    assert_int_equal(memory_reason(), CSN_CGROUP_USABLE);
    mount_v2("/../../user/app/svc", "/");
    assert_int_equal(memory_reason(), CSN_CGROUP_OUTSIDE);
    mount_v2("/", "/..");
    assert_int_equal(memory_reason(), CSN_CGROUP_OUTSIDE);
    /* also where such a path, taken literally, leads to a group */
    mount_v2("/../v2 mount/user/app/svc", "/");
    assert_int_equal(memory_reason(), CSN_CGROUP_OUTSIDE);
    mount_v2("/../user/app/svc", "/..");
    assert_int_equal(memory_reason(), CSN_CGROUP_OUTSIDE);
    mount_v2("/user/app/gone (deleted)", "/");
    assert_int_equal(memory_reason(), CSN_CGROUP_OUTSIDE);
    /* a part of the hierarchy is mounted: names count from its root, by whole components */
    mount_v2("/ma chine/7/user/app/svc", "/ma\\040chine/7");
    assert_int_equal(memory_reason(), CSN_CGROUP_USABLE);
    mount_v2("/ma chine/77/user/app/svc", "/ma\\040chine/7");
    assert_int_equal(memory_reason(), CSN_CGROUP_OUTSIDE);
    put(self_file, "no colon\n:\n0:\n");
    assert_int_equal(memory_reason(), CSN_CGROUP_NOT_MOUNTED);
    mount_v2("/user/app/svc", "/");
    put(mounts_file,
        "23 1 0:20 / /proc rw - proc proc rw\nshort - cgroup2\n1 2 3 4 5 6 - \n\n");
    assert_int_equal(memory_reason(), CSN_CGROUP_NOT_MOUNTED);
}

static void probe_prefers_a_writable_mount(void **state)
{
    char text[2048];

    (void)state;
    user_layout("cpu memory pids\n");
    snprintf(text, sizeof(text), "40 31 0:38 / %s/v2\\040mount ro - cgroup2 cgroup2 rw\n", top);
    put(mounts_file, text);
    assert_int_equal(memory_reason(), CSN_CGROUP_READ_ONLY);
    snprintf(text, sizeof(text),
             "39 31 0:38 /elsewhere %s/part rw - cgroup2 cgroup2 rw\n"
             "40 31 0:38 / %s/v2\\040mount rw - cgroup2 cgroup2 rw\n"
             "42 31 0:38 / %s/v2 ro - cgroup2 cgroup2 rw\n",
             top, top, top);
    put(mounts_file, text);
    assert_int_equal(memory_reason(), CSN_CGROUP_USABLE);
    /* mounted on the same place: the last mount counts */
    snprintf(text, sizeof(text),
             "40 31 0:38 / %s/v2\\040mount rw - cgroup2 cgroup2 rw\n"
             "41 31 0:38 / %s/v2\\040mount rw -  cgroup2  ro\n"
             "42 31 0:38 / %s/v2\\040mount rw - cgroup2  ro\n",
             top, top, top);
    put(mounts_file, text);
    assert_int_equal(memory_reason(), CSN_CGROUP_READ_ONLY);
}

/* memory and pids mounted together, cpu with cpuacct, and a hierarchy without a controller. */
static void v1_layout(void)
{
    char text[2048];

    put(self_file, "9:name=memory:/x\n5:cpu,cpuacct:/a:b\n4:memory,pids:/own\n0::/\n");
    snprintf(text, sizeof(text),
             "30 1 0:1 / %s/named rw - cgroup cgroup rw,name=memory\n"
             "31 1 0:2 / %s/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
             "32 1 0:3 / %s/mem rw - cgroup cgroup rw,memory,pids\n",
             top, top, top);
    put(mounts_file, text);
    must(fake_mkdir(at("mem")) == 0 && fake_mkdir(at("mem/own")) == 0 &&
             fake_mkdir(at("cpu,cpuacct")) == 0 && fake_mkdir(at("cpu,cpuacct/a:b")) == 0,
         "v1 layout");
}

static void create_writes_the_limits_of_v1(void **state)
{
    csn_cgroup g;

    (void)state;
    v1_layout();
    assert_int_equal(create(&host, "j", &all, &g, NULL), 0);
    assert_int_equal(g.count, 2);
    assert_string_equal(g.dirs[0].path, at("mem/own/caisson-j"));
    assert_int_equal(g.dirs[0].version, 1);
    assert_int_equal(g.dirs[0].kinds, 1 << CSN_CGROUP_MEMORY | 1 << CSN_CGROUP_PIDS);
    assert_string_equal(g.dirs[1].path, at("cpu,cpuacct/a:b/caisson-j"));
    assert_string_equal(get(at("mem/own/caisson-j/memory.limit_in_bytes")), "67108864");
    assert_string_equal(get(at("mem/own/caisson-j/memory.memsw.limit_in_bytes")), "67108864");
    assert_string_equal(get(at("mem/own/caisson-j/memory.swappiness")), "0");
    assert_string_equal(get(at("mem/own/caisson-j/pids.max")), "20");
    assert_string_equal(get(at("cpu,cpuacct/a:b/caisson-j/cpu.cfs_period_us")), "100000");
    assert_string_equal(get(at("cpu,cpuacct/a:b/caisson-j/cpu.cfs_quota_us")), "150000");
    enter(&g);
    assert_string_equal(get(at("mem/own/caisson-j/tasks")), "0");
    assert_string_equal(get(at("cpu,cpuacct/a:b/caisson-j/tasks")), "0");
    /* a kernel that does not account swap lacks one of them */
    fake_lacks = "memory.memsw.limit_in_bytes";
    assert_int_equal(create(&host, "k", &all, &g, NULL), 0);
}

static void plan_names_every_group_and_creates_none(void **state)
{
    csn_cgroup g = {0}, same;
    csn_cgroup_fault fault;

    (void)state;
    v1_layout();
    assert_int_equal(csn_cgroup_plan(&host, "j", &all, &g, NULL), 0);
    assert_true(g.count > 1);
    assert_false(g.parent_made);
    for (uint32_t i = 0; i < g.count; i++)
        assert_false(exists(g.dirs[i].path));
    assert_int_equal(csn_cgroup_create(&host, &g, &all, NULL), 0);
    for (uint32_t i = 0; i < g.count; i++)
        assert_true(exists(g.dirs[i].path));
    /* the sweeper removes every planned group: an existing one is refused */
    assert_int_equal(csn_cgroup_plan(&host, "j", &all, &same, &fault), -EEXIST);
    assert_string_equal(fault.path, g.dirs[0].path);
}

static void failed_create_removes_the_new_parent(void **state)
{
    csn_cgroup g = {0};

    (void)state;
    user_layout("cpu memory pids\n");
    host.uid = 0;
    assert_int_equal(csn_cgroup_plan(&host, "a", &all, &g, NULL), 0);
    assert_string_equal(g.dirs[0].path, at("v2 mount/caisson/caisson-a"));
    assert_true(g.parent_made && exists(at("v2 mount/caisson")));
    assert_false(exists(at("v2 mount/caisson/caisson-a")));
    fake_lacks = "pids.max";
    assert_int_equal(csn_cgroup_create(&host, &g, &all, NULL), -ENOENT);
    assert_false(exists(at("v2 mount/caisson")));
}

static void failed_create_leaves_no_group(void **state)
{
    csn_cgroup g = {.count = 42};
    csn_cgroup_fault fault;

    (void)state;
    v1_layout();
    fake_lacks = "cpu.cfs_quota_us";
    assert_int_equal(create(&host, "j", &all, &g, &fault), -ENOENT);
    assert_string_equal(fault.path, at("cpu,cpuacct/a:b/caisson-j/cpu.cfs_quota_us"));
    assert_int_equal(fault.why, CSN_CGROUP_REFUSED);
    assert_int_equal(g.count, 42);
    assert_false(exists(at("mem/own/caisson-j")));
    assert_false(exists(at("cpu,cpuacct/a:b/caisson-j")));
    /* an existing group is left alone */
    fake_lacks = "";
    must(fake_mkdir(at("cpu,cpuacct/a:b/caisson-j")) == 0, "make");
    assert_int_equal(create(&host, "j", &all, &g, &fault), -EEXIST);
    assert_string_equal(fault.path, at("cpu,cpuacct/a:b/caisson-j"));
    assert_true(exists(at("cpu,cpuacct/a:b/caisson-j")));
    assert_false(exists(at("mem/own/caisson-j")));
}

static int without_rights(void *ctx)
{
    csn_cgroup g;
    csn_cgroup_fault fault;

    (void)ctx;
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
        return 1;
    if (memory_reason() != CSN_CGROUP_NOT_DELEGATED)
        return 2;
    if (create(&host, "a", &all, &g, &fault) != -EACCES)
        return 3;
    return fault.why == CSN_CGROUP_NOT_DELEGATED ? 0 : 4;
}

static void probe_reports_groups_that_are_not_delegated(void **state)
{
    static const char *const groups[] = {"", "/user", "/user/app", "/user/app/svc"};

    (void)state;
    user_layout("cpu memory pids\n");
    for (size_t i = 0; i < 4; i++)
        must(chmod(at("v2 mount%s", groups[i]), 0555) == 0, "chmod");
    assert_int_equal(csn_child_run(without_rights, NULL, -1, 60000).exit_code, 0);
    for (size_t i = 0; i < 4; i++)
        must(chmod(at("v2 mount%s", groups[i]), 0755) == 0, "chmod");
    /* the directory alone is not enough: processes could not be moved */
    for (size_t i = 0; i < 4; i++)
        must(chmod(at("v2 mount%s/cgroup.procs", groups[i]), 0444) == 0 &&
                 chmod(at("v2 mount%s", groups[i]), 0777) == 0,
             "chmod");
    assert_int_equal(csn_child_run(without_rights, NULL, -1, 60000).exit_code, 0);
}

static void events_are_read_and_missing_files_are_unknown(void **state)
{
    csn_cgroup g;
    csn_cgroup_events u;

    (void)state;
    v1_layout();
    assert_int_equal(create(&host, "a", &all, &g, NULL), 0);
    put(at("mem/own/caisson-a/memory.max_usage_in_bytes"), "4096\n");
    put(at("mem/own/caisson-a/memory.oom_control"), "under_oom 0\noom_kill 3\n");
    csn_cgroup_read_events(&g, &u);
    assert_int_equal(u.memory_peak, 4096);
    assert_int_equal(u.memory_oom_kills, 3);
    assert_true(u.pids_limit_hits == CSN_CGROUP_UNKNOWN);
    user_layout("cpu memory pids\n");
    assert_int_equal(create(&host, "b", &all, &g, NULL), 0);
    put(at("v2 mount/user/app/caisson-b/memory.peak"), "8192\n");
    put(at("v2 mount/user/app/caisson-b/memory.events"),
        "low 0\nhigh 1\nmax 25\noom 3\noom_kill 2\noom_group_kill 9\n");
    put(at("v2 mount/user/app/caisson-b/pids.events"), "max 7\n");
    csn_cgroup_read_events(&g, &u);
    assert_int_equal(u.memory_peak, 8192);
    assert_int_equal(u.memory_oom_kills, 2);
    assert_int_equal(u.pids_limit_hits, 7);
    assert_int_equal(fake_rmdir(g.dirs[0].path), 0);
    csn_cgroup_read_events(&g, &u);
    assert_true(u.memory_oom_kills == CSN_CGROUP_UNKNOWN);
    assert_int_equal(csn_cgroup_remove(&g), 0); /* gone already */
    csn_cgroup_read_events(&(csn_cgroup){0}, &u);
    assert_true(u.memory_peak == CSN_CGROUP_UNKNOWN);
}

static void sweep_removes_old_empty_groups_of_the_user(void **state)
{
    (void)state;
    user_layout("cpu memory pids\n");
    v1_layout();
    mount_v2("/user/app/svc", "/");
    host.uid = geteuid();
    must(fake_mkdir(at("v2 mount/user/app/caisson-old")) == 0 &&
             fake_mkdir(at("v2 mount/user/caisson-busy")) == 0 &&
             fake_mkdir(at("v2 mount/user/other-old")) == 0 &&
             fake_mkdir(at("v2 mount/user/caisson-")) == 0 &&
             fake_mkdir(at("v2 mount/user/app/svc/caisson-deep")) == 0,
         "make");
    put(at("v2 mount/user/caisson-busy/cgroup.procs"), "12\n");
    /* all of them were made this moment */
    assert_int_equal(csn_cgroup_sweep(&host, 3600), 0);
    assert_true(exists(at("v2 mount/user/app/caisson-old")));
    host.uid++;
    assert_int_equal(csn_cgroup_sweep(&host, 0), 0);
    host.uid--;
    assert_int_equal(csn_cgroup_sweep(&host, 0), 2);
    assert_false(exists(at("v2 mount/user/app/caisson-old")));
    assert_false(exists(at("v2 mount/user/app/svc/caisson-deep")));
    assert_true(exists(at("v2 mount/user/caisson-busy")));
    assert_true(exists(at("v2 mount/user/other-old")));
    assert_true(exists(at("v2 mount/user/caisson-")));
}

static void probe_fails_when_proc_is_unreadable(void **state)
{
    csn_cgroup_offer offer[CSN_CGROUP_KINDS];

    (void)state;
    user_layout("cpu memory pids\n");
    host.mountinfo = at("nowhere");
    assert_int_equal(csn_cgroup_probe(&host, offer), -ENOENT);
    assert_int_equal(csn_cgroup_sweep(&host, 0), -ENOENT);
    /* but a kernel without control groups has no such file either */
    host.self_cgroup = at("nowhere");
    assert_int_equal(memory_reason(), CSN_CGROUP_NOT_MOUNTED);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(create_writes_the_limits_of_v2),
        T(create_leaves_other_controllers_unlimited),
        T(create_refuses_limits_it_cannot_express),
        T(plan_enables_missing_controllers),
        T(plan_skips_groups_with_processes),
        T(probe_reports_controllers_that_are_not_enabled),
        T(root_uses_the_group_caisson),
        T(root_in_a_container_is_placed_like_a_user),
        T(probe_refuses_groups_outside_the_mount),
        T(probe_prefers_a_writable_mount),
        T(create_writes_the_limits_of_v1),
        T(plan_names_every_group_and_creates_none),
        T(failed_create_removes_the_new_parent),
        T(failed_create_leaves_no_group),
        T(probe_reports_groups_that_are_not_delegated),
        T(events_are_read_and_missing_files_are_unknown),
        T(sweep_removes_old_empty_groups_of_the_user),
        T(probe_fails_when_proc_is_unreadable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
