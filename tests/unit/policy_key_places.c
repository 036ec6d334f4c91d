/* The table of places that hold keys: every row can be looked up, and each has a reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/strv.h"
#include "policy/key_places.h"

static void rows_are_paths_below_a_home(void **state)
{
    (void)state;
    for (const csn_key_place *p = csn_key_places; p->path; p++) {
        size_t len = strlen(p->path);
        assert_true(len > 0 && p->path[0] != '/' && p->path[len - 1] != '/');
        assert_null(strstr(p->path, "//"));
        assert_null(strstr(p->path, ".."));
        assert_null(strpbrk(p->path, "*?[{"));
        assert_true(strlen(p->why) > 8);
    }
}

static void no_row_is_inside_of_another(void **state)
{
    (void)state;
    for (const csn_key_place *p = csn_key_places; p->path; p++)
        for (const csn_key_place *q = csn_key_places; q->path; q++) {
            size_t len = strlen(p->path);
            if (p != q && csn_str_starts(q->path, p->path) &&
                (q->path[len] == '/' || !q->path[len]))
                fail_msg("%s is inside of %s", q->path, p->path);
        }
}

static void the_count_is_that_of_the_rows(void **state)
{
    unsigned n = 0;

    (void)state;
    while (csn_key_places[n].path)
        n++;
    assert_int_equal(n, csn_key_place_count());
}

static void usual_places_are_in_it(void **state)
{
    static const char *const usual[] = {
        ".ssh", ".gnupg", ".aws", ".kube", ".netrc", ".config/gh", ".docker/config.json", NULL};

    (void)state;
    for (const char *const *u = usual; *u; u++) {
        bool found = false;
        for (const csn_key_place *p = csn_key_places; p->path; p++)
            found = found || strcmp(p->path, *u) == 0;
        assert_true(found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_paths_below_a_home),
        cmocka_unit_test(no_row_is_inside_of_another),
        cmocka_unit_test(the_count_is_that_of_the_rows),
        cmocka_unit_test(usual_places_are_in_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
