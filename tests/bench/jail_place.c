/* jail_place.c: where bench_jail works, and the single things that are timed.
 *
 * Every run is checked, exit status and output: a benchmark of something that failed quickly is
 * worse than none. Both sides get the same payload, pipes and workspace. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jail.h"
#include "measure.h"

bench_place bench;

/* ---- the place ---- */

static char **words(const char *const *first, const char *const *more)
{
    size_t n = 0, m = 0;

    while (first[n])
        n++;
    while (more[m])
        m++;
    char **v = calloc(n + m + 1, sizeof(*v));
    for (size_t i = 0; v && i < n + m; i++)
        v[i] = strdup(i < n ? first[i] : more[i - n]);
    if (!v)
        bench_die("out of memory");
    return v;
}

static char *find_bwrap(void)
{
    static const char *const places[] = {"/usr/bin/bwrap", "/usr/local/bin/bwrap",
                                         "/bin/bwrap"};

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if (access(places[i], X_OK) == 0)
            return strdup(places[i]);
    return NULL;
}

/* Top-level links of a merged /usr, as they are here: the payload's loader is behind one. */
static size_t add_links(const char **to)
{
    static const char *const links[][2] = {{"usr/bin", "/bin"},
                                           {"usr/sbin", "/sbin"},
                                           {"usr/lib", "/lib"},
                                           {"usr/lib64", "/lib64"}};
    size_t n = 0;
    struct stat st;

    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
        if (lstat(links[i][1], &st) < 0)
            continue;
        bool link = S_ISLNK(st.st_mode);
        to[n++] = link ? "--symlink" : "--ro-bind";
        to[n++] = link ? links[i][0] : links[i][1];
        to[n++] = links[i][1];
    }
    return n;
}

/* All namespaces, a read-only system, own /proc, /dev and /tmp, one writable directory, no
 * environment, no capabilities: the nearest to what a jail is by default. It has neither
 * Landlock nor seccomp nor loopback, so it does less than what it is compared with. */
static void make_bwrap(void)
{
    char *program = find_bwrap();
    const char *argv[64] = {program,         "--unshare-all", "--die-with-parent",
                            "--new-session", "--ro-bind",     "/usr",
                            "/usr"};
    size_t n = 7;

    if (!program)
        return;
    n += add_links(argv + n);
    const char *const rest[] = {"--proc", "/proc",      "--dev",      "/dev",   "--tmpfs",
                                "/tmp",   "--bind",     bench.ws,     bench.ws, "--chdir",
                                bench.ws, "--clearenv", "--cap-drop", "ALL",    NULL};
    memcpy(argv + n, rest, sizeof(rest));
    bench.bwrap = words(argv, (const char *const[]){BENCH_PAYLOAD, NULL});
    bench.bwrap_sh = words(argv, (const char *const[]){"sh", "-c", "echo hi", NULL});
    free(program);
}

static void make_file(void)
{
    char block[4096];

    snprintf(bench.file, sizeof(bench.file), "%s/4k", bench.ws);
    memset(block, 'x', sizeof(block));
    int fd = open(bench.file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, block, sizeof(block)) != (ssize_t)sizeof(block))
        bench_die("%s: %m", bench.file);
    close(fd);
}

/* State and runtime directory are private, so that neither the user's audit logs nor their
 * number have a part in it. */
void bench_place_make(void)
{
    const char *program = getenv("CAISSON");
    char path[128];
    const char *tmp = getenv("TMPDIR");

    snprintf(bench.top, sizeof(bench.top), "%.40s/csn-bench-XXXXXX",
             tmp && *tmp == '/' ? tmp : "/var/tmp");
    if (!mkdtemp(bench.top))
        bench_die("mkdtemp: %m");
    snprintf(bench.ws, sizeof(bench.ws), "%s/ws", bench.top);
    snprintf(path, sizeof(path), "%s/state", bench.top);
    setenv("XDG_STATE_HOME", path, 1);
    if (mkdir(bench.ws, 0755) < 0 || mkdir(path, 0700) < 0)
        bench_die("mkdir: %m");
    snprintf(path, sizeof(path), "%s/run", bench.top);
    setenv("XDG_RUNTIME_DIR", path, 1);
    if (mkdir(path, 0700) < 0 || chdir(bench.ws) < 0)
        bench_die("%s: %m", path);
    unsetenv("CAISSON_BACKEND");
    make_file();
    make_bwrap();
    if (program)
        bench.caisson = words((const char *const[]){program, "run", "--", NULL},
                              (const char *const[]){BENCH_PAYLOAD, NULL});
}

