/* edit.c: exact replacement: one, all, several at once; what a miss and an ambiguity say; bytes
 * stay bytes. */
#include "conformance/conformance.h"

#include <pthread.h>

static csn_edit_item item(const char *old, const char *new)
{
    return (csn_edit_item){.old_string = old, .new_string = new};
}

static csn_status edit(csn_fx *f, const char *path, const char *old, const char *new,
                       uint32_t all, csn_error **err)
{
    csn_edit_item e = {.old_string = old, .new_string = new, .replace_all = all};

    return csn_edit(f->sb, path, &e, 1, 0, NULL, err);
}

/* S0: "edit file": foo bar baz, occurrences 1 */
static void edit_replaces_the_only_occurrence(csn_fx *f)
{
    AUTO(csn_edit_result, r);
    AUTO(csn_read_result, read);
    csn_edit_item e = item("bar", "qux");

    csn_fx_put(f, "edit-test.txt", "foo bar baz");
    ok(csn_edit(f->sb, "edit-test.txt", &e, 1, 0, &r, E));
    assert_string_equal(r->path, "edit-test.txt");
    has(r->resolved_path, "edit-test.txt");
    assert_int_equal(r->occurrences, 1);
    assert_int_equal(r->bytes, 11);
    csn_fx_holds(f, "edit-test.txt", "foo qux baz");
    ok(csn_read(f->sb, "edit-test.txt", CSN_OPTS(csn_read_opts, .flags = CSN_FILE_HASH), &read,
                E));
    assert_string_equal(r->hash, read->hash);
}

static void edit_replaces_all_when_asked(csn_fx *f)
{
    AUTO(csn_edit_result, r);
    csn_edit_item e = {.old_string = "a", .new_string = "bb", .replace_all = 1};

    csn_fx_put(f, "f", "a-a-a");
    ok(csn_edit(f->sb, "f", &e, 1, 0, &r, E));
    assert_int_equal(r->occurrences, 3);
    csn_fx_holds(f, "f", "bb-bb-bb");
    csn_fx_put(f, "f", "aaaa");
    ok(edit(f, "f", "aa", "a", 1, E)); /* without overlap, left to right */
    csn_fx_holds(f, "f", "aa");
}

static void edit_with_equal_strings_counts(csn_fx *f)
{
    AUTO(csn_edit_result, one);
    AUTO(csn_edit_result, all);
    csn_edit_item b = item("b", "b"), a = {.old_string = "a", .new_string = "a"};

    csn_fx_put(f, "f", "a b a\n");
    ok(csn_edit(f->sb, "f", &b, 1, 0, &one, E));
    assert_int_equal(one->occurrences, 1);
    assert_int_equal(one->bytes, 6);
    fails(CSN_AMBIGUOUS, csn_edit(f->sb, "f", &a, 1, 0, NULL, E));
    a.replace_all = 1;
    ok(csn_edit(f->sb, "f", &a, 1, 0, &all, E));
    assert_int_equal(all->occurrences, 2);
    csn_fx_holds(f, "f", "a b a\n");
    fails(CSN_NO_MATCH, edit(f, "f", "zz", "zz", 0, E));
}

static void edit_of_several_places_without_all_is_ambiguous(csn_fx *f)
{
    csn_fx_put(f, "f", "one\ntwo\none\n");
    fails(CSN_AMBIGUOUS, edit(f, "f", "one", "1", 0, E));
    says(
        "String 'one' appears multiple times. Use replaceAll=true to replace all occurrences.");
    assert_non_null(csn_error_hint(csn_conf_err)); /* where they are */
    hints("1");
    hints("3");
    csn_fx_holds(f, "f", "one\ntwo\none\n");
}

static void edit_that_misses_shows_the_nearest_line(csn_fx *f)
{
    csn_fx_put(f, "f.c", "int main(void)\n{\n    return 0;\n}\n");
    fails(CSN_NO_MATCH, edit(f, "f.c", "  return 0;;", "x", 0, E));
    says("String not found in file: '  return 0;;'");
    hints("return 0;");
    hints("3");
    fails(CSN_NO_MATCH,
          edit(f, "f.c", "\treturn 0;", "x", 0, E)); /* only white space differs */
    hints("3");
    fails(CSN_NO_MATCH, edit(f, "f.c", "zzzz", "x", 1, E));
    csn_fx_holds(f, "f.c", "int main(void)\n{\n    return 0;\n}\n");
}

