/* core_audit_gaps.c: operations in flight, gaps, and the retention of audit logs. */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "audit_bed.h"

/* ---- operations in flight and gaps ------------------------------------------------------ */

static csn_audit *opened(const char *place)
{
    csn_audit *a = NULL;

    assert_int_equal(csn_audit_open(ID, place, &a, NULL), CSN_OK);
    return a;
}

static void begin(csn_audit *a)
{
    assert_int_equal(csn_audit_begin(a, NULL), CSN_OK);
}

static void end(csn_audit *a)
{
    const csn_audit_event e = {.op = "exec", .target = "true", .begun = true};

    assert_int_equal(csn_audit_append(a, &e, NULL), CSN_OK);
}

/* Another process begins `n` operations and is killed. */
static void begin_and_die(unsigned n)
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        csn_audit *a = NULL;
        bool ok = csn_audit_open(ID, NULL, &a, NULL) == CSN_OK;
        for (unsigned i = 0; i < n; i++)
            ok = ok && csn_audit_begin(a, NULL) == CSN_OK;
        _exit(ok ? 0 : 1);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void gaps_are(uint64_t gaps, uint64_t bad_line)
{
    csn_audit_report *r = NULL;

    assert_int_equal(csn_audit_verify(ID, &r, NULL), CSN_OK);
    if (r->gaps != gaps || r->bad_line != bad_line || r->ok != (gaps == 0))
        fail_msg("%llu gaps, line %llu: %s", (unsigned long long)r->gaps,
                 (unsigned long long)r->bad_line, r->reason ? r->reason : "ok");
    if (gaps > 0)
        assert_non_null(strstr(r->reason, "no recorded result"));
    csn_audit_report_free(r);
}

static void an_operation_in_flight_is_no_gap(void **state)
{
    bed *b = *state;
    csn_audit *a = opened(NULL), *other = opened(NULL);

    begin(a);
    begin(a);
    gaps_are(0, 0);
    begin(other);
    append_some(1);
    gaps_are(0, 0);
    end(a);
    end(other);
    char *head = slurp(b->head);
    assert_non_null(strstr(head, "\"open\":1}"));
    free(head);
    end(a);
    csn_audit_close(a);
    csn_audit_close(other);
    verify(4, 0);
}

static void operations_of_a_killed_process_are_a_gap(void **state)
{
    bed *b = *state;

    append_some(1);
    begin_and_die(2);
    gaps_are(2, 0);
    append_some(1); /* the next writer marks them, once */
    gaps_are(2, 2);
    append_some(1);
    begin_and_die(1);
    append_some(1);
    gaps_are(3, 2);
    char *text = slurp(b->log);
    assert_non_null(strstr(text, "\"op\":\"gap\""));
    assert_non_null(strstr(text, "\"count\":2"));
    assert_non_null(strstr(text, "\"count\":1"));
    free(text);
}

/* A handle that is busy does not hide what another one has lost. */
static void a_gap_is_found_while_others_work(void **state)
{
    csn_audit *a = opened(NULL), *other = opened(NULL);

    (void)state;
    begin(a);
    begin(a);
    begin(other);
    begin_and_die(1);
    gaps_are(1, 0);
    begin(other);
    gaps_are(1, 1);
    end(other);
    end(other);
    end(a);
    end(a);
    csn_audit_close(a);
    csn_audit_close(other);
    gaps_are(1, 1);
}

/* The caller was killed after the line and before the head: there is a line, so no gap. */
static void an_adopted_line_is_no_gap(void **state)
{
    bed *b = *state;
    csn_audit *a = opened(NULL);

    append_some(1);
    begin(a);
    char *head = slurp(b->head);
    end(a);
    csn_audit_close(a);
    spew(b->head, head);
    verify(2, 0);
    append_some(1);
    verify(3, 0);
    free(head);
}

static void a_cancelled_operation_leaves_nothing(void **state)
{
    csn_audit *a = opened(NULL);

    (void)state;
    append_some(1);
    begin(a);
    csn_audit_cancel(a);
    csn_audit_close(a);
    verify(1, 0);
}

