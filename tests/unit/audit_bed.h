/* audit_bed.h: a private state directory with one audit log, for the tests of the log. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "core/audit.h"

#define ID "local-1700000000000-abc"

typedef struct bed {
    char top[64];
    char log[160], head[160];
} bed;

static bed *bed_make(void)
{
    bed *b = calloc(1, sizeof(*b));

    assert_non_null(b);
    snprintf(b->top, sizeof(b->top), "/tmp/csn-audit-XXXXXX");
    assert_non_null(mkdtemp(b->top));
    setenv("XDG_STATE_HOME", b->top, 1);
    unsetenv("XDG_RUNTIME_DIR");
    snprintf(b->log, sizeof(b->log), "%s/caisson/audit/" ID ".jsonl", b->top);
    snprintf(b->head, sizeof(b->head), "%s/caisson/audit/" ID ".head", b->top);
    return b;
}

static int bed_setup(void **state)
{
    *state = bed_make();
    return 0;
}

static int bed_teardown(void **state)
{
    bed *b = *state;
    char path[192];

    unlink(b->log);
    unlink(b->head);
    static const char *const files[] = {"own.jsonl",
                                        "own.head",
                                        "caisson/audit/reserve",
                                        "caisson/audit/local-1700000000001-new.jsonl",
                                        "caisson/audit/local-1700000000001-new.head",
                                        "caisson/audit/days"};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", b->top, files[i]);
        unlink(path);
    }
    static const char *const dirs[] = {"caisson/audit", "caisson/sandboxes/x",
                                       "caisson/sandboxes", "caisson/names", "caisson"};
    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", b->top, dirs[i]);
        rmdir(path);
    }
    rmdir(b->top);
    free(b);
    return 0;
}

static char *slurp(const char *path)
{
    csn_buf text;
    char chunk[4096];
    FILE *f = fopen(path, "re");

    assert_non_null(f);
    csn_buf_init(&text, 1 << 24);
    for (size_t n; (n = fread(chunk, 1, sizeof(chunk), f)) > 0;)
        assert_int_equal(csn_buf_append(&text, chunk, n), 0);
    fclose(f);
    return csn_buf_take(&text);
}

__attribute__((unused)) static void spew(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void append_some(int n)
{
    csn_audit *a = NULL;

    assert_int_equal(csn_audit_open(ID, NULL, &a, NULL), CSN_OK);
    for (int i = 0; i < n; i++) {
        char target[32];
        snprintf(target, sizeof(target), "/file-%d", i);
        csn_audit_event e = {
            .op = "write", .target = target, .bytes = 5, .duration_ns = 1500000};
        assert_int_equal(csn_audit_append(a, &e, NULL), CSN_OK);
    }
    csn_audit_close(a);
}

/* bad 0: the log must pass; else the line that must be named (UINT64_MAX: any). */
__attribute__((unused)) static void verify(uint64_t lines, uint64_t bad)
{
    csn_audit_report *r = NULL;
    csn_error *err = NULL;

    if (csn_audit_verify(ID, &r, &err) != CSN_OK)
        fail_msg("%s", csn_error_message(err));
    if (bad == 0 && !r->ok)
        fail_msg("line %llu: %s", (unsigned long long)r->bad_line, r->reason);
    if (bad != 0 && r->ok)
        fail_msg("the damage was not found");
    if (bad == 0) {
        assert_int_equal(r->lines, lines);
        assert_int_equal(r->bad_line, 0);
        assert_null(r->reason);
    } else {
        assert_non_null(r->reason);
        if (bad != UINT64_MAX && r->bad_line != bad)
            fail_msg("line %llu named, not %llu: %s", (unsigned long long)r->bad_line,
                     (unsigned long long)bad, r->reason);
    }
    csn_audit_report_free(r);
}
