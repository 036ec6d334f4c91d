/* Errors: the status map, what an error carries, and failing without memory. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <wchar.h>

#include <cmocka.h>

#include "base/error.h"
#include "caisson/backend.h"

static void every_status_has_name_text_and_http(void **state)
{
    (void)state;
#define CSN_X(name, num, word, http, text)                                                     \
    assert_int_equal(CSN_##name, num);                                                         \
    assert_string_equal(csn_status_name(CSN_##name), word);                                    \
    assert_string_equal(csn_status_text(CSN_##name), text);                                    \
    assert_int_equal(csn_status_http(CSN_##name), http);
    CSN_STATUS_MAP(CSN_X)
#undef CSN_X
    assert_string_equal(csn_status_name((csn_status)-999), "internal");
    assert_int_equal(csn_status_http((csn_status)-999), 500);
}

static void errno_maps_to_the_stated_status(void **state)
{
    (void)state;
    static const struct {
        int errnum;
        csn_status st;
    } map[] = {
        {ENOENT, CSN_NOT_FOUND},
        {EXDEV, CSN_OUTSIDE},
        {EEXIST, CSN_EXISTS},
        {ENOTDIR, CSN_WRONG_TYPE},
        {EISDIR, CSN_WRONG_TYPE},
        {ENXIO, CSN_WRONG_TYPE},
        {ENODEV, CSN_WRONG_TYPE},
        {EMEDIUMTYPE, CSN_WRONG_TYPE},
        {ESPIPE, CSN_WRONG_TYPE},
        {ENOTEMPTY, CSN_CONFLICT},
        {EACCES, CSN_DENIED},
        {EPERM, CSN_DENIED},
        {EROFS, CSN_DENIED},
        {ELOOP, CSN_INVALID},
        {ENAMETOOLONG, CSN_INVALID},
        {EINVAL, CSN_INVALID},
        {EILSEQ, CSN_INVALID},
        {EFBIG, CSN_TOO_LARGE},
        {E2BIG, CSN_TOO_LARGE},
        {EOVERFLOW, CSN_TOO_LARGE},
        {EBUSY, CSN_UNAVAILABLE},
        {EAGAIN, CSN_UNAVAILABLE},
        {ETIMEDOUT, CSN_TIMEOUT},
        {ECANCELED, CSN_CANCELLED},
        {ENOSYS, CSN_UNSUPPORTED},
        {EOPNOTSUPP, CSN_UNSUPPORTED},
        {ECONNREFUSED, CSN_UNAVAILABLE},
        {ECONNRESET, CSN_UNAVAILABLE},
        {EPIPE, CSN_UNAVAILABLE},
        {ENOMEM, CSN_NOMEM},
        {EIO, CSN_IO},
        {ENOSPC, CSN_IO},
        {0, CSN_IO},
        {99999, CSN_IO},
    };

    for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); i++)
        assert_int_equal(csn_status_of_errno(map[i].errnum), map[i].st);
}

static void check_errno_message(int errnum, const char *message)
{
    csn_error *err = NULL;
    csn_status st = csn_fail_errno(&err, errnum, "read '%s'", "f");

    assert_int_equal(st, csn_status_of_errno(errnum));
    assert_int_equal(csn_error_code(err), st);
    assert_int_equal(csn_error_errno(err), errnum);
    assert_string_equal(csn_error_message(err), message);
    csn_error_free(err);
}

static void errno_messages_use_our_words_where_they_differ(void **state)
{
    (void)state;
    check_errno_message(ENOENT, "read 'f': No such file or directory");
    check_errno_message(EXDEV, "read 'f': path outside base directory");
    check_errno_message(EMEDIUMTYPE, "read 'f': not a regular file");
    check_errno_message(99999, "read 'f': unknown error");
}

static void null_err_only_returns_the_status(void **state)
{
    (void)state;
    assert_int_equal(csn_fail(NULL, CSN_GONE, "x"), CSN_GONE);
    assert_int_equal(csn_fail_errno(NULL, EEXIST, "x"), CSN_EXISTS);
    assert_int_equal(csn_wrap(CSN_GONE, NULL, "x"), CSN_GONE);
    assert_int_equal(csn_error_note(CSN_GONE, NULL, "op", "path"), CSN_GONE);
    assert_int_equal(csn_error_advise(CSN_GONE, NULL, "x"), CSN_GONE);
    assert_int_equal(csn_error_deny(CSN_GONE, NULL, NULL), CSN_GONE);
    assert_int_equal(csn_error_code(NULL), CSN_OK);
    assert_string_equal(csn_error_message(NULL), "success");
    assert_null(csn_error_op(NULL));
    assert_null(csn_error_denial(NULL));
    csn_error_free(NULL);
}

static void additions_do_not_touch_err_on_success(void **state)
{
    (void)state;
    csn_error *wild = (csn_error *)(uintptr_t)0x10; /* as an uninitialised caller may have it */

    assert_int_equal(csn_wrap(CSN_OK, &wild, "x"), CSN_OK);
    assert_int_equal(csn_error_note(CSN_OK, &wild, "op", "path"), CSN_OK);
    assert_int_equal(csn_error_advise(CSN_OK, &wild, "x"), CSN_OK);
    assert_int_equal(csn_error_deny(CSN_OK, &wild, &(csn_denial){.op = "read"}), CSN_OK);
}