/* S0's JavaScript replace() took $& and \1 for patterns. */
static void edit_is_literal(csn_fx *f)
{
    static const char *const odd[] = {"$&",  "$1", "\\1",  "$$", "&",  "\\n", ".*",
                                      "[x]", "%s", "\\\\", "`",  "''", "$'",  "\xff\xfe"};

    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        char *want = csn_fx_keep(f, csn_test_format("<%s>", odd[i]));

        csn_fx_put(f, "f", "<X>");
        ok(edit(f, "f", "X", odd[i], 0, E));
        csn_fx_holds(f, "f", want);
        ok(edit(f, "f", odd[i], "Y", 0, E));
        csn_fx_holds(f, "f", "<Y>");
    }
}

static void edit_may_delete_and_grow(csn_fx *f)
{
    char *big = csn_fx_fill(f, 100000);

    csn_fx_put(f, "f", "keep REMOVE keep");
    ok(edit(f, "f", "REMOVE ", "", 0, E));
    csn_fx_holds(f, "f", "keep keep");
    csn_fx_put(f, "f", "X");
    ok(edit(f, "f", "X", big, 0, E));
    csn_fx_holds(f, "f", big);
}

static void edits_apply_in_order(csn_fx *f)
{
    AUTO(csn_edit_result, r);
    csn_edit_item e[] = {item("one", "two"), item("two", "three"), item("x", "y")};

    csn_fx_put(f, "f", "one x");
    ok(csn_edit(f->sb, "f", e, 3, 0, &r, E));
    assert_int_equal(r->occurrences, 3);
    csn_fx_holds(f, "f", "three y");
}

static void edits_are_all_or_nothing(csn_fx *f)
{
    csn_edit_item e[] = {item("one", "1"), item("missing", "x")};
    csn_edit_item twice[] = {item("one", "1"), item("o", "0")};

    csn_fx_put(f, "f", "one foo boo");
    fails(CSN_NO_MATCH, csn_edit(f->sb, "f", e, 2, 0, NULL, E));
    csn_fx_holds(f, "f", "one foo boo");
    fails(CSN_AMBIGUOUS, csn_edit(f->sb, "f", twice, 2, 0, NULL, E));
    csn_fx_holds(f, "f", "one foo boo");
    assert_int_equal(csn_fx_strays(f, NULL), 1);
}

static void edit_keeps_bytes_and_mode(csn_fx *f)
{
    static const char text[] = "a\r\n\xff\0\xfe X\r\nend";
    size_t len = 0;
    csn_edit_item nul = {
        .old_string = "\xff\0", .old_len = 2, .new_string = "\0\0", .new_len = 2};

    csn_fx_putn(f, "f", text, sizeof(text) - 1);
    csn_fx_run(f, "chmod 750 f");
    ok(edit(f, "f", "X", "Y", 0, E));
    char *have = csn_fx_get(f, "f", &len);
    same_bytes(have, len, "a\r\n\xff\0\xfe Y\r\nend", sizeof(text) - 1);
    ok(csn_edit(f->sb, "f", &nul, 1, 0, NULL, E));
    have = csn_fx_get(f, "f", &len);
    same_bytes(have, len, "a\r\n\0\0\xfe Y\r\nend", sizeof(text) - 1);
    assert_int_equal(csn_test_mode(csn_fx_host(f, "f")) & 07777, 0750);
}

static void edit_of_multi_line_text(csn_fx *f)
{
    csn_fx_put(f, "f", "a\nb\nc\nd\n");
    ok(edit(f, "f", "b\nc\n", "B\nC\nC2\n", 0, E));
    csn_fx_holds(f, "f", "a\nB\nC\nC2\nd\n");
    csn_fx_put(f, "f", "a\r\nb\r\n");
    fails(CSN_NO_MATCH, edit(f, "f", "a\nb", "x", 0, E)); /* only the line endings differ */
    assert_non_null(csn_error_hint(csn_conf_err));
}