static void a_start_that_fails_leaves_no_log(void **state)
{
    bed *b = *state;
    csn_audit *a = opened(NULL);

    assert_int_equal(csn_audit_prepare(a, NULL), CSN_OK);
    assert_int_equal(access(b->log, F_OK), 0);
    csn_audit_forget(a);
    csn_audit_close(a);
    assert_int_not_equal(access(b->log, F_OK), 0);
    assert_int_not_equal(access(b->head, F_OK), 0);
}

/* A line that cannot be written: RLIMIT_FSIZE refuses it, and permits the head. */
static void a_result_that_cannot_be_written_is_a_gap(void **state)
{
    csn_audit *a = opened(NULL);
    const csn_audit_event e = {.op = "exec", .begun = true};
    const csn_audit_event net = {.op = "net", .done = true};
    struct rlimit whole, none;

    (void)state;
    append_some(3);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &whole), 0);
    none = whole;
    none.rlim_cur = 512;
    begin(a);
    begin(a);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    csn_status first = csn_audit_append(a, &e, NULL), second = csn_audit_append(a, &net, NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &whole), 0);
    assert_int_equal(first, CSN_IO);
    assert_int_equal(second, CSN_IO);
    gaps_are(2, 0);
    end(a);
    csn_audit_close(a);
    gaps_are(2, 4);
}

static void an_old_head_has_no_operation_in_flight(void **state)
{
    bed *b = *state;
    char old[200];

    append_some(2);
    char *head = slurp(b->head), *end_of_old = strstr(head, ",\"open\":");
    assert_non_null(end_of_old);
    snprintf(old, sizeof(old), "%.*s}\n", (int)(end_of_old - head), head);
    spew(b->head, old);
    verify(2, 0);
    append_some(1);
    verify(3, 0);
    free(head);
}

/* A log of the caller's own has its reserve behind the text of its head file. */
static void a_place_of_ones_own_has_gaps_too(void **state)
{
    bed *b = *state;
    char path[160];
    struct stat st;

    snprintf(path, sizeof(path), "%s/own.jsonl", b->top);
    csn_audit *a = opened(path);
    begin(a);
    snprintf(path, sizeof(path), "%s/own.head", b->top);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 192);
    csn_audit_close(a); /* as if killed */
    snprintf(path, sizeof(path), "%s/own.jsonl", b->top);
    a = opened(path);
    begin(a);
    end(a);
    csn_audit_close(a);
    char *text = slurp(path);
    assert_non_null(strstr(text, "\"op\":\"gap\""));
    free(text);
}

/* ---- retention -------------------------------------------------------------------------- */

#define DAY 86400ll

static void set_time(const char *path, int64_t seconds)
{
    struct timespec t[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};

    assert_int_equal(utimensat(-1, path, t, 0), 0);
}

/* Writes the file of days as `count` days after `first`, then `more` (0: none), and dates it
 * yesterday, so that today is a new day of use. */
static void days_were(const bed *b, int64_t first, int count, int64_t more)
{
    char path[192];

    snprintf(path, sizeof(path), "%s/caisson/audit/days", b->top);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    for (int i = 0; i < count; i++)
        fprintf(f, "%lld\n", (long long)(first + i * DAY));
    if (more)
        fprintf(f, "%lld\n", (long long)more);
    fclose(f);
    set_time(path, time(NULL) - DAY);
}

static void retain(uint64_t keep, uint64_t max)
{
    csn_audit *a = NULL;
    csn_audit_event e = {.op = "open"};

    assert_int_equal(csn_audit_open("local-1700000000001-new", NULL, &a, NULL), CSN_OK);
    assert_int_equal(csn_audit_append(a, &e, NULL), CSN_OK);
    csn_audit_retain(a, keep, max);
    csn_audit_close(a);
}

static bool kept(const bed *b)
{
    bool log = access(b->log, F_OK) == 0;

    assert_int_equal(access(b->head, F_OK) == 0, log);
    return log;
}

