/* e2b.c: what of E2B's protocol only the e2b backend uses: content by plain HTTP, file events,
 * listening to a process again, pausing, network rules.
 *
 * Against the double, through the fault proxy. Whether a way was taken is asked of those two:
 * how many requests of which kind came. */
#include <pthread.h>

#include "remote/fixture.h"

#define BIG (3u * 1024u * 1024u + 7u)

/* ---- content ---------------------------------------------------------------------------- */

static char *big_bytes(void)
{
    char *data = malloc(BIG);
    uint32_t x = 1;

    assert_non_null(data);
    for (size_t i = 0; i < BIG; i++) {
        x = x * 1664525u + 1013904223u;
        data[i] = (char)(x >> 24);
    }
    return data;
}

static void put_host(const char *name, const void *data, size_t len)
{
    char *path = csn_test_join(ws, name);

    csn_test_put(path, data, len);
    free(path);
}

typedef struct got {
    char *data;
    size_t len, max;
} got;

static int take(void *ctx, const void *data, size_t len)
{
    got *g = ctx;

    assert_true(g->len + len <= sizeof(char) * BIG);
    memcpy(g->data + g->len, data, len);
    g->len += len;
    return g->max && g->len >= g->max;
}

/* Reads [from, from + limit); limit 0: all. */
static csn_status read_part(const char *path, uint64_t from, uint64_t limit, got *g)
{
    g->len = 0;
    return csn_read_bytes(sb, path, CSN_OPTS(csn_read_opts, .offset = from, .limit = limit),
                          take, g, E);
}

static int fetches(void)
{
    return count(double_port, "/_double/counts", "GET /files");
}

static void much_content_comes_as_it_is(void **state)
{
    char *big = big_bytes();
    got g = {.data = malloc(BIG)};

    (void)state;
    ready();
    put_host("big", big, BIG);
    put_host("small", big, 5000);
    assert_int_equal(read_part("small", 0, 0, &g), CSN_OK);
    assert_int_equal(g.len, 5000);
    assert_int_equal(fetches(), 0); /* one request is enough for little */
    assert_int_equal(read_part("big", 0, 0, &g), CSN_OK);
    assert_int_equal(g.len, BIG);
    assert_memory_equal(g.data, big, BIG);
    assert_int_equal(fetches(), 1);
    assert_int_equal(read_part("big", 1000001, 1000003, &g), CSN_OK);
    assert_int_equal(g.len, 1000003);
    assert_memory_equal(g.data, big + 1000001, 1000003);
    assert_int_equal(fetches(), 2);
    assert_int_equal(read_part("big", 2000000, 0, &g), CSN_OK); /* to its end */
    assert_int_equal(g.len, BIG - 2000000);
    assert_memory_equal(g.data, big + 2000000, g.len);
    assert_int_equal(fetches(), 3);
    g.max = 100000;
    assert_int_equal(read_part("big", 0, 0, &g), CSN_OK); /* enough is enough */
    free(g.data);
    free(big);
}

/* What a plain GET would read differently from the kernel, a command reads. */
static void some_paths_are_read_by_a_command(void **state)
{
    char *big = big_bytes();
    got g = {.data = malloc(BIG)};
    csn_exec_result *r = NULL;

    (void)state;
    ready();
    put_host("big", big, BIG);
    assert_int_equal(
        csn_sh(sb, "mkdir -p a/b && ln -s a/b link && cp big a/big && rm big", NULL, &r, E),
        CSN_OK);
    csn_exec_result_free(r);
    assert_int_equal(read_part("link/../big", 0, 0, &g), CSN_OK); /* a/big, not big */
    assert_int_equal(g.len, BIG);
    assert_int_equal(csn_read_bytes(sb, "a/big",
                                    CSN_OPTS(csn_read_opts, .flags = CSN_FILE_NOFOLLOW), take,
                                    (g.len = 0, &g), E),
                     CSN_OK);
    assert_int_equal(g.len, BIG);
    assert_int_equal(fetches(), 0);
    free(g.data);
    free(big);
}

static void broken_fetches(void **state)
{
    static const struct {
        const char *rule;
        csn_status want;
    } cases[] = {
        {"{\"match\":\"GET /files\",\"mode\":\"cut\",\"bytes\":100000}", CSN_IO},
        {"{\"match\":\"GET /files\",\"mode\":\"status\",\"status\":404}", CSN_OK},
        {"{\"match\":\"GET /files\",\"mode\":\"status\",\"status\":500,\"times\":9}", CSN_OK},
        {"{\"match\":\"GET /files\",\"mode\":\"json\"}", CSN_OK},
        {"{\"match\":\"GET /files\",\"mode\":\"drop\"}", CSN_OK},
        {"{\"match\":\"GET /files\",\"mode\":\"endless\"}", CSN_OK},
    };
    char *big = big_bytes();
    got g = {.data = malloc(BIG)};

    (void)state;
    ready();
    put_host("big", big, BIG);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fault(cases[i].rule);
        csn_status st = read_part("big", 0, 0, &g);
        if (st != cases[i].want)
            print_message("%s: %s\n", cases[i].rule, csn_status_name(st));
        assert_int_equal(st, cases[i].want);
        if (st == CSN_OK) {
            assert_int_equal(g.len, BIG);
            assert_memory_equal(g.data, big, BIG);
        }
    }
    free(g.data);
    free(big);
}

