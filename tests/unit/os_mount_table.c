/* os_mount_table.c: where else a path is visible, according to a table of mounts. */
#include "os/mount_table.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char table[] = "1 0 8:1 / / rw - ext4 /dev/a rw\n"
                            "2 1 8:1 /data /mnt/bind rw - ext4 /dev/a rw\n"
                            "3 1 8:2 / /mnt/disk rw - ext4 /dev/b rw\n"
                            "4 1 8:2 /sub /data/disk rw - ext4 /dev/b rw\n"
                            "5 1 8:1 /data/keys/id /srv/a\\040b rw - ext4 /dev/a rw\n"
                            "6 1 0:4 net:[4026531840] /run/netns/x rw - nsfs nsfs rw\n"
                            "broken line\n"
                            "7 1 8x1 / /bad rw\n";

typedef struct seen {
    char text[1024];
    int stop;
} seen;

static int note(void *ctx, const char *alias, const char *same)
{
    seen *s = ctx;
    size_t len = strlen(s->text);

    snprintf(s->text + len, sizeof(s->text) - len, "%s=%s;", alias, same);
    return s->stop;
}

static const char *aliases(seen *s, const char *path)
{
    csn_mount_table t;

    s->text[0] = '\0';
    assert_int_equal(csn_mount_table_parse(&t, strdup(table)), 0);
    assert_int_equal(t.count, 5);
    assert_int_equal(csn_mount_table_aliases(&t, path, note, s), s->stop);
    csn_mount_table_release(&t);
    return s->text;
}

static void bind_mounts_show_a_path_again(void **state)
{
    seen s = {0};

    (void)state;
    assert_string_equal(aliases(&s, "/data/file"), "/mnt/bind/file=/data/file;");
    assert_string_equal(aliases(&s, "/mnt/bind/file"), "/data/file=/mnt/bind/file;");
    assert_string_equal(aliases(&s, "/database"), "");
    assert_string_equal(aliases(&s, "/mnt/disk/sub/x"), "/data/disk/x=/mnt/disk/sub/x;");
    assert_string_equal(aliases(&s, "/mnt/disk/other"), "");
}

static void part_of_a_directory_may_be_mounted(void **state)
{
    seen s = {0};

    (void)state;
    assert_string_equal(aliases(&s, "/data/keys"),
                        "/mnt/bind/keys=/data/keys;/srv/a b=/data/keys/id;");
    assert_string_equal(aliases(&s, "/srv/a b"),
                        "/data/keys/id=/srv/a b;/mnt/bind/keys/id=/srv/a b;");
}

static void what_is_mounted_below_is_included(void **state)
{
    seen s = {0};

    (void)state;
    assert_non_null(strstr(aliases(&s, "/data"), "/mnt/bind=/data;"));
    assert_non_null(strstr(s.text, "/mnt/disk/sub=/data/disk;"));
}

static void result_of_the_caller_stops(void **state)
{
    seen s = {.stop = -ECANCELED};

    (void)state;
    assert_string_equal(aliases(&s, "/data/keys"), "/mnt/bind/keys=/data/keys;");
}

static void own_table_can_be_read(void **state)
{
    csn_mount_table t;

    (void)state;
    assert_int_equal(csn_mount_table_read(&t), 0);
    assert_true(t.count > 0);
    csn_mount_table_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bind_mounts_show_a_path_again),
        cmocka_unit_test(part_of_a_directory_may_be_mounted),
        cmocka_unit_test(what_is_mounted_below_is_included),
        cmocka_unit_test(result_of_the_caller_stops),
        cmocka_unit_test(own_table_can_be_read),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("os_mount_table", tests, NULL, NULL);
}
