/* watch.c: events of files that change below a directory, whoever changes them. */
#include "conformance/conformance.h"

#include <pthread.h>
#include <unistd.h>

#define SOON 60000

static csn_watch *watch(csn_fx *f, const char *path, uint32_t flags)
{
    csn_watch *w = NULL;

    ok(csn_watch_open(f->sb, path, flags, &w, E));
    return w;
}

/* Takes events until one is of this kind and path. */
static void expect(csn_watch *w, uint32_t kind, const char *path)
{
    for (int i = 0; i < 1000; i++) {
        csn_event e;

        ok(csn_watch_next(w, SOON, &e, E));
        if (e.kind == kind && strcmp(e.path, path) == 0)
            return;
        assert_int_not_equal(e.kind, CSN_EVENT_OVERFLOW);
    }
    fail();
}

static void nothing_more(csn_watch *w)
{
    csn_event e;

    while (csn_watch_next(w, 100, &e, NULL) == CSN_OK)
        ;
    fails(CSN_TIMEOUT, csn_watch_next(w, 50, &e, E));
}

static void watch_reports_what_commands_do(csn_fx *f)
{
    AUTO(csn_watch, w);

    csn_fx_run(f, "echo old > old");
    w = watch(f, ".", 0);
    csn_fx_run(f, "echo x > new");
    expect(w, CSN_EVENT_CREATE, "new");
    csn_fx_run(f, "echo more >> old");
    expect(w, CSN_EVENT_MODIFY, "old");
    csn_fx_run(f, "rm new");
    expect(w, CSN_EVENT_DELETE, "new");
    csn_fx_run(f, "mv old renamed");
    expect(w, CSN_EVENT_RENAME, "renamed");
    csn_fx_run(f, "mkdir dir");
    expect(w, CSN_EVENT_CREATE, "dir");
    nothing_more(w);
}

static void watch_reports_what_the_api_does(csn_fx *f)
{
    AUTO(csn_watch, w);

    w = watch(f, ".", 0);
    csn_fx_put(f, "file", "x"); /* atomic: it comes into place by a link or a rename */
    csn_event e;
    bool seen = false;
    while (!seen) {
        ok(csn_watch_next(w, SOON, &e, E));
        seen = strcmp(e.path, "file") == 0 &&
               (e.kind == CSN_EVENT_RENAME || e.kind == CSN_EVENT_CREATE);
    }
    ok(csn_delete(f->sb, "file", 0, E));
    expect(w, CSN_EVENT_DELETE, "file");
}

static void watch_of_directories_says_so(csn_fx *f)
{
    AUTO(csn_watch, w);
    csn_event e;

    w = watch(f, ".", 0);
    csn_fx_run(f, "mkdir dir");
    ok(csn_watch_next(w, SOON, &e, E));
    assert_int_equal(e.is_dir, 1);
    assert_string_equal(e.path, "dir");
}

static void watch_is_flat_unless_recursive(csn_fx *f)
{
    AUTO(csn_watch, flat);
    AUTO(csn_watch, deep);

    csn_fx_run(f, "mkdir -p a/b");
    flat = watch(f, ".", 0);
    deep = watch(f, ".", CSN_FILE_RECURSIVE);
    csn_fx_run(f, "echo x > a/b/f; echo x > top");
    expect(deep, CSN_EVENT_CREATE, "a/b/f");
    expect(deep, CSN_EVENT_CREATE, "top");
    csn_event e;
    do {
        ok(csn_watch_next(flat, SOON, &e, E));
        assert_null(strchr(e.path, '/'));
    } while (strcmp(e.path, "top") != 0);
}

static void recursive_watch_follows_new_directories(csn_fx *f)
{
    AUTO(csn_watch, w);

    w = watch(f, ".", CSN_FILE_RECURSIVE);
    csn_fx_run(f, "mkdir n");
    expect(w, CSN_EVENT_CREATE, "n");
    csn_fx_run(f, "mkdir n/m; echo x > n/m/f");
    expect(w, CSN_EVENT_CREATE, "n/m/f");
}

static void watch_of_a_subdirectory_names_from_there(csn_fx *f)
{
    AUTO(csn_watch, w);

    csn_fx_run(f, "mkdir sub");
    w = watch(f, "sub", 0);
    csn_fx_run(f, "echo x > other; echo x > sub/mine");
    expect(w, CSN_EVENT_CREATE, "mine");
    nothing_more(w);
}

static void watch_refuses_what_is_no_directory(csn_fx *f)
{
    csn_watch *w = NULL;

    csn_fx_put(f, "file", "x");
    fails(CSN_NOT_FOUND, csn_watch_open(f->sb, "missing", 0, &w, E));
    csn_conf_reset();
    if (csn_watch_open(f->sb, "file", 0, &w, E) != CSN_OK) /* a file may be watched, or not */
        assert_int_equal(csn_error_code(csn_conf_err), CSN_WRONG_TYPE);
    csn_watch_free(w);
}