static void edit_refuses_nonsense(csn_fx *f)
{
    csn_edit_item e = item("a", "b");

    csn_fx_put(f, "f", "abc");
    fails(CSN_NOT_FOUND, edit(f, "missing", "a", "b", 0, E));
    says("File 'missing' not found");
    fails(CSN_INVALID, edit(f, "f", "", "b", 0, E));
    fails(CSN_INVALID, edit(f, "f", NULL, "b", 0, E));
    fails(CSN_INVALID, csn_edit(f->sb, "f", &e, 0, 0, NULL, E));
    fails(CSN_INVALID, csn_edit(f->sb, "f", NULL, 1, 0, NULL, E));
    csn_fx_run(f, "mkdir dir && mkfifo pipe");
    fails(CSN_WRONG_TYPE, edit(f, "dir", "a", "b", 0, E));
    fails(CSN_WRONG_TYPE, edit(f, "pipe", "a", "b", 0, E));
    csn_fx_holds(f, "f", "abc");
    csn_fx_put(f, "empty", "");
    fails(CSN_NO_MATCH, edit(f, "empty", "a", "b", 0, E));
}

static void long_strings_are_shortened_in_messages(csn_fx *f)
{
    char *big = csn_fx_fill(f, 100000);

    csn_fx_put(f, "f", "short");
    fails(CSN_NO_MATCH, edit(f, "f", big, "x", 0, E));
    assert_true(strlen(csn_error_message(csn_conf_err)) < 2000);
}

/* ---- concurrent ---- */

typedef struct racer {
    csn_sandbox *sb;
    int id, done, conflicts, bad;
} racer;

static void *race_edit(void *ctx)
{
    racer *r = ctx;
    char old[16], new[16];

    snprintf(old, sizeof(old), "slot%d=0", r->id);
    snprintf(new, sizeof(new), "slot%d=1", r->id);
    csn_edit_item e = item(old, new);
    for (int tries = 0; tries < 2000 && !r->done; tries++) {
        csn_status st = csn_edit(r->sb, "shared", &e, 1, 0, NULL, NULL);

        r->done = st == CSN_OK;
        r->conflicts += st == CSN_CONFLICT;
        r->bad += st != CSN_OK && st != CSN_CONFLICT;
    }
    return NULL;
}

/* D33: one wins, the other gets a conflict; nothing is lost silently */
static void edits_at_once_lose_nothing(csn_fx *f)
{
    pthread_t t[8];
    racer r[8];

    csn_fx_put(f, "shared",
               "slot0=0\nslot1=0\nslot2=0\nslot3=0\nslot4=0\nslot5=0\nslot6=0\nslot7=0\n");
    for (int i = 0; i < 8; i++) {
        r[i] = (racer){.sb = f->sb, .id = i};
        pthread_create(&t[i], NULL, race_edit, &r[i]);
    }
    for (int i = 0; i < 8; i++)
        pthread_join(t[i], NULL);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(r[i].bad, 0);
        assert_int_equal(r[i].done, 1);
    }
    csn_fx_holds(f, "shared",
                 "slot0=1\nslot1=1\nslot2=1\nslot3=1\nslot4=1\nslot5=1\nslot6=1\nslot7=1\n");
}

const csn_conf_test csn_conf_edit[] = {
    T(edit_replaces_the_only_occurrence),
    T(edit_replaces_all_when_asked),
    T(edit_with_equal_strings_counts),
    T(edit_of_several_places_without_all_is_ambiguous),
    T(edit_that_misses_shows_the_nearest_line),
    T(edit_is_literal),
    T(edit_may_delete_and_grow),
    T(edits_apply_in_order),
    T(edits_are_all_or_nothing),
    T(edit_keeps_bytes_and_mode),
    T(edit_of_multi_line_text),
    T(edit_refuses_nonsense),
    T(long_strings_are_shortened_in_messages),
    T(edits_at_once_lose_nothing),
    T_END,
};