static void free_words(char **v)
{
    for (size_t i = 0; v && v[i]; i++)
        free(v[i]);
    free(v);
}

void bench_place_remove(void)
{
    char *rm[] = {"/bin/rm", "-rf", bench.top, NULL};

    if (chdir("/") == 0)
        (void)bench_spawn(rm, "");
    free_words(bench.caisson);
    free_words(bench.bwrap);
    free_words(bench.bwrap_sh);
}

/* ---- a program ---- */

/* Until both ends are closed, as every caller that keeps output must. */
static size_t read_both(int a, int b, char *out, size_t room)
{
    struct pollfd pf[2] = {{.fd = a, .events = POLLIN}, {.fd = b, .events = POLLIN}};
    size_t len = 0;

    while (pf[0].fd >= 0 || pf[1].fd >= 0) {
        if (poll(pf, 2, -1) < 0)
            bench_die("poll: %m");
        for (int i = 0; i < 2; i++) {
            if (pf[i].fd < 0 || !pf[i].revents)
                continue;
            ssize_t n = read(pf[i].fd, out + len, room - len);
            if (n <= 0)
                pf[i].fd = -1;
            else
                len += (size_t)n;
        }
    }
    return len;
}

uint64_t bench_spawn(char *const argv[], const char *expect)
{
    extern char **environ;
    posix_spawn_file_actions_t fa;
    int out[2], err[2], status = 0;
    char said[4096];
    pid_t pid;
    uint64_t from = bench_now_ns();

    if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
        bench_die("pipe: %m");
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_adddup2(&fa, out[1], 1);
    posix_spawn_file_actions_adddup2(&fa, err[1], 2);
    int rc = posix_spawn(&pid, argv[0], &fa, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&fa);
    if ((errno = rc) != 0)
        bench_die("%s: %m", argv[0]);
    close(out[1]);
    close(err[1]);
    size_t len = read_both(out[0], err[0], said, sizeof(said) - 1);
    if (waitpid(pid, &status, 0) != pid)
        bench_die("wait: %m");
    close(out[0]);
    close(err[0]);
    uint64_t took = bench_now_ns() - from;
    said[len] = '\0';
    if (status != 0 || strcmp(said, expect) != 0)
        bench_die("%s: wait status %d, output '%s'", argv[0], status, said);
    return took;
}

/* ---- the library ---- */

/* Nothing but the workspace is said: what is measured is what everybody gets. */
csn_sandbox *bench_open(void)
{
    const csn_config config = {
        .size = sizeof(config), .backend = "jail", .workspace = bench.ws};
    csn_sandbox *sb = NULL;
    csn_error *err = NULL;

    if (csn_open(&config, &sb, &err) < 0)
        bench_die("open: %s", csn_error_message(err));
    return sb;
}

static void check(const char *what, const csn_exec_result *r, const char *expect)
{
    if (r->exit_code != 0 || strcmp(r->out.data ? r->out.data : "", expect) != 0)
        bench_die("%s: exit status %d, output '%s'", what, r->exit_code, r->out.data);
}

void bench_exec_true(csn_sandbox *sb)
{
    static const char *const argv[] = {BENCH_PAYLOAD, NULL};
    csn_exec_result *r = NULL;
    csn_error *err = NULL;

    if (csn_exec(sb, argv, NULL, &r, &err) < 0)
        bench_die("exec: %s", csn_error_message(err));
    check("exec", r, "");
    csn_exec_result_free(r);
}

void bench_session_echo(csn_sandbox *sb)
{
    csn_exec_result *r = NULL;
    csn_error *err = NULL;

    if (csn_sh(sb, "echo hi", CSN_OPTS(csn_exec_opts, .session = "bench"), &r, &err) < 0)
        bench_die("session: %s", csn_error_message(err));
    check("session", r, "hi\n");
    csn_exec_result_free(r);
}

void bench_create_run_destroy(void)
{
    csn_sandbox *sb = bench_open();
    csn_error *err = NULL;

    bench_exec_true(sb);
    if (csn_destroy(sb, &err) < 0)
        bench_die("destroy: %s", csn_error_message(err));
    csn_close(sb);
}