static void watch_cannot_look_outside(csn_fx *f)
{
    csn_watch *w = NULL;

    assert_int_equal(symlink(f->outside, csn_fx_host(f, "out")), 0);
    fails(CSN_OUTSIDE, csn_watch_open(f->sb, "..", 0, &w, E));
    fails(CSN_OUTSIDE, csn_watch_open(f->sb, "out", 0, &w, E));
    AUTO(csn_watch, deep);
    deep = watch(f, ".", CSN_FILE_RECURSIVE); /* does not follow the link */
    char *path = csn_fx_keep(f, csn_test_join(f->outside, "made"));
    csn_test_put(path, "x", 1);
    csn_event e;
    fails(CSN_TIMEOUT, csn_watch_next(deep, 200, &e, E));
    unlink(path);
}

/* D48 */
static void burst_is_reported_or_flagged(csn_fx *f)
{
    AUTO(csn_watch, w);
    unsigned created = 0;
    bool overflow = false;
    csn_event e;

    w = watch(f, ".", 0);
    for (int i = 0; i < 30000; i++) {
        char *path = csn_test_format("%s/f%d", f->ws, i);
        csn_test_put(path, "", 0);
        unlink(path);
        free(path);
    }
    while (created < 30000 && !overflow && csn_watch_next(w, SOON, &e, NULL) == CSN_OK) {
        created += e.kind == CSN_EVENT_CREATE;
        overflow |= e.kind == CSN_EVENT_OVERFLOW;
    }
    assert_true(created == 30000 || overflow); /* nothing is lost in silence */
}

/* ---- the end ---- */

typedef struct waiter {
    pthread_t thread;
    csn_watch *w;
    csn_status st;
    csn_error *err;
} waiter;

static void *wait_for_the_end(void *ctx)
{
    waiter *x = ctx;
    csn_event e;

    do {
        x->st = csn_watch_next(x->w, CSN_NO_LIMIT, &e, &x->err);
    } while (x->st == CSN_OK);
    return NULL;
}

/* A moment to wait is given, so that most runs end it while it waits. */
static void waiter_start(waiter *x, csn_watch *w)
{
    *x = (waiter){.w = w};
    assert_int_equal(pthread_create(&x->thread, NULL, wait_for_the_end, x), 0);
    csn_test_nap(50);
}

static void waiter_ends(waiter *x, csn_status want, const char *text)
{
    pthread_join(x->thread, NULL);
    if (x->st != want)
        print_message("# %s: %s\n", csn_status_name(x->st), csn_error_message(x->err));
    assert_int_equal(x->st, want);
    has(csn_error_message(x->err), text);
    csn_error_free(x->err);
}

static void watch_ends_when_its_handle_is_destroyed(csn_fx *f)
{
    AUTO(csn_watch, w);
    waiter x;
    csn_event e;

    w = watch(f, ".", 0);
    waiter_start(&x, w);
    ok(csn_destroy(f->sb, E));
    waiter_ends(&x, CSN_GONE, "has ended");
    fails(CSN_GONE, csn_watch_next(w, CSN_NO_LIMIT, &e, E));
}

static void watch_ends_when_the_sandbox_is_destroyed_elsewhere(csn_fx *f)
{
    AUTO(csn_watch, w);
    waiter x;

    csn_fx_open(f, CFG(.flags = CSN_OPEN_DETACHED));
    w = watch(f, ".", 0);
    waiter_start(&x, w);
    ok(csn_destroy_id(csn_id(f->sb), E));
    waiter_ends(&x, CSN_GONE, "has ended");
}

static void watch_ends_with_the_lifetime(csn_fx *f)
{
    AUTO(csn_watch, w);
    waiter x;

    csn_fx_open(f, CFG(.lifetime_ms = 3600000));
    w = watch(f, ".", 0);
    waiter_start(&x, w);
    ok(csn_extend(f->sb, 100, E));
    waiter_ends(&x, CSN_GONE, "has ended");
}

static void watch_ends_when_its_directory_is_removed(csn_fx *f)
{
    AUTO(csn_watch, w);
    waiter x;

    csn_fx_run(f, "mkdir -p sub/below");
    w = watch(f, "sub", CSN_FILE_RECURSIVE);
    waiter_start(&x, w);
    csn_fx_run(f, "rm -r sub");
    waiter_ends(&x, CSN_NOT_FOUND, "'sub': the watched directory was removed");
}

const csn_conf_test csn_conf_watch[] = {
    T_NEED(watch_reports_what_commands_do, CAP_WATCH),
    T_NEED(watch_reports_what_the_api_does, CAP_WATCH),
    T_NEED(watch_of_directories_says_so, CAP_WATCH),
    T_NEED(watch_is_flat_unless_recursive, CAP_WATCH),
    T_NEED(recursive_watch_follows_new_directories, CAP_WATCH),
    T_NEED(watch_of_a_subdirectory_names_from_there, CAP_WATCH),
    T_NEED(watch_refuses_what_is_no_directory, CAP_WATCH),
    T_FULL(watch_cannot_look_outside, CAP_WATCH, CONF_BENEATH, 0),
    T_NEED(burst_is_reported_or_flagged, CAP_WATCH),
    T_NEED(watch_ends_when_its_handle_is_destroyed, CAP_WATCH),
    T_FULL(watch_ends_when_the_sandbox_is_destroyed_elsewhere, CAP_WATCH, CONF_HERE,
           CONF_CLOSED),
    T_FULL(watch_ends_with_the_lifetime, CAP_WATCH, CONF_HERE, CONF_CLOSED),
    T_FULL(watch_ends_when_its_directory_is_removed, CAP_WATCH, CONF_HERE, 0),
    T_END,
};
