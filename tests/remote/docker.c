/* docker.c: what only the docker backend promises, against a real engine (doubles/engine.mjs).
 *
 * Between backend and engine stands a proxy of this file: it counts requests and breaks the
 * line where a test says. What is shown: the walls of a container; that it ends with its owner
 * and at its lifetime, whatever is inside; that a line that breaks is an unknown end and no
 * second run; and that nothing is left behind, which every test's end asks of the engine
 * itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "caisson/caisson.h"
#include "remote/http.h"
#include "remote/unix_proxy.h"
#include "support/support.h"

#define LONG_MS 120000u

static char *dir, *engine; /* the engine's own socket */
static unix_proxy proxy;
static csn_http *http;
static csn_sandbox *sb;
static csn_error *err;

#define E (csn_error_free(err), err = NULL, &err)

/* ---- the engine's own word -------------------------------------------------------------- */

static char *ask(const char *method, const char *path, const char *body)
{
    static const char *const headers[] = {"Content-Type: application/json", NULL};
    csn_autores r = {0};
    char url[512];

    snprintf(url, sizeof(url), "http://engine%s", path);
    const csn_http_req q = {.method = method,
                            .url = url,
                            .headers = headers,
                            .body = body,
                            .body_len = body ? strlen(body) : 0,
                            .deadline_ns = csn_deadline_in(LONG_MS)};
    assert_int_equal(csn_http_do(http, &q, &r, NULL), CSN_OK);
    return strdup(r.body.data ? r.body.data : "");
}

static int containers(void)
{
    char *text = ask("GET", "/containers/json?all=true", NULL);
    int n = 0;

    for (const char *p = text; (p = strstr(p, "\"Id\":")); p++)
        n++;
    free(text);
    return n;
}

/* What ends by itself takes a moment. */
static bool all_end(void)
{
    for (unsigned waited = 0; waited < LONG_MS; waited += 50) {
        if (containers() == 0)
            return true;
        csn_test_nap(50);
    }
    return false;
}

/* ---- the fixture ------------------------------------------------------------------------ */

static int setup(void **state)
{
    char *host;

    (void)state;
    dir = csn_test_tmpdir();
    setenv("XDG_STATE_HOME", dir, 1);
    setenv("XDG_RUNTIME_DIR", dir, 1);
    unsetenv("CAISSON_BACKEND");
    char *path = csn_test_join(dir, "proxy");
    unix_proxy_start(&proxy, path, engine);
    host = csn_test_format("unix://%s", path);
    setenv("DOCKER_HOST", host, 1);
    free(host);
    free(path);
    return csn_http_new("docker", engine, &http, NULL) == CSN_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    csn_close(sb);
    sb = NULL;
    bool clean = all_end();
    unix_proxy_end(&proxy);
    csn_http_free(http);
    csn_test_remove(dir);
    free(dir);
    csn_error_free(err);
    err = NULL;
    return clean ? 0 : -1;
}

#define CFG(...)                                                                               \
    (&(csn_config){                                                                            \
        .size = sizeof(csn_config), .backend = "docker", .audit = "none", __VA_ARGS__})

static void opened(csn_config *c)
{
    csn_status st = csn_open(c, &sb, E);

    if (st < 0)
        print_message("%s\n", csn_error_message(err));
    assert_int_equal(st, CSN_OK);
}

static csn_status run(const char *command, csn_exec_result **ret)
{
    return csn_sh(sb, command, CSN_OPTS(csn_exec_opts, .timeout_ms = LONG_MS), ret, E);
}

/* Its stdout; it must exit 0. Freed by the caller. */
static char *out(const char *command)
{
    csn_exec_result *r = NULL;
    csn_status st = run(command, &r);

    if (st < 0)
        print_message("%s: %s\n", command, csn_error_message(err));
    assert_int_equal(st, CSN_OK);
    if (r->exit_code != 0)
        print_message("%s: %s\n", command, r->err.data);
    assert_int_equal(r->exit_code, 0);
    char *text = strdup(r->out.data);
    csn_exec_result_free(r);
    return text;
}

static void gives(const char *command, const char *want)
{
    char *have = out(command);

    assert_string_equal(have, want);
    free(have);
}

