/* cycle_jails.c: jails made and destroyed, thousands of times in one process.
 *
 *   cycle_jails [N]     N cycles (default 300): open, one command, destroy, close
 *
 * A leak of one descriptor, thread, mount, namespace, group or allocation in a cycle is N of
 * them at the end, so the limits here are far below N and far above what a busy machine does.
 * The first tenth warms up: allocators and lazily loaded things settle. Speaks TAP. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "caisson/caisson.h"
#include "child.h"
#include "leftover.h"
#include "support/support.h"

#define N_DEFAULT 300
#define WAIT_MS   60000

typedef struct figures {
    size_t fds, threads, rss_kb, net, pid;
} figures;

static int number;
static unsigned failed;

static size_t in_status(const char *key)
{
    char *text = csn_test_get("/proc/self/status", NULL), *at = text ? strstr(text, key) : NULL;
    size_t n = at ? strtoul(at + strlen(key), NULL, 10) : 0;

    free(text);
    return n;
}

/* Anonymous memory only: pages of libraries come and go with the page cache. */
static figures figures_now(void)
{
    return (figures){.fds = csn_test_fd_count(),
                     .threads = in_status("\nThreads:"),
                     .rss_kb = in_status("\nRssAnon:"),
                     .net = leftover_namespaces("net"),
                     .pid = leftover_namespaces("pid")};
}

/* Without an audit log: it is meant to stay, and its files would be taken for a leak. */
static bool cycle(const char *ws, size_t i)
{
    const char *argv[] = {"/bin/true", NULL};
    const csn_config config = {.size = sizeof(config),
                               .backend = "jail",
                               .workspace = ws,
                               .audit = "none",
                               .pids_max =
                                   i % 2 ? 64 : 0}; /* with a control group and without */
    csn_sandbox *sb = NULL;
    csn_exec_result *r = NULL;
    csn_error *err = NULL;

    csn_status st = csn_open(&config, &sb, &err);
    if (st == CSN_OK)
        st = csn_exec(sb, argv, NULL, &r, &err);
    if (st == CSN_OK)
        st = csn_destroy(sb, &err);
    if (st < 0)
        printf("# cycle %zu: %s\n", i, csn_error_message(err));
    bool ok = st == CSN_OK && r->exit_code == 0;
    csn_error_free(err);
    csn_exec_result_free(r);
    csn_close(sb);
    (void)leftover_no_children(); /* the orphans we adopted: keepers and sweepers */
    return ok;
}

static void report(bool ok, const char *what, size_t before, size_t after)
{
    printf("%sok %d - %s: %zu, then %zu\n", ok ? "" : "not ", ++number, what, before, after);
    failed += !ok;
}

static bool children_end(void)
{
    int64_t until = csn_child_now_ms() + WAIT_MS;

    while (!leftover_no_children()) {
        if (csn_child_now_ms() > until)
            return false;
        csn_child_nap(5);
    }
    return true;
}

/* Others make groups and namespaces too, a few at a time. */
static void check(leftover_base *base, size_t n, figures a, figures z, size_t bad)
{
    size_t noise = n / 2;

    report(bad == 0, "cycles that failed", 0, bad);
    report(children_end(), "processes are gone, cycles", n, n);
    report(z.fds == a.fds, "descriptors", a.fds, z.fds);
    report(z.threads == a.threads, "threads", a.threads, z.threads);
    report(z.net <= a.net + noise, "network namespaces on this host", a.net, z.net);
    report(z.pid <= a.pid + noise, "pid namespaces on this host", a.pid, z.pid);
    report(leftover_mounts(base) == 0, "mounts", base->mounts, base->mounts);
    report(leftover_directories(base) == 0, "directories", 0, 0);
    size_t groups = leftover_groups(base);
    report(groups == 0, "control groups", 0, groups);
#if defined(__SANITIZE_ADDRESS__)
    printf("ok %d - memory # SKIP a sanitizer keeps what is freed\n", ++number);
#else
    report(z.rss_kb <= a.rss_kb + 64 + n / 20, "KB of memory", a.rss_kb, z.rss_kb);
#endif
}

int main(int argc, char **argv)
{
    size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 0, bad = 0;
    char *top = csn_test_tmpdir(), *ws = csn_test_join(top, "ws");
    char *run = csn_test_join(top, "caisson"); /* both: what is for one is not for the other */
    leftover_base base;
    figures warm = {0};

    n = n < 20 ? N_DEFAULT : n;
    setvbuf(stdout, NULL, _IOLBF, 0);
    csn_test_mkdir(ws);
    setenv("XDG_RUNTIME_DIR", top, 1);
    setenv("XDG_STATE_HOME", top, 1);
    csn_child_adopt();
    leftover_note(&base, ws, run, run);
    if (!cycle(ws, 0) && !getenv("CSN_MUST_WORK")) {
        printf("1..0 # SKIP no jail here\n");
    } else {
        for (size_t i = 1; i < n; i++) {
            if (i == n / 10)
                warm = figures_now();
            bad += !cycle(ws, i);
        }
        (void)children_end();
        check(&base, n, warm, figures_now(), bad);
        printf("1..%d\n", number);
    }
    leftover_release(&base);
    csn_test_remove(top);
    free(top);
    free(ws);
    free(run);
    return failed != 0;
}
