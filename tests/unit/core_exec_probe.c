/* core_exec_probe.c: what the core asks a backend that has nothing but an exec. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "caisson/backend.h"

static struct {
    csn_sandbox *sb;
    unsigned questions, late; /* so many of them are not answered in time */
    csn_status other;         /* what became of the call of another thread */
    char shell[8];            /* of the last command */
} seen;

static csn_status run(const char *command, csn_error **err)
{
    csn_exec_result *r = NULL;
    csn_status st = csn_sh(seen.sb, command, NULL, &r, err);

    csn_exec_result_free(r);
    return st;
}

/* Commands run one after the other here: while the first question waits, somebody else's call
 * has its turn. */
static csn_status late_exec(void *state, const csn_exec_req *req, const csn_sink *sink,
                            csn_exec_end *ret, csn_error **err)
{
    static const char dirs[] = "/w\n\0/h";

    (void)state;
    (void)err;
    ret->exit_code = 0;
    if (strncmp(req->argv[2], "pwd", 3) == 0) {
        sink->write(sink->ctx, CSN_STDOUT, dirs, sizeof(dirs) - 1);
        return CSN_OK;
    }
    if (strcmp(req->argv[2], "command -v bash") != 0) {
        snprintf(seen.shell, sizeof(seen.shell), "%s", req->argv[0]);
        return CSN_OK;
    }
    unsigned number = ++seen.questions;
    if (number == 1)
        seen.other = run("true", NULL);
    if (number <= seen.late) {
        ret->how = CSN_END_TIMEOUT;
        ret->exit_code = -1;
    }
    return CSN_OK;
}

static csn_status late_info(void *state, csn_info_result *ret, csn_error **err)
{
    (void)state;
    (void)err;
    ret->workspace = ret->workdir = "/w";
    return CSN_OK;
}

static const csn_backend_ops late = {
    .size = sizeof(late), .name = "late", .exec = late_exec, .info = late_info};

static int register_late(void **state)
{
    (void)state;
    return csn_register_backend(&late, NULL, NULL) == CSN_OK ? 0 : -1;
}

static void open_with(unsigned unanswered)
{
    csn_config config = {.size = sizeof(config), .backend = "late"};

    memset(&seen, 0, sizeof(seen));
    seen.late = unanswered;
    assert_int_equal(csn_open(&config, &seen.sb, NULL), CSN_OK);
}

static void an_answer_to_somebody_else_is_one_too(void **state)
{
    (void)state;
    open_with(1);
    assert_int_equal(run("true", NULL), CSN_OK);
    assert_int_equal(seen.other, CSN_OK);
    assert_int_equal(seen.questions, 2);
    assert_string_equal(seen.shell, "bash");
    csn_close(seen.sb);
}

static void no_answer_in_time_is_a_timeout(void **state)
{
    csn_error *err = NULL;

    (void)state;
    open_with(100);
    assert_int_equal(run("true", &err), CSN_TIMEOUT);
    assert_non_null(strstr(csn_error_message(err), "deadline passed"));
    csn_error_free(err);
    assert_int_equal(seen.other, CSN_TIMEOUT);
    assert_string_equal(seen.shell, "");
    csn_close(seen.sb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_to_somebody_else_is_one_too),
        cmocka_unit_test(no_answer_in_time_is_a_timeout),
    };

    return cmocka_run_group_tests(tests, register_late, NULL);
}