/* ---- walls ------------------------------------------------------------------------------ */

static void walls_stand(void **state)
{
    (void)state;
    opened(CFG(0));
    gives("grep -c '^Cap.*:.0000000000000000$' /proc/self/status", "5\n");
    gives("grep NoNewPrivs /proc/self/status", "NoNewPrivs:\t1\n");
    gives("grep Seccomp: /proc/self/status", "Seccomp:\t2\n");
    gives("ls /sys/class/net", "lo\n");
    gives("grep -c caisson /proc/self/mountinfo | sed s/[1-9][0-9]*/some/", "some\n");
    gives("[ ! -e /var/run/docker.sock ] && echo none", "none\n");
    /* the holder is another user's */
    gives("kill -9 1 2>/dev/null; kill -STOP 7 2>/dev/null; [ ! -r /proc/1/environ ] && "
          "echo out of reach",
          "out of reach\n");
}

static void image_that_is_not_there(void **state)
{
    csn_exec_result *r = NULL;

    (void)state;
    opened(CFG(.image = "no-such/image:1"));
    assert_int_equal(run("true", &r), CSN_NOT_FOUND);
    assert_non_null(strstr(csn_error_message(err), "no-such/image:1"));
    assert_string_equal(csn_error_hint(err), "docker pull no-such/image:1");
    assert_int_equal(csn_open(CFG(.image = "a b"), &sb, E), CSN_INVALID);
}

static void engines_elsewhere_are_refused(void **state)
{
    char *before = strdup(getenv("DOCKER_HOST"));

    (void)state;
    setenv("DOCKER_HOST", "tcp://127.0.0.1:2375", 1);
    assert_int_equal(csn_open(CFG(0), &sb, E), CSN_UNSUPPORTED);
    setenv("DOCKER_HOST", "unix:///nonexistent/s", 1);
    assert_int_equal(csn_open(CFG(0), &sb, E), CSN_UNAVAILABLE);
    assert_non_null(strstr(csn_error_message(err), "/nonexistent/s"));
    assert_non_null(strstr(csn_error_hint(err), "DOCKER_HOST"));
    setenv("DOCKER_HOST", before, 1);
    free(before);
}

static void options_it_lacks_are_refused(void **state)
{
    static const char *const some[] = {"example.org", NULL}, *const port[] = {"8080", NULL};

    (void)state;
    assert_int_equal(csn_open(CFG(.net_allow = some), &sb, E), CSN_UNSUPPORTED);
    assert_int_equal(csn_open(CFG(.publish = port), &sb, E), CSN_UNSUPPORTED);
    assert_int_equal(csn_open(CFG(.read = some), &sb, E), CSN_UNSUPPORTED);
    assert_int_equal(csn_open(CFG(.file_max = 4096), &sb, E), CSN_UNSUPPORTED);
}

/* ---- working directory ------------------------------------------------------------------ */

/* Tags an image that differs from the test's as `changes` says. */
static void derive_image(const char *name, const char *changes)
{
    char *body = csn_test_format("{\"Image\":\"%s\",\"Cmd\":[\"true\"]}",
                                 getenv("CAISSON_DOCKER_IMAGE"));
    char *made = ask("POST", "/containers/create", body), id[65] = "";

    assert_int_equal(sscanf(strstr(made, "\"Id\":"), "\"Id\":\"%64[0-9a-f]", id), 1);
    char *path = csn_test_format("/commit?container=%s&repo=%s&tag=1&%s", id, name, changes);
    free(ask("POST", path, NULL));
    free(path);
    path = csn_test_format("/containers/%s?force=true", id);
    free(ask("DELETE", path, NULL));
    free(path);
    free(made);
    free(body);
}

static void image_without_a_directory_gets_a_workspace(void **state)
{
    (void)state;
    derive_image("bare", "changes=WORKDIR%20/");
    derive_image("bare-user", "changes=WORKDIR%20/&changes=USER%201000");
    opened(CFG(0));
    gives("pwd", "/work\n"); /* the image's own */
    csn_close(sb);
    opened(CFG(.image = "bare:1"));
    gives("pwd; echo x >file; ls", "/workspace\nfile\n");
    csn_close(sb);
    opened(CFG(.image = "bare-user:1"));
    gives("id -u; pwd; echo x >file; ls", "1000\n/workspace\nfile\n");
}