/* ---- file events ------------------------------------------------------------------------ */

static void see(csn_watch *w, uint32_t kind, const char *path)
{
    csn_event e;

    do
        assert_int_equal(csn_watch_next(w, LONG_MS, &e, E), CSN_OK);
    while (e.kind != kind || (path && strcmp(e.path, path) != 0));
}

/* Without end: until the proxy cuts it. */
static void a_watch_survives_its_stream(void **state)
{
    csn_watch *w = NULL;
    csn_event e;

    (void)state;
    ready();
    fault("{\"match\":\"WatchDir\",\"mode\":\"cut\",\"bytes\":17}"); /* the start event, just */
    assert_int_equal(csn_watch_open(sb, ".", 0, &w, E), CSN_OK);
    put_host("first", "x", 1); /* seen, or lost with the line: then that is told */
    assert_int_equal(csn_watch_next(w, LONG_MS, &e, E), CSN_OK);
    while (e.kind != CSN_EVENT_OVERFLOW)
        assert_int_equal(csn_watch_next(w, LONG_MS, &e, E), CSN_OK);
    put_host("second", "x", 1);
    see(w, CSN_EVENT_CREATE, "second");
    csn_watch_free(w);
}

static void a_watch_ends_with_its_sandbox(void **state)
{
    csn_watch *w = NULL;
    csn_event e;

    (void)state;
    ready();
    assert_int_equal(csn_watch_open(sb, ".", CSN_FILE_RECURSIVE, &w, E), CSN_OK);
    assert_int_equal(csn_destroy(sb, E), CSN_OK);
    csn_status st;
    while ((st = csn_watch_next(w, LONG_MS, &e, E)) == CSN_OK)
        continue;
    assert_int_not_equal(st, CSN_TIMEOUT);
    csn_watch_free(w);
    assert_int_equal(csn_watch_open(sb, ".", 0, &w, E), CSN_GONE);
}

/* ---- a process on a line that breaks ------------------------------------------------------
 */

/* When the process is listened to again it may go on. */
static void *detached(void *arg)
{
    (void)arg;
    while (count(double_port, "/_double/counts", "connected") < 1)
        csn_test_nap(10);
    put_host("go", "", 0);
    return NULL;
}

static void a_process_is_listened_to_again(void **state)
{
    csn_exec_result *r = NULL;
    pthread_t t;

    (void)state;
    ready();
    fault("{\"match\":\"Process/Start\",\"mode\":\"cut\",\"bytes\":60}");
    assert_int_equal(pthread_create(&t, NULL, detached, NULL), 0);
    csn_status st =
        csn_sh(sb, "echo before; while [ ! -e go ]; do sleep 0.02; done; echo after; exit 7",
               CSN_OPTS(csn_exec_opts, .timeout_ms = LONG_MS), &r, E);
    pthread_join(t, NULL);
    assert_int_equal(st, CSN_OK);
    assert_int_equal(r->exit_code, 7); /* the provider's word */
    assert_true(r->failed && r->truncated && !r->timed_out);
    assert_non_null(strstr(r->out.data, "after\n"));
    assert_non_null(strstr(r->err.data, "is missing"));
    assert_int_equal(count(proxy_port, "/_fault", "POST /process.Process/Start"), 1);
    csn_exec_result_free(r);
}

/* A deadline holds for both streams together. */
static void a_process_that_is_found_again_keeps_its_deadline(void **state)
{
    csn_exec_result *r = NULL;

    (void)state;
    ready();
    fault("{\"match\":\"Process/Start\",\"mode\":\"cut\",\"bytes\":60}");
    assert_int_equal(csn_sh(sb, "echo before; sleep 600",
                            CSN_OPTS(csn_exec_opts, .timeout_ms = 3000), &r, E),
                     CSN_OK);
    assert_true(r->timed_out && r->failed && r->exit_code == -1);
    csn_exec_result_free(r);
}

/* ---- pausing ---------------------------------------------------------------------------- */

static void pause_all(void)
{
    static const char *const headers[] = {"X-API-KEY: k", NULL};
    csn_http_res r = {0};
    char url[160];

    snprintf(url, sizeof(url), "http://127.0.0.1:%d/v2/sandboxes", double_port);
    csn_http_req q = {.method = "GET", .url = url, .headers = headers};
    assert_int_equal(csn_http_do(http, &q, &r, NULL), CSN_OK);
    const char *id = strstr(r.body.data, "\"sandboxID\":\"");
    assert_non_null(id);
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/sandboxes/%.19s/pause", double_port,
             id + 13);
    csn_http_res_release(&r);
    q.method = "POST";
    assert_int_equal(csn_http_do(http, &q, &r, NULL), CSN_OK);
    assert_int_equal(r.status, 204);
    csn_http_res_release(&r);
}

