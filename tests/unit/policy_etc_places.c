/* The tables of settings and secrets in /etc: they do not overlap, and patterns match. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "policy/etc_places.h"

static void no_row_is_a_secret(void **state)
{
    char path[256];

    (void)state;
    for (const csn_etc_place *p = csn_etc_places; p->path; p++) {
        snprintf(path, sizeof(path), "/etc/%s", p->path);
        if (csn_etc_is_secret(path))
            fail_msg("%s is shown and secret", path);
        assert_true(strlen(p->why) > 0);
        assert_true(p->path[0] != '/' && p->path[0] != '*');
    }
}

static void secrets_are_found_by_whole_components(void **state)
{
    (void)state;
    assert_true(csn_etc_is_secret("/etc/shadow"));
    assert_true(csn_etc_is_secret("/etc/ssh"));
    assert_true(csn_etc_is_secret("/etc/ssh/ssh_host_rsa_key"));
    assert_true(csn_etc_is_secret("/etc/ssl/private/key.pem"));
    assert_true(csn_etc_is_secret("/etc/letsencrypt/live/x/privkey.pem"));
    assert_false(csn_etc_is_secret("/etc/sshx"));
    assert_false(csn_etc_is_secret("/etc/ssl/certs"));
    assert_false(csn_etc_is_secret("/etc"));
    assert_false(csn_etc_is_secret("/srv/etc/shadow"));
}

static void check(const char *path, const char *name, const char *want)
{
    const char *rest = NULL;
    bool matches = csn_etc_component_matches(path, name, &rest);

    if (matches != (want != NULL))
        fail_msg("%s and %s: %d", path, name, matches);
    if (want)
        assert_string_equal(rest, want);
}

static void a_star_is_the_rest_of_a_component(void **state)
{
    (void)state;
    check("fonts", "fonts", "");
    check("fonts", "font", NULL);
    check("fonts", "fonts2", NULL);
    check("java-*", "java-17-openjdk", "");
    check("java-*", "java", NULL);
    check("java-*", "javascript", NULL);
    check("fpc*.cfg", "fpc.cfg", "");
    check("fpc*.cfg", "fpc-3.2.cfg", "");
    check("fpc*.cfg", "fpc.cf", NULL);
    check("ssl/certs", "ssl", "certs");
    check("php/*/cli", "php", "*/cli");
    check("*/cli", "8.2", "cli");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_row_is_a_secret),
        cmocka_unit_test(secrets_are_found_by_whole_components),
        cmocka_unit_test(a_star_is_the_rest_of_a_component),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