/* /proc has links that no command may read and links whose size is not that of their target. */
static void search_from_the_root_skips_what_it_may_not_read(void **state)
{
    csn_grep_result *lines = NULL;
    csn_file_list *found = NULL;

    (void)state;
    opened(CFG(0));
    gives("mkdir -p /stuff/shut; echo needle >/stuff/shut/in; echo needle >/stuff/plain-text; "
          "chmod 0 /stuff/shut",
          "");
    csn_status st = csn_glob(sb, "**/{plain-text,shut,in}", "/", 0, &found, E);
    if (st < 0)
        print_message("%s\n", csn_error_message(err));
    assert_int_equal(st, CSN_OK);
    assert_int_equal(found->count, 2);
    assert_string_equal(found->items[0].path, "stuff/plain-text");
    assert_string_equal(found->items[1].path, "stuff/shut");
    csn_file_list_free(found);
    assert_int_equal(csn_grep(sb, "needle",
                              CSN_OPTS(csn_grep_opts, .path = "/", .glob = "plain-text"),
                              &lines, E),
                     CSN_OK);
    assert_int_equal(lines->count, 1);
    assert_string_equal(lines->items[0].path, "stuff/plain-text");
    csn_grep_result_free(lines);
}

/* ---- host directories ------------------------------------------------------------------- */

static void named_directories_are_mounted(void **state)
{
    char *ws = csn_test_join(dir, "ws"), *ro = csn_test_join(dir, "ro");
    char *file = csn_test_join(ws, "made"), *mapped = csn_test_format("%s:/inside:ro", ro);
    const char *const more[] = {mapped, NULL};

    (void)state;
    csn_test_mkdir(ws);
    csn_test_mkdir(ro);
    char *given = csn_test_join(ro, "given");
    csn_test_put(given, "text\n", 5);
    free(given);
    opened(CFG(.workspace = ws, .workspaces = more));
    char *where = csn_test_format("%s\n", ws);
    gives("pwd", where);
    gives("echo x >made; cat /inside/given", "text\n");
    gives("{ echo y >/inside/new; } 2>/dev/null || echo refused", "refused\n");
    assert_true(csn_test_exists(file));
    struct stat st;
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_uid, getuid());
    csn_close(sb);
    sb = NULL;
    /* with the socket in it everything would be root's */
    assert_int_equal(csn_open(CFG(.workspace = dir), &sb, E), CSN_DENIED);
    assert_int_equal(csn_open(CFG(.workspace = "/"), &sb, E), CSN_INVALID);
    assert_int_equal(csn_open(CFG(.workspace = "/nonexistent"), &sb, E), CSN_NOT_FOUND);
    assert_int_equal(csn_open(CFG(.workspace = file), &sb, E), CSN_WRONG_TYPE);
    free(where);
    free(mapped);
    free(file);
    free(ro);
    free(ws);
}

/* ---- life ------------------------------------------------------------------------------- */

static void it_ends_with_an_owner_that_is_killed(void **state)
{
    int told[2];
    char byte;

    (void)state;
    assert_int_equal(pipe(told), 0);
    pid_t pid = fork();
    if (pid == 0) {
        csn_sandbox *own = NULL;
        csn_exec_result *r = NULL;
        if (csn_open(CFG(0), &own, NULL) == CSN_OK &&
            csn_sh(own, "setsid sleep 1000 >/dev/null 2>&1 &", NULL, &r, NULL) == CSN_OK)
            (void)!write(told[1], "x", 1);
        for (;;)
            pause();
    }
    assert_int_equal(read(told[0], &byte, 1), 1);
    assert_int_equal(containers(), 1);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(told[0]);
    close(told[1]);
    assert_true(all_end());
}

