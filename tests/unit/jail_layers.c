/* What a jail says of itself: nothing that the kernel under it does not have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backend/jail/layers.h"

static csn_layer layer(const csn_jail_kernel *kernel, const char *name)
{
    csn_layer all[CSN_JAIL_LAYERS_MAX];
    size_t n = csn_jail_layers(kernel, "as limits are kept", all);

    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i].name, name) == 0)
            return all[i];
    fail_msg("no layer %s", name);
    return (csn_layer){0};
}

static void everything_is_on_where_the_kernel_has_it(void **state)
{
    const csn_jail_kernel kernel = {.landlock_abi = 6, .nested_limited = true};
    csn_layer all[CSN_JAIL_LAYERS_MAX];
    size_t n = csn_jail_layers(&kernel, "as limits are kept", all);

    (void)state;
    assert_int_equal(n, 11);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(all[i].status, "on");
    assert_non_null(strstr(layer(&kernel, "landlock").detail, "sockets scoped"));
    assert_string_equal(layer(&kernel, "limits").detail, "as limits are kept");
}

static void old_landlock_claims_nothing_it_does_not_do(void **state)
{
    (void)state;
    for (uint64_t abi = 1; abi < 6; abi++) {
        csn_layer l = layer(&(csn_jail_kernel){.landlock_abi = abi}, "landlock");
        assert_string_equal(l.status, "weaker");
        assert_non_null(strstr(l.detail, "cannot scope"));
        assert_int_equal(strstr(l.detail, "truncate") != NULL, abi < 3);
        assert_int_equal(strstr(l.detail, "between directories") != NULL, abi < 2);
    }
}

static void unlimited_nested_namespaces_are_reported(void **state)
{
    (void)state;
    csn_layer l = layer(&(csn_jail_kernel){.landlock_abi = 6, .nested_limited = false}, "user");
    assert_string_equal(l.status, "weaker");
    assert_non_null(strstr(l.detail, "by seccomp only"));
}

static void nested_is_reported_by_every_layer_it_weakens(void **state)
{
    static const char *const weakened[] = {"user", "landlock", "seccomp"};
    const csn_jail_kernel kernel = {.landlock_abi = 6, .nested_limited = true, .nested = true};

    (void)state;
    for (size_t i = 0; i < sizeof(weakened) / sizeof(weakened[0]); i++) {
        assert_string_equal(layer(&kernel, weakened[i]).status, "weaker");
        assert_non_null(strstr(layer(&kernel, weakened[i]).detail, "--nested"));
    }
    assert_non_null(strstr(layer(&kernel, "nested").detail, "Landlock"));
    assert_string_equal(layer(&kernel, "mount").status, "on");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested_is_reported_by_every_layer_it_weakens),
        cmocka_unit_test(everything_is_on_where_the_kernel_has_it),
        cmocka_unit_test(old_landlock_claims_nothing_it_does_not_do),
        cmocka_unit_test(unlimited_nested_namespaces_are_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