static void innermost_op_and_path_stay(void **state)
{
    (void)state;
    csn_error *err = NULL;
    csn_status st = csn_error_set(&err, CSN_NOT_FOUND, "File '%s' not found", "a");

    st = csn_error_note(st, &err, "read", NULL);
    st = csn_error_note(st, &err, "edit", "a");
    st = csn_error_note(st, &err, NULL, "b");
    st = csn_wrap(st, &err, "outer %d", 1);
    st = csn_error_advise(st, &err, "try %s", "this");
    st = csn_error_advise(st, &err, "try %s", "that");
    assert_int_equal(st, CSN_NOT_FOUND);
    assert_string_equal(csn_error_op(err), "read");
    assert_string_equal(csn_error_path(err), "a");
    assert_string_equal(csn_error_hint(err), "try that");
    assert_string_equal(csn_error_message(err), "outer 1: File 'a' not found");
    assert_int_equal(csn_error_errno(err), 0);
    csn_error_free(err);
}

/* The status of a call and that of its error are one. */
static void a_wrapper_that_knows_better_changes_the_code(void **state)
{
    (void)state;
    csn_error *err = NULL;
    csn_status st = csn_error_set(&err, CSN_IO, "not held any more");

    st = csn_wrap(st == CSN_IO ? CSN_GONE : st, &err, "find it");
    assert_int_equal(st, CSN_GONE);
    assert_int_equal(csn_error_code(err), CSN_GONE);
    csn_error_free(err);
}

static void denial_is_copied_and_belongs_to_denials_only(void **state)
{
    (void)state;
    char target[] = "/etc/shadow";
    csn_denial d = {.op = "read", .target = target, .rule = "deny /etc", .hint = "read /etc"};
    csn_error *err = NULL;
    csn_status st = csn_error_deny(csn_fail(&err, CSN_DENIED, "no"), &err, &d);

    memset(target, 'X', sizeof(target) - 1);
    st = csn_error_deny(st, &err, csn_error_denial(err)); /* replaced by its own copy */
    const csn_denial *got = csn_error_denial(err);
    assert_int_equal(st, CSN_DENIED);
    assert_string_equal(got->op, "read");
    assert_string_equal(got->target, "/etc/shadow");
    assert_null(got->resolved);
    assert_string_equal(got->rule, "deny /etc");
    assert_null(got->source);
    assert_string_equal(got->hint, "read /etc");
    csn_error_free(err);

    st = csn_error_deny(csn_fail(&err, CSN_IO, "disk"), &err, &d);
    assert_int_equal(st, CSN_IO);
    assert_null(csn_error_denial(err));
    csn_error_free(err);
}

/* In the C locale this wide character cannot be printed: formatting fails as if memory did. */
static void failing_to_format_gives_the_static_error(void **state)
{
    (void)state;
    csn_error *err = NULL, *again = NULL;

    assert_int_equal(csn_fail(&err, CSN_INVALID, "%ls", L"\x10ffff"), CSN_INVALID);
    assert_int_equal(csn_fail_errno(&again, EIO, "%ls", L"\x10ffff"), CSN_IO);
    assert_ptr_equal(err, again);
    assert_int_equal(csn_error_code(err), CSN_NOMEM);
    assert_string_equal(csn_error_message(err), "out of memory");
    assert_int_equal(csn_error_note(CSN_NOMEM, &err, "op", "path"), CSN_NOMEM);
    assert_int_equal(csn_wrap(CSN_NOMEM, &err, "x"), CSN_NOMEM);
    assert_null(csn_error_op(err));
    csn_error_free(err);
    csn_error_free(err);
}

static void limit_of_descriptors_is_named_with_its_remedy(void **state)
{
    static const struct {
        int errnum;
        const char *text, *hint;
    } rows[] = {{EMFILE, "(RLIMIT_NOFILE) is too low", "ulimit -n"},
                {ENFILE, "(fs.file-max) is reached", "sysctl fs.file-max"}};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        csn_error *err = NULL;
        csn_status st = csn_fail_errno(&err, rows[i].errnum, "open");
        csn_error_advise(st, &err, "another remedy"); /* which would not help */
        assert_non_null(strstr(csn_error_message(err), rows[i].text));
        assert_non_null(strstr(csn_error_hint(err), rows[i].hint));
        csn_error_free(err);
        st = csn_fail(&err, CSN_UNAVAILABLE, "start: %s", csn_errno_text(rows[i].errnum));
        assert_int_equal(st, CSN_UNAVAILABLE);
        assert_non_null(strstr(csn_error_hint(err), rows[i].hint));
        csn_error_free(err);
    }
}

static void version_is_the_build_version(void **state)
{
    (void)state;
    assert_string_equal(csn_version(), CSN_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_name_text_and_http),
        cmocka_unit_test(errno_maps_to_the_stated_status),
        cmocka_unit_test(errno_messages_use_our_words_where_they_differ),
        cmocka_unit_test(null_err_only_returns_the_status),
        cmocka_unit_test(additions_do_not_touch_err_on_success),
        cmocka_unit_test(innermost_op_and_path_stay),
        cmocka_unit_test(a_wrapper_that_knows_better_changes_the_code),
        cmocka_unit_test(denial_is_copied_and_belongs_to_denials_only),
        cmocka_unit_test(failing_to_format_gives_the_static_error),
        cmocka_unit_test(limit_of_descriptors_is_named_with_its_remedy),
        cmocka_unit_test(version_is_the_build_version),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