/* Whatever is tried inside. */
static void lifetime_cannot_be_stopped_from_inside(void **state)
{
    csn_exec_result *r = NULL;

    (void)state;
    opened(CFG(.flags = CSN_OPEN_DETACHED, .lifetime_ms = 3000));
    csn_status st = run("for p in /proc/[0-9]*; do kill -STOP ${p#/proc/}; done 2>/dev/null; "
                        "while :; do sleep 1; done",
                        &r);
    csn_exec_result_free(r);
    assert_true(st == CSN_OK || st == CSN_GONE);
    assert_true(all_end());
    r = NULL;
    assert_int_equal(run("true", &r), CSN_GONE);
}

static void detached_is_found_and_ended(void **state)
{
    char *id = NULL, *ws = csn_test_join(dir, "ws");
    csn_exec_result *r = NULL;

    (void)state;
    csn_test_mkdir(ws);
    opened(CFG(.flags = CSN_OPEN_DETACHED, .workspace = ws));
    gives("echo kept >/tmp/file", "");
    id = strdup(csn_id(sb));
    csn_close(sb);
    sb = NULL;
    free(ws);
    assert_int_equal(containers(), 1);
    char *through = strdup(getenv("DOCKER_HOST")),
         *direct = csn_test_format("unix://%s", engine);
    setenv("DOCKER_HOST", direct, 1); /* for all it knows, another engine */
    assert_int_equal(csn_connect(id, &sb, E), CSN_UNAVAILABLE);
    assert_non_null(strstr(csn_error_hint(err), through));
    setenv("DOCKER_HOST", through, 1);
    free(direct);
    free(through);
    assert_int_equal(csn_connect(id, &sb, E), CSN_OK);
    gives("cat /tmp/file", "kept\n");
    assert_int_equal(csn_extend(sb, 600000, E), CSN_OK);
    assert_int_equal(csn_destroy(sb, E), CSN_OK);
    assert_int_equal(csn_destroy(sb, E), CSN_OK);
    assert_int_equal(run("true", &r), CSN_GONE);
    assert_int_equal(containers(), 0);
    free(id);
}

/* ---- a line that breaks ----------------------------------------------------------------- */

static void cut_anywhere_is_an_unknown_end(void **state)
{
    (void)state;
    opened(CFG(0));
    gives(": >/tmp/runs", "");
    /* into the head, into frames, between them, into the last words */
    for (int at = 0; at < 300; at += at < 180 ? 60 : 7) {
        csn_exec_result *r = NULL;

        unix_proxy_cut(&proxy, "POST /exec/", at);
        csn_status st = run("printf x >>/tmp/runs; echo one; echo two >&2; echo three", &r);
        bool broken = unix_proxy_cuts(&proxy) > 0;
        if (!broken) { /* it was shorter than that */
            assert_int_equal(st, CSN_OK);
            assert_int_equal(r->exit_code, 0);
        } else if (st == CSN_OK) {
            assert_int_equal(r->exit_code, -1);
            assert_true(r->failed);
            assert_non_null(strstr(r->err.data, "not known"));
        } else {
            assert_true(st == CSN_UNAVAILABLE || st == CSN_IO);
        }
        unix_proxy_cut(&proxy, NULL, 0);
        csn_exec_result_free(r);
    }
    char *runs = out("cat /tmp/runs");
    assert_true(strlen(runs) <= 21);
    free(runs);
}

static atomic_bool heard;

static int hear(void *ctx, int stream, const void *data, size_t len)
{
    (void)ctx;
    (void)stream;
    (void)data;
    heard = len > 0;
    return 0;
}

static void *gone_soon(void *arg)
{
    (void)arg;
    while (!heard)
        csn_test_nap(5);
    unix_proxy_gone(&proxy);
    return NULL;
}

static void engine_that_is_gone_is_an_unknown_end(void **state)
{
    csn_exec_result *r = NULL;
    pthread_t t;

    (void)state;
    opened(CFG(0));
    gives("true", "");
    heard = false;
    int starts = unix_proxy_count(&proxy, "/start HTTP");
    assert_int_equal(pthread_create(&t, NULL, gone_soon, NULL), 0);
    assert_int_equal(csn_sh(sb, "echo begun; sleep 1000",
                            CSN_OPTS(csn_exec_opts, .timeout_ms = LONG_MS, .on_output = hear),
                            &r, E),
                     CSN_OK);
    pthread_join(t, NULL);
    assert_int_equal(r->exit_code, -1);
    assert_true(r->failed);
    assert_string_equal(r->out.data, "begun\n");
    assert_non_null(strstr(r->err.data, "not known"));
    assert_int_equal(unix_proxy_count(&proxy, "/start HTTP"), starts + 1);
    csn_exec_result_free(r);
    r = NULL;
    assert_int_equal(run("true", &r), CSN_UNAVAILABLE);
}

