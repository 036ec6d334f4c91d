/* cli_narrow.c: which values of a project's file grant something. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/options.h"
#include "cli/narrow.h"

/* What holds without the file, in the tests below. */
static const char *const user_commands[] = {"cat", "ls", NULL};
static const csn_config user = {.size = sizeof(user), .backend = "jail", .pids_max = 100};

/* The names of the options that grant something in this JSON, separated by spaces. */
static const char *widening(const char *json, const csn_narrow_base *base)
{
    static char text[512];
    const char *names[CSN_OPTION_COUNT + 1];
    csn_config *c = NULL;
    size_t n = 0;

    assert_int_equal(csn_config_parse(json, strlen(json), "test", &c, NULL), CSN_OK);
    size_t count = csn_config_widening(c, base, names);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i ? " " : "", names[i]);
    assert_null(names[count]);
    csn_config_free(c);
    return text;
}

static void every_option_has_a_direction(void **state)
{
    (void)state;
    for (const csn_option *o = csn_options; o->name; o++) {
        if (o->direction == CSN_DIRECTION_UNDECIDED)
            fail_msg("base/options.c: '%s' has no .direction: may a project's file set it "
                     "before the user trusts the file?",
                     o->name);
        bool number = o->type == CSN_TYPE_SIZE || o->type == CSN_TYPE_COUNT ||
                      o->type == CSN_TYPE_CPUS || o->type == CSN_TYPE_DURATION;
        if (o->direction == CSN_DIRECTION_SMALLER)
            assert_true(number);
        if (o->direction == CSN_DIRECTION_SUBSET)
            assert_int_equal(o->type, CSN_TYPE_LIST);
        if (o->direction == CSN_DIRECTION_DENIALS)
            assert_int_equal(o->type, CSN_TYPE_RULES);
        if (o->direction == CSN_DIRECTION_NONE || o->direction == CSN_DIRECTION_SAME ||
            o->direction == CSN_DIRECTION_PROJECT)
            assert_int_equal(o->type, CSN_TYPE_STRING);
    }
}

static void an_option_without_a_direction_widens(void **state)
{
    const csn_option o = {.name = "nofollow", .type = CSN_TYPE_FLAG, .open_flag = 2};
    const csn_config c = {.size = sizeof(c), .flags = 2};

    (void)state;
    assert_false(csn_option_narrows(&o, &c, &(csn_narrow_base){.config = &user}));
}

static void each_value_is_compared_with_what_holds_without_it(void **state)
{
    static const struct {
        const char *json, *names;
    } rows[] = {
        {"{}", ""},
        {"{\"deny\":[\"a\"],\"deny_missing_ok\":\"b\",\"nofollow\":true,\"workdir\":\"a\"}",
         ""},
        {"{\"network\":{\"mode\":\"none\",\"deny\":[\"a.test\"],\"allow\":[]}}", ""},
        {"{\"network\":\"all\"}", "network.mode"},
        {"{\"network\":{\"allow\":[\"a.test\"],\"packages\":[\"npm\"],\"publish\":\"1\","
         "\"host_ports\":\"2\"}}",
         "network.allow network.packages network.publish network.host_ports"},
        {"{\"read\":[],\"write\":[],\"env\":{}}", ""},
        {"{\"read\":\"a\",\"write\":\"b\",\"home\":\"c\",\"workspaces\":\"d\",\"env\":\"E\"}",
         "workspaces read write home env"},
        {"{\"nested\":false,\"allow_weaker\":false,\"detached\":false}", ""},
        {"{\"nested\":true,\"allow_weaker\":true,\"detached\":true}",
         "allow_weaker nested detached"},
        {"{\"audit\":\"none\",\"audit_keep\":1,\"audit_max\":1,\"name\":\"n\",\"image\":\"i\"}",
         "name image audit audit_keep audit_max"},
        {"{\"backend\":\"jail\"}", ""},
        {"{\"backend\":\"local\"}", "backend"},
        {"{\"limits\":{\"pids\":100}}", ""},
        {"{\"limits\":{\"pids\":101}}", "limits.pids"},
        {"{\"limits\":{\"pids\":\"none\"}}", "limits.pids"},
        {"{\"limits\":{\"memory\":\"1M\",\"disk\":\"1G\",\"cpus\":64,\"file_size\":\"9G\"}}",
         ""},
        {"{\"limits\":{\"memory\":\"none\",\"disk\":\"2G\"}}", "limits.memory limits.disk"},
        {"{\"timeout\":\"30s\",\"lifetime\":\"5m\",\"output_max\":\"1M\"}", ""},
        {"{\"timeout\":\"31s\"}", "timeout"},
        {"{\"timeout\":\"none\"}", "timeout"},
        {"{\"lifetime\":\"6m\",\"output_max\":\"2M\"}", "output_max lifetime"},
        {"{\"commands\":[\"ls\"]}", ""},
        {"{\"commands\":[]}", ""},
        {"{\"commands\":[\"ls\",\"rm\"]}", "commands"},
        {"{\"rules\":[{\"op\":\"read\",\"effect\":\"deny\",\"path\":\"a\"}]}", ""},
        {"{\"rules\":[{\"op\":\"read\",\"effect\":\"deny\",\"path\":\"a\"},"
         "{\"op\":\"write\",\"effect\":\"allow\",\"path\":\"a/b\"}]}",
         "rules"},
        {"{\"rules\":[{\"op\":\"net\",\"effect\":\"allow\",\"path\":\"a.test\"}]}",
         "network.allow"},
        {"{\"workspace\":\".:ro\"}", ""},
        {"{\"workspace\":\".\"}", ""},
        {"{\"workspace\":\".:rw\"}", "workspace"},
        {"{\"workspace\":\"./:ro\"}", "workspace"},
        {"{\"workspace\":\"..:ro\"}", "workspace"},
        {"{\"workspace\":\"/:ro\"}", "workspace"},
        {"{\"workspace\":\"sub\"}", "workspace"},
    };
    const csn_narrow_base base = {
        .config = &user, .commands = user_commands, .own_workspace = true};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *names = widening(rows[i].json, &base);
        if (strcmp(names, rows[i].names) != 0)
            fail_msg("%s: '%s', not '%s'", rows[i].json, names, rows[i].names);
    }
}

static void without_a_list_of_the_user_every_list_of_commands_narrows(void **state)
{
    const csn_narrow_base base = {.config = &user};

    (void)state;
    assert_string_equal(widening("{\"commands\":[\"rm\"]}", &base), "");
}

static void the_workspace_is_compared_with_the_one_of_the_user(void **state)
{
    const csn_config read_only = {.size = sizeof(read_only), .workspace = "/p:ro"};
    const csn_narrow_base other = {.config = &user}, own = {&read_only, NULL, true};

    (void)state;
    assert_string_equal(widening("{\"workspace\":\".:ro\"}", &other), "workspace");
    assert_string_equal(widening("{\"workspace\":\".:ro\"}", &own), "");
    assert_string_equal(widening("{\"workspace\":\".\"}", &own), "workspace");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_option_has_a_direction),
        cmocka_unit_test(an_option_without_a_direction_widens),
        cmocka_unit_test(each_value_is_compared_with_what_holds_without_it),
        cmocka_unit_test(without_a_list_of_the_user_every_list_of_commands_narrows),
        cmocka_unit_test(the_workspace_is_compared_with_the_one_of_the_user),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