static void logs_are_kept_for_days_of_use(void **state)
{
    bed *b = *state;
    int64_t now = time(NULL);

    append_some(1);
    set_time(b->log, now - 400 * DAY);
    days_were(b, now - 400 * DAY, 29, 0); /* with today 29 days after */
    retain(0, 0);
    assert_true(kept(b));
    days_were(b, now - 400 * DAY, 30, 0);
    retain(CSN_NO_LIMIT, 0);
    assert_true(kept(b));
    days_were(b, now - 400 * DAY, 30, 0);
    retain(31, 0);
    assert_true(kept(b));
    days_were(b, now - 400 * DAY, 30, 0);
    retain(0, 0);
    assert_false(kept(b));
}

static void a_day_is_examined_once(void **state)
{
    bed *b = *state;
    int64_t now = time(NULL);

    append_some(1);
    days_were(b, now - 400 * DAY, 40, 0);
    retain(0, 0);
    set_time(b->log, now - 400 * DAY);
    retain(0, 0);
    assert_true(kept(b));
}

/* A wrong clock, ahead or behind, is one day of use and no more. */
static void a_clock_that_jumps_removes_no_log(void **state)
{
    bed *b = *state;
    int64_t now = time(NULL);

    append_some(1); /* the last line before a jump ahead of ten years, which was noted */
    set_time(b->log, now - 2 * DAY);
    days_were(b, now - 40 * DAY, 39, now + 3650 * DAY);
    retain(0, 0);
    assert_true(kept(b));
    set_time(b->log, now + 3650 * DAY); /* the last line during the jump */
    days_were(b, now - 40 * DAY, 39, now + 3650 * DAY);
    retain(0, 0);
    assert_true(kept(b));
    set_time(b->log, 100); /* and with a clock that starts in 1970 */
    days_were(b, now - 40 * DAY, 39, 50);
    retain(0, 0);
    assert_true(kept(b));
    set_time(b->log, 100); /* of which no sandbox was opened */
    days_were(b, now - 40 * DAY, 39, 0);
    retain(0, 0);
    assert_true(kept(b));
    struct stat st;
    assert_int_equal(stat(b->log, &st), 0);
    assert_true(st.st_mtime >= now); /* its age counts from now on */
}

static void the_oldest_logs_go_when_all_are_too_large(void **state)
{
    bed *b = *state;
    int64_t now = time(NULL);

    append_some(50);
    set_time(b->log, now - DAY);
    days_were(b, now - 2 * DAY, 2, 0);
    retain(0, 1 << 20);
    assert_true(kept(b));
    days_were(b, now - 2 * DAY, 2, 0);
    retain(0, 16384);
    assert_false(kept(b));
}

static void a_log_in_use_is_kept(void **state)
{
    bed *b = *state;
    int64_t now = time(NULL);

    append_some(1);
    csn_audit *a = opened(NULL);
    begin(a);
    end(a);
    set_time(b->log, now - 400 * DAY);
    days_were(b, now - 400 * DAY, 40, 0);
    retain(0, 1);
    assert_true(kept(b));
    csn_audit_close(a);
    days_were(b, now - 400 * DAY, 40, 0);
    retain(0, 1);
    assert_false(kept(b));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        T(an_operation_in_flight_is_no_gap),
        T(operations_of_a_killed_process_are_a_gap),
        T(a_gap_is_found_while_others_work),
        T(an_adopted_line_is_no_gap),
        T(a_cancelled_operation_leaves_nothing),
        T(a_start_that_fails_leaves_no_log),
        T(a_result_that_cannot_be_written_is_a_gap),
        T(an_old_head_has_no_operation_in_flight),
        T(a_place_of_ones_own_has_gaps_too),
        T(logs_are_kept_for_days_of_use),
        T(a_day_is_examined_once),
        T(a_clock_that_jumps_removes_no_log),
        T(the_oldest_logs_go_when_all_are_too_large),
        T(a_log_in_use_is_kept),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
