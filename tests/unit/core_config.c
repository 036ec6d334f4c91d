/* Configurations: taken from callers of any version, read from JSON, written back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/strv.h"
#include "core/config.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static csn_config *parsed(const char *json)
{
    csn_config *c = NULL;
    csn_error *err = NULL;

    if (csn_config_parse(json, strlen(json), "test", &c, &err) != CSN_OK)
        fail_msg("%s: %s", json, csn_error_message(err));
    return c;
}

/* The message must name `part`. */
static void refused(const char *json, const char *part)
{
    csn_config *c = NULL;
    csn_error *err = NULL;

    if (csn_config_parse(json, strlen(json), "test", &c, &err) != CSN_INVALID)
        fail_msg("%s was taken", json);
    assert_null(c);
    if (!strstr(csn_error_message(err), part) || !strstr(csn_error_message(err), "test"))
        fail_msg("%s: '%s' does not name %s", json, csn_error_message(err), part);
    csn_error_free(err);
}

static const char full[] =
    "{\"backend\":\"local\",\"name\":\"n-1\",\"workspace\":\"w\",\"workdir\":\"/w/x\","
    "\"home\":\"/h\",\"read\":[\"/etc\",\"rel\"],\"write\":\"/srv\",\"deny\":[\"/w/.git\"],"
    "\"deny_missing_ok\":[\".env\"],"
    "\"commands\":[\"git\"],\"env\":[\"PATH\",\"A=b=c\",\"E=\"],"
    "\"rules\":[{\"op\":\"read\",\"effect\":\"allow\",\"path\":\"/x\"},"
    "{\"op\":[\"write\",\"delete\"],\"effect\":\"deny\",\"path\":\"/x/"
    "*\",\"scope\":\"files\"}],"
    "\"timeout\":\"30s\",\"output_max\":\"512K\",\"lifetime\":60000,"
    "\"limits\":{\"memory\":\"512M\",\"pids\":64,\"cpus\":1.5,\"disk\":\"2G\",\"file_size\":7},"
    "\"network\":{\"mode\":\"none\",\"allow\":[\"a.b:443\"],\"deny\":[\"x\"],"
    "\"packages\":[\"npm\"],\"publish\":[\"8080\"],\"host_ports\":[\"5432\"]},"
    "\"image\":\"img\",\"audit\":\"none\",\"nofollow\":true,\"allow_weaker\":true,"
    "\"detached\":true,\"workspaces\":[\"/a:/b:ro\"]}";

static void check_full(const csn_config *c)
{
    assert_int_equal(c->size, sizeof(*c));
    assert_string_equal(c->backend, "local");
    assert_string_equal(c->name, "n-1");
    assert_string_equal(c->workspace, "w");
    assert_string_equal(c->workdir, "/w/x");
    assert_string_equal(c->home, "/h");
    assert_string_equal(c->read[1], "rel");
    assert_null(c->read[2]);
    assert_string_equal(c->write[0], "/srv");
    assert_string_equal(c->deny[0], "/w/.git");
    assert_string_equal(c->deny_missing_ok[0], ".env");
    assert_string_equal(c->commands[0], "git");
    assert_string_equal(c->env[1], "A=b=c");
    assert_string_equal(c->env[2], "E=");
    assert_int_equal(c->rule_count, 2);
    assert_int_equal(c->rules[0].ops, CSN_OP_READ);
    assert_int_equal(c->rules[0].allow, 1);
    assert_int_equal(c->rules[1].ops, CSN_OP_WRITE | CSN_OP_DELETE | CSN_RULE_FILES);
    assert_int_equal(c->rules[1].allow, 0);
    assert_string_equal(c->rules[1].path, "/x/*");
    assert_int_equal(c->timeout_ms, 30000);
    assert_int_equal(c->output_max, 512 * 1024);
    assert_int_equal(c->lifetime_ms, 60000);
    assert_int_equal(c->memory_max, 512u << 20);
    assert_int_equal(c->pids_max, 64);
    assert_int_equal(c->cpu_milli, 1500);
    assert_true(c->disk_max == 2ull << 30);
    assert_int_equal(c->file_max, 7);
    assert_string_equal(c->network, "none");
    assert_string_equal(c->net_allow[0], "a.b:443");
    assert_string_equal(c->net_deny[0], "x");
    assert_string_equal(c->packages[0], "npm");
    assert_string_equal(c->publish[0], "8080");
    assert_string_equal(c->host_ports[0], "5432");
    assert_string_equal(c->image, "img");
    assert_string_equal(c->audit, "none");
    assert_string_equal(c->workspaces[0], "/a:/b:ro");
    assert_int_equal(c->flags, CSN_OPEN_DETACHED | CSN_OPEN_NOFOLLOW | CSN_OPEN_ALLOW_WEAKER);
}