static void lost_answer_to_create_leaves_nothing(void **state)
{
    csn_exec_result *r = NULL;

    (void)state;
    opened(CFG(0));
    unix_proxy_cut(&proxy, "POST /containers/create", 0);
    assert_int_equal(run("true", &r), CSN_UNAVAILABLE);
    assert_int_equal(unix_proxy_count(&proxy, "/containers/create"), 1);
    assert_int_equal(containers(), 0);
    unix_proxy_cut(&proxy, NULL, 0);
    gives("echo again", "again\n");
}

/* The engine hangs up on, or refuses with a status of its own, a command that is started while
 * the container is torn down. */
static void container_that_ends_during_a_start_is_gone(void **state)
{
    csn_exec_result *r = NULL;
    char path[128], id[65] = "";

    (void)state;
    opened(CFG(0));
    gives("true", "");
    char *list = ask("GET", "/containers/json", NULL);
    assert_int_equal(sscanf(strstr(list, "\"Id\":"), "\"Id\":\"%64[0-9a-f]", id), 1);
    snprintf(path, sizeof(path), "/containers/%s?force=true", id);
    free(ask("DELETE", path, NULL));
    assert_true(all_end());
    free(list);
    unix_proxy_cut(&proxy, "POST /containers/", 0);
    assert_int_equal(run("true", &r), CSN_GONE);
    assert_true(unix_proxy_cuts(&proxy) > 0);
}

/* ---- many at once ----------------------------------------------------------------------- */

static void *first_call(void *arg)
{
    csn_exec_result *r = NULL;

    (void)arg;
    if (csn_sh(sb, "echo here", CSN_OPTS(csn_exec_opts, .timeout_ms = LONG_MS), &r, NULL) < 0)
        return NULL;
    bool ok = strcmp(r->out.data, "here\n") == 0;
    csn_exec_result_free(r);
    return ok ? sb : NULL;
}

static void one_create_for_sixty_four_first_calls(void **state)
{
    pthread_t t[64];
    int good = 0;

    (void)state;
    opened(CFG(0));
    for (size_t i = 0; i < 64; i++)
        assert_int_equal(pthread_create(&t[i], NULL, first_call, NULL), 0);
    for (size_t i = 0; i < 64; i++) {
        void *ok = NULL;
        pthread_join(t[i], &ok);
        good += ok != NULL;
    }
    assert_int_equal(good, 64);
    assert_int_equal(unix_proxy_count(&proxy, "/containers/create"), 1);
    assert_int_equal(containers(), 1);
}

int main(int argc, char **argv)
{
    const char *host = getenv("DOCKER_HOST");

    if (!getenv("CSN_TEST_ENGINE") || !host) {
        printf("1..0 # SKIP no engine: run this by doubles/engine.mjs\n");
        return 0;
    }
    engine = strdup(host + strlen("unix://"));
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(walls_stand),
        T(image_that_is_not_there),
        T(engines_elsewhere_are_refused),
        T(options_it_lacks_are_refused),
        T(image_without_a_directory_gets_a_workspace),
        T(search_from_the_root_skips_what_it_may_not_read),
        T(named_directories_are_mounted),
        T(it_ends_with_an_owner_that_is_killed),
        T(lifetime_cannot_be_stopped_from_inside),
        T(detached_is_found_and_ended),
        T(cut_anywhere_is_an_unknown_end),
        T(engine_that_is_gone_is_an_unknown_end),
        T(lost_answer_to_create_leaves_nothing),
        T(container_that_ends_during_a_start_is_gone),
        T(one_create_for_sixty_four_first_calls),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(engine);
    return failed;
}
