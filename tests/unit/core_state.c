/* core_state.c: the record of a detached sandbox is there, or nothing of it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "child.h"
#include "core/config.h"
#include "core/state.h"
#include "fault.h"
#include "skip.h"

#define ID         "jail-1-abcd"
#define NO_FILTERS 77

static char top[64];

static csn_status create(csn_error **err)
{
    csn_config config = {.size = sizeof(config), .backend = "jail"};
    char id[] = ID, name[] = "name", workdir[] = "/";
    csn_state_meta m = {.id = id, .name = name, .workdir = workdir, .config = &config};

    return csn_state_create(&m, err);
}

static size_t records(void)
{
    char path[128];
    size_t n = 0;

    snprintf(path, sizeof(path), "%s/caisson/sandboxes", top);
    DIR *d = opendir(path);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static int create_while_it_cannot(void *ctx)
{
    csn_error *err = NULL;

    if (fault_inject(ctx) < 0)
        return NO_FILTERS;
    csn_status st = create(&err);
    bool good = st < 0 && csn_error_errno(err) == ENOSPC;
    csn_error_free(err);
    return good ? 0 : 1;
}

static void a_full_disk_leaves_nothing(void **state)
{
    fault cannot[] = {
        {.nr = SYS_renameat, .arg = -1, .error = ENOSPC},
        {.nr = SYS_write, .arg = 0, .error = ENOSPC}, /* not our own output */
        {.nr = SYS_symlinkat, .arg = -1, .error = ENOSPC},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cannot) / sizeof(cannot[0]); i++) {
        csn_child_end end = csn_child_run(create_while_it_cannot, &cannot[i], -1, 60000);
        if (end.exit_code == NO_FILTERS)
            SKIP("no seccomp filters here");
        assert_int_equal(end.exit_code, 0);
        assert_int_equal(records(), 0);
    }
    assert_int_equal(create(NULL), CSN_OK);
    assert_int_equal(records(), 1);
    csn_state_remove(ID, "name");
    assert_int_equal(records(), 0);
}

static int set_up(void **state)
{
    (void)state;
    snprintf(top, sizeof(top), "/tmp/caisson-t-XXXXXX");
    return mkdtemp(top) && setenv("XDG_STATE_HOME", top, 1) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    static const char *const made[] = {"caisson/sandboxes", "caisson/names", "caisson", ""};

    (void)state;
    for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
        char path[128];
        snprintf(path, sizeof(path), "%s/%s", top, made[i]);
        if (rmdir(path) < 0)
            return -1;
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_disk_leaves_nothing),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