static void reads_every_key(void **state)
{
    csn_config *c = parsed(full);

    (void)state;
    check_full(c);
    csn_config_free(c);
    csn_config_free(NULL);
}

static void what_is_written_reads_back_the_same(void **state)
{
    csn_config *c = parsed(full), *again = NULL;
    csn_buf out;

    (void)state;
    csn_buf_init(&out, 1 << 20);
    assert_int_equal(csn_config_encode(c, &out), 0);
    csn_config_free(c);
    again = parsed(out.data);
    check_full(again);
    csn_config_free(again);

    csn_config odd = {.size = sizeof(odd),
                      .commands = (const char *const[]){NULL},
                      .timeout_ms = CSN_NO_LIMIT,
                      .lifetime_ms = CSN_NO_LIMIT - 1,
                      .output_max = CSN_NO_LIMIT,
                      .memory_max = CSN_NO_LIMIT,
                      .disk_max = UINT64_MAX - 1,
                      .cpu_milli = 1};
    out.len = 0;
    assert_int_equal(csn_config_encode(&odd, &out), 0);
    again = parsed(out.data);
    assert_non_null(again->commands);
    assert_null(again->commands[0]);
    assert_null(again->read);
    assert_true(again->timeout_ms == CSN_NO_LIMIT);
    assert_true(again->lifetime_ms == CSN_NO_LIMIT - 1);
    assert_true(again->output_max == CSN_NO_LIMIT);
    assert_true(again->memory_max == CSN_NO_LIMIT);
    assert_true(again->disk_max == UINT64_MAX - 1);
    assert_int_equal(again->cpu_milli, 1);
    csn_config_free(again);

    csn_config bad = {.size = sizeof(bad), .workspace = "/a\xff"};
    out.len = 0;
    assert_int_not_equal(csn_config_encode(&bad, &out), 0);
    csn_buf_release(&out);
}

static void numbers_and_words_for_times_sizes_and_cpus(void **state)
{
    csn_config *c = parsed("{\"timeout\":1500,\"limits\":{\"memory\":1024,\"cpus\":2}}");

    (void)state;
    assert_int_equal(c->timeout_ms, 1500);
    assert_int_equal(c->memory_max, 1024);
    assert_int_equal(c->cpu_milli, 2000);
    csn_config_free(c);
    c = parsed("{\"timeout\":0,\"lifetime\":\"0\",\"limits\":{\"cpus\":0.1}}");
    assert_true(c->timeout_ms == CSN_NO_LIMIT);
    assert_true(c->lifetime_ms == CSN_NO_LIMIT);
    assert_int_equal(c->cpu_milli, 100);
    csn_config_free(c);
    c = parsed("{\"timeout\":\"500ms\",\"limits\":{\"cpus\":\"0.25\"},\"network\":\"all\"}");
    assert_int_equal(c->timeout_ms, 500);
    assert_int_equal(c->cpu_milli, 250);
    assert_string_equal(c->network, "all");
    csn_config_free(c);
    c = parsed("{}");
    assert_int_equal(c->timeout_ms, 0);
    assert_null(c->network);
    assert_null(c->env);
    csn_config_free(c);
}

static void profiles_are_checked_and_not_applied(void **state)
{
    csn_config *c = parsed("{\"$schema\":\"x\",\"deny\":[\"a\"],\"profiles\":{\"t\":"
                           "{\"deny\":[\"b\"],\"network\":\"all\"},\"u\":{}}}");

    (void)state;
    assert_string_equal(c->deny[0], "a");
    assert_null(c->deny[1]);
    assert_null(c->network);
    csn_config_free(c);
    refused("{\"$schema\":1}", "$schema");
    refused("{\"profiles\":[]}", "profiles");
    refused("{\"profiles\":{\"t\":null}}", "profiles.t");
    refused("{\"profiles\":{\"t\":{\"dney\":[]}}}", "profiles.t");
    refused("{\"profiles\":{\"-t\":{}}}", "-t");
    refused("{\"profiles\":{\"t\":{\"profiles\":{}}}}", "profiles.t");
    refused("{\"profiles\":{\"t\":{\"$schema\":\"x\"}}}", "profiles.t");
    refused("{\"limits\":{\"profiles\":{}}}", "profiles");
}