static void connecting_wakes_a_paused_sandbox(void **state)
{
    csn_config c = {
        .size = sizeof(c), .backend = "e2b", .audit = "none", .flags = CSN_OPEN_DETACHED};
    csn_exec_result *r = NULL;

    (void)state;
    need_double();
    assert_int_equal(csn_open(&c, &sb, E), CSN_OK);
    assert_int_equal(csn_sh(sb, "echo kept > file", NULL, &r, E), CSN_OK);
    csn_exec_result_free(r);
    char *id = strdup(csn_id(sb));
    pause_all();
    assert_int_equal(csn_sh(sb, "true", NULL, &r, E), CSN_GONE);
    csn_close(sb);
    sb = NULL;
    assert_int_equal(csn_connect(id, &sb, E), CSN_OK);
    assert_int_equal(csn_sh(sb, "cat file", NULL, &r, E), CSN_OK);
    assert_string_equal(r->out.data, "kept\n");
    csn_exec_result_free(r);
    assert_int_equal(csn_destroy(sb, E), CSN_OK);
    free(id);
}

/* ---- network rules ---------------------------------------------------------------------- */

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Opens with these rules and holds what was asked of the provider against `want`. */
static void told(const char *mode, const char *const *allow, const char *const *deny,
                 const char *want)
{
    csn_config c = {.size = sizeof(c),
                    .backend = "e2b",
                    .audit = "none",
                    .name = "n",
                    .network = mode,
                    .net_allow = allow,
                    .net_deny = deny};
    csn_exec_result *r = NULL;

    assert_int_equal(csn_open(&c, &sb, E), CSN_OK);
    assert_int_equal(csn_sh(sb, "true", NULL, &r, E), CSN_OK);
    csn_exec_result_free(r);
    char *last = ask(double_port, "/_double/last", NULL);
    const char *net = strstr(last, "\"metadata\":");
    net = net ? strchr(net, '}') : NULL;
    assert_non_null(net);
    assert_non_null(strstr(last, csn_id(sb))); /* the metadata says whose it is */
    assert_string_equal(net, want);
    free(last);
    csn_close(sb);
    sb = NULL;
}

static void network_rules_mean_the_same_there(void **state)
{
    (void)state;
    need_double();
    told(NULL, NULL, NULL, "}}");
    told("all", NULL, NULL, "}}");
    told("none", NULL, NULL, "},\"allow_internet_access\":false}");
    told(NULL, LIST("ok.test", "*.Deep.test/tcp", "192.0.2.0/24", "198.51.100.7"), NULL,
         "},\"network\":{\"allowOut\":[\"ok.test\",\"*.deep.test\",\"192.0.2.0/24\","
         "\"198.51.100.7/32\"],\"denyOut\":[\"0.0.0.0/0\"]}}");
    told("all", NULL, LIST("192.0.2.0/24"), "},\"network\":{\"denyOut\":[\"192.0.2.0/24\"]}}");
}

static void rules_that_would_mean_something_else_are_refused(void **state)
{
    static const struct {
        const char *mode;
        const char *allow[2], *deny[2];
    } cases[] = {
        {NULL, {"ok.test:443"}, {NULL}},        {NULL, {"ok.test:443/tcp"}, {NULL}},
        {NULL, {"[2001:db8::]"}, {NULL}},       {"all", {NULL}, {"bad.test"}},
        {NULL, {"*.ok.test"}, {"bad.ok.test"}}, {"all", {"10.0.0.0/8"}, {NULL}},
    };

    (void)state;
    need_double();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        csn_config c = {.size = sizeof(c), .backend = "e2b", .network = cases[i].mode};
        if (cases[i].allow[0])
            c.net_allow = cases[i].allow;
        if (cases[i].deny[0])
            c.net_deny = cases[i].deny;
        assert_int_equal(csn_open(&c, &sb, E), CSN_UNSUPPORTED);
        assert_non_null(strstr(csn_error_message(err), "e2b"));
    }
    assert_int_equal(count(double_port, "/_double/counts", "POST /v2/sandboxes"), 0);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(much_content_comes_as_it_is),
        T(some_paths_are_read_by_a_command),
        T(broken_fetches),
        T(a_watch_survives_its_stream),
        T(a_watch_ends_with_its_sandbox),
        T(a_process_is_listened_to_again),
        T(a_process_that_is_found_again_keeps_its_deadline),
        T(connecting_wakes_a_paused_sandbox),
        T(network_rules_mean_the_same_there),
        T(rules_that_would_mean_something_else_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