static void env_may_be_a_list_or_an_object(void **state)
{
    csn_config *c =
        parsed("{\"env\":{\"A\":\"1\",\"B_2\":\"x\\\"y\\\\z=\\n,:{}\",\"C\":\"\"}}");

    (void)state;
    assert_string_equal(c->env[0], "A=1");
    assert_string_equal(c->env[1], "B_2=x\"y\\z=\n,:{}");
    assert_string_equal(c->env[2], "C=");
    assert_null(c->env[3]);
    csn_config_free(c);
    c = parsed("{\"env\":{}}");
    assert_null(c->env[0]);
    csn_config_free(c);
    refused("{\"env\":{\"A\":1}}", "A");
    refused("{\"env\":{\"A\":null}}", "A");
    refused("{\"env\":{\"a b\":\"x\"}}", "a b");
    refused("{\"env\":{\"a=b\":\"x\"}}", "a=b");
    refused("{\"env\":{\"\":\"x\"}}", "env");
    refused("{\"env\":{\"a\\\"b\":\"x\"}}", "env");
}

static void wrong_keys_and_types_are_refused_by_name(void **state)
{
    (void)state;
    refused("{\"reed\":[]}", "reed");
    refused("{\"limits\":{\"ram\":1}}", "ram");
    refused("{\"network\":{\"allowed\":[]}}", "allowed");
    refused("{\"rules\":[{\"op\":\"read\",\"effect\":\"deny\",\"path\":\"/x\",\"x\":1}]}", "x");
    refused("{\"read\":5}", "read");
    refused("{\"read\":[\"/a\",5]}", "read[1]");
    refused("{\"workspace\":[]}", "workspace");
    refused("{\"timeout\":\"soon\"}", "timeout");
    refused("{\"timeout\":-1}", "timeout");
    refused("{\"timeout\":1.5}", "timeout");
    refused("{\"limits\":{\"memory\":\"lots\"}}", "memory");
    refused("{\"limits\":{\"cpus\":\"two\"}}", "cpus");
    refused("{\"limits\":{\"cpus\":-1}}", "cpus");
    refused("{\"limits\":[]}", "limits");
    refused("{\"network\":\"some\"}", "network");
    refused("{\"network\":7}", "network");
    refused("{\"network\":{\"allow\":[\"a.test\",\"a b\"]}}", "network.allow[1]");
    refused("{\"network\":{\"deny\":[\"127.1\"]}}", "network.deny[0]");
    refused("{\"network\":{\"mode\":\"all\",\"deny\":[\"a.test:0\"]}}", "network.deny[0]");
    refused("{\"network\":{\"packages\":[\"npm\",\"cpan\"]}}", "network.packages[1]");
    refused("{\"network\":{\"publish\":[\"80\",\"99999\"]}}", "network.publish[1]");
    refused("{\"network\":{\"host_ports\":[\"0:80\"]}}", "network.host_ports[0]");
    refused("{\"nofollow\":\"yes\"}", "nofollow");
    refused("{\"commands\":[],\"allow_commands\":[]}", "allow_commands");
    refused("{\"rules\":[{\"op\":\"look\",\"effect\":\"deny\",\"path\":\"/x\"}]}", "rules[0]");
    refused("{\"rules\":[{\"op\":[],\"effect\":\"deny\",\"path\":\"/x\"}]}", "rules[0]");
    refused("{\"rules\":[{\"op\":\"read\",\"effect\":\"maybe\",\"path\":\"/x\"}]}", "effect");
    refused("{\"rules\":[{\"op\":\"read\",\"effect\":\"deny\"}]}", "rules[0]");
    refused("{\"rules\":[{\"op\":\"net\",\"effect\":\"deny\",\"path\":\"a..b\"}]}", "a..b");
    refused("{\"rules\":[{\"op\":[\"read\",\"net\"],\"effect\":\"deny\",\"path\":\"/x\"}]}",
            "/x");
    refused("{\"rules\":[7]}", "rules[0]");
    refused("{\"rules\":{}}", "rules");
    refused("{\"name\":\"a/b\"}", "name");
    refused("{\"name\":\"../x\"}", "name");
    refused("{\"backend\":\"\"}", "backend");
    refused("{\"read\":[\"\"]}", "read[0]");
    refused("[]", "test");
    refused("{\"read\":[],\"read\":[]}", "test");
    refused("{} x", "test");
    refused("", "test");
}

static void allow_commands_is_another_word_for_commands(void **state)
{
    csn_config *c = parsed("{\"allow_commands\":[\"make\",\"git\"]}");

    (void)state;
    assert_string_equal(c->commands[1], "git");
    csn_config_free(c);
}

/* ---- take ------------------------------------------------------------------------------- */

static csn_status take(const csn_config *c, const char *part)
{
    csn_config *copy = NULL;
    csn_error *err = NULL;
    csn_status st = csn_config_take(c, &copy, &err);

    if (st < 0 && part && !strstr(csn_error_message(err), part))
        fail_msg("'%s' does not name %s", csn_error_message(err), part);
    csn_error_free(err);
    csn_config_free(copy);
    return st;
}

static void a_copy_is_deep(void **state)
{
    char path[] = "/x", entry[] = "A=b", rule[] = "/r";
    const char *list[] = {entry, NULL};
    csn_rule rules[] = {{CSN_OP_READ, 1, rule}};
    csn_config given = {.size = sizeof(given),
                        .backend = "local",
                        .workspace = path,
                        .env = list,
                        .rules = rules,
                        .rule_count = 1},
               *c = NULL;

    (void)state;
    assert_int_equal(csn_config_take(&given, &c, NULL), CSN_OK);
    path[1] = entry[0] = rule[1] = 'z';
    list[0] = NULL;
    rules[0].ops = 0;
    assert_string_equal(c->workspace, "/x");
    assert_string_equal(c->env[0], "A=b");
    assert_string_equal(c->rules[0].path, "/r");
    assert_int_equal(c->rules[0].ops, CSN_OP_READ);
    csn_config_free(c);
    c = parsed(full);
    csn_config *again = NULL;
    assert_int_equal(csn_config_take(c, &again, NULL), CSN_OK);
    csn_config_free(c);
    check_full(again);
    csn_config_free(again);
}

static void size_is_the_version(void **state)
{
    struct {
        csn_config c;
        uint64_t more[2];
    } newer = {.c = {.size = sizeof(newer), .backend = "local"}};
    csn_config older = {.size = offsetof(csn_config, workspace),
                        .backend = "local",
                        .workspace = (const char *)1,
                        .env = (const char *const *)1};

    (void)state;
    assert_int_equal(take(&newer.c, NULL), CSN_OK);
    newer.more[1] = 1;
    assert_int_equal(take(&newer.c, NULL), CSN_UNSUPPORTED);
    assert_int_equal(take(&older, NULL), CSN_OK);
    assert_int_equal(take(&(csn_config){.size = 0}, NULL), CSN_INVALID);
    assert_int_equal(take(&(csn_config){.size = 7}, NULL), CSN_INVALID);
    assert_int_equal(take(&(csn_config){.size = 8}, NULL), CSN_OK);
    assert_int_equal(take(NULL, NULL), CSN_OK);
    assert_int_equal(take(&(csn_config){.size = sizeof(csn_config), .flags = 1u << 30}, NULL),
                     CSN_INVALID);
}

static void check_backend(const char *given, const char *want)
{
    csn_config in = {.size = sizeof(in), .backend = given}, *c = NULL;

    assert_int_equal(csn_config_take(&in, &c, NULL), CSN_OK);
    assert_string_equal(c->backend, want);
    csn_config_free(c);
}

static void the_backend_comes_from_config_then_environment_then_jail(void **state)
{
    (void)state;
    unsetenv("CAISSON_BACKEND");
    unsetenv("VERCEL");
    check_backend(NULL, "jail");
    setenv("VERCEL", "0", 1);
    check_backend(NULL, "jail");
    setenv("VERCEL", "1", 1);
    check_backend(NULL, "vercel");
    setenv("CAISSON_BACKEND", "docker", 1);
    check_backend(NULL, "docker");
    check_backend("local", "local");
    setenv("CAISSON_BACKEND", "", 1);
    check_backend(NULL, "vercel");
    unsetenv("CAISSON_BACKEND");
    unsetenv("VERCEL");
}

static csn_status take_env(const char *entry)
{
    return take(&(csn_config){.size = sizeof(csn_config), .env = LIST("OK", entry)}, "env[1]");
}

static void env_entries_must_be_names(void **state)
{
    csn_error *err = NULL;
    csn_config *c = NULL;

    (void)state;
    assert_int_equal(take_env("A"), CSN_OK);
    assert_int_equal(take_env("_a1=x y z=\n"), CSN_OK);
    assert_int_equal(take_env("A="), CSN_OK);
    assert_int_equal(take_env(""), CSN_INVALID);
    assert_int_equal(take_env("=x"), CSN_INVALID);
    assert_int_equal(take_env("1A=x"), CSN_INVALID);
    assert_int_equal(take_env("A B=x"), CSN_INVALID);
    assert_int_equal(take_env("A-B"), CSN_INVALID);
    assert_int_equal(take_env("\xc3\xa9=x"), CSN_INVALID);
    /* values are nobody's business, not even here */
    csn_config bad = {.size = sizeof(bad), .env = LIST("A B=hunter2")};
    assert_int_equal(csn_config_take(&bad, &c, &err), CSN_INVALID);
    assert_null(strstr(csn_error_message(err), "hunter2"));
    csn_error_free(err);
}

static void names_rules_and_limits_are_checked(void **state)
{
    csn_rule rules[] = {{CSN_OP_READ, 1, "/x"}, {0, 1, "/y"}};
    csn_config c = {.size = sizeof(c), .rules = rules, .rule_count = 2};

    (void)state;
    assert_int_equal(take(&c, "rules[1]"), CSN_INVALID);
    rules[1] = (csn_rule){1u << 20, 1, "/y"};
    assert_int_equal(take(&c, "rules[1]"), CSN_INVALID);
    rules[1] = (csn_rule){CSN_OP_EXEC, 1, ""};
    assert_int_equal(take(&c, "rules[1]"), CSN_INVALID);
    rules[1] = (csn_rule){CSN_OP_EXEC, 1, NULL};
    assert_int_equal(take(&c, "rules[1]"), CSN_INVALID);
    rules[1] = (csn_rule){CSN_OP_EXEC, 2, "x"};
    assert_int_equal(take(&c, "rules[1]"), CSN_INVALID);
    rules[1] = (csn_rule){CSN_OP_EXEC, 1, "x"};
    assert_int_equal(take(&c, NULL), CSN_OK);
    c.rules = NULL;
    assert_int_equal(take(&c, "rules"), CSN_INVALID);
    c.rule_count = 0;
    c.name = "a b";
    assert_int_equal(take(&c, "name"), CSN_INVALID);
    c.name = "a.b_c-1";
    c.output_max = 1ull << 40;
    assert_int_equal(take(&c, "output_max"), CSN_INVALID);
    c.output_max = CSN_NO_LIMIT;
    assert_int_equal(take(&c, NULL), CSN_OK);
    c.network = "most";
    assert_int_equal(take(&c, "network"), CSN_INVALID);
}

/* One place judges hosts: rules for them are network rules, however they were given. */
static void rules_for_hosts_are_network_rules(void **state)
{
    const csn_rule rules[] = {{CSN_OP_NET, 1, "ok.test:443"},
                              {CSN_OP_EXEC, 0, "rm"},
                              {CSN_OP_NET | CSN_OP_EXEC, 0, "evil.test"}};
    const char *const allow[] = {"a.test", NULL};
    csn_config *c = NULL, *again = NULL;
    csn_buf b;

    (void)state;
    csn_buf_init(&b, 1 << 16);
    assert_int_equal(csn_config_take(&(csn_config){.size = sizeof(csn_config),
                                                   .backend = "local",
                                                   .net_allow = allow,
                                                   .rules = rules,
                                                   .rule_count = 3},
                                     &c, NULL),
                     CSN_OK);
    assert_string_equal(c->net_allow[0], "a.test");
    assert_string_equal(c->net_allow[1], "ok.test:443");
    assert_null(c->net_allow[2]);
    assert_string_equal(c->net_deny[0], "evil.test");
    assert_null(c->net_deny[1]);
    assert_int_equal(c->rule_count, 2);
    assert_int_equal(c->rules[0].ops, CSN_OP_EXEC);
    assert_int_equal(c->rules[1].ops, CSN_OP_EXEC);
    assert_int_equal(csn_config_encode(c, &b), 0);
    assert_int_equal(csn_config_parse(b.data, b.len, NULL, &again, NULL), CSN_OK);
    assert_string_equal(again->net_deny[0], "evil.test");
    assert_null(again->net_deny[1]);
    csn_config_free(again);
    csn_config_free(c);
    csn_buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_key),
        cmocka_unit_test(what_is_written_reads_back_the_same),
        cmocka_unit_test(numbers_and_words_for_times_sizes_and_cpus),
        cmocka_unit_test(env_may_be_a_list_or_an_object),
        cmocka_unit_test(wrong_keys_and_types_are_refused_by_name),
        cmocka_unit_test(allow_commands_is_another_word_for_commands),
        cmocka_unit_test(a_copy_is_deep),
        cmocka_unit_test(size_is_the_version),
        cmocka_unit_test(the_backend_comes_from_config_then_environment_then_jail),
        cmocka_unit_test(env_entries_must_be_names),
        cmocka_unit_test(profiles_are_checked_and_not_applied),
        cmocka_unit_test(names_rules_and_limits_are_checked),
        cmocka_unit_test(rules_for_hosts_are_network_rules),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
