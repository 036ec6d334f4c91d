/* Package managers: whose files count, and whose do not. */
#include <fcntl.h>
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

#include "base/cleanup.h"
#include "base/strv.h"
#include "child.h"
#include "core/packages.h"
#include "os/tree.h"
#include "policy/netrules.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

/* A home and a workspace of our own; variables that could speak of others are taken away. */
typedef struct place {
    char top[256], home[272], work[272];
} place;

static int make_place(void **state)
{
    static const char *const vars[] = {"XDG_CONFIG_HOME",
                                       "CARGO_HOME",
                                       "GOENV",
                                       "GOPROXY",
                                       "GOSUMDB",
                                       "PIP_CONFIG_FILE",
                                       "PIP_INDEX_URL",
                                       "UV_INDEX",
                                       "UV_CONFIG_FILE",
                                       "npm_config_registry",
                                       "npm_config_userconfig",
                                       "NPM_CONFIG_REGISTRY",
                                       "NPM_CONFIG_USERCONFIG",
                                       NULL};
    place *p = calloc(1, sizeof(*p));

    if (!p)
        return -1;
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(p->top, sizeof(p->top), "%s/csn-packages-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(p->top));
    (void)snprintf(p->home, sizeof(p->home), "%s/home", p->top);
    (void)snprintf(p->work, sizeof(p->work), "%s/work", p->top);
    assert_int_equal(mkdir(p->home, 0700), 0);
    assert_int_equal(mkdir(p->work, 0700), 0);
    for (size_t i = 0; vars[i]; i++)
        assert_int_equal(unsetenv(vars[i]), 0);
    assert_int_equal(setenv("HOME", p->home, 1), 0);
    *state = p;
    return 0;
}

static void put(const char *dir, const char *name, const char *text)
{
    char path[512];

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    for (char *c = path + strlen(dir) + 1; (c = strchr(c, '/')); c++) {
        *c = '\0';
        (void)mkdir(path, 0700);
        *c = '/';
    }
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static int remove_place(void **state)
{
    place *p = *state;
    char *name = strrchr(p->top, '/');

    *name = '\0';
    csn_autofd int above = open(p->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = above < 0 ? -1 : csn_tree_remove(above, name + 1);
    free(p);
    return rc;
}

static char **expand(const csn_config *c, const char *const *names)
{
    char **rules = NULL;
    csn_error *err = NULL;

    if (csn_packages_rules(c, names, &rules, &err) != CSN_OK)
        fail_msg("%s", csn_error_message(err));
    for (size_t i = 0; rules && rules[i]; i++) {
        csn_netrule rule;
        assert_true(csn_netrule_parse(rules[i], &rule, NULL));
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(rules[i], rules[k]);
    }
    return rules;
}

static void has(const csn_config *c, const char *name, const char *rule, bool want)
{
    char **rules = expand(c, LIST(name)), own[CSN_NETRULE_TEXT + 16];

    /* a name that only the configuration has may be of the local network */
    (void)snprintf(own, sizeof(own), "%s/private", rule);
    if (csn_strv_has((const char *const *)rules, own) != want)
        fail_msg("%s: %s is %s", name, rule, want ? "missing" : "there");
    csn_strv_free(rules);
}

static void files_of_the_user_count(void **state)
{
    const place *p = *state;
    csn_config c = {.size = sizeof(c), .workspace = p->work};

    put(p->home, ".npmrc", "registry=https://npm.corp.test/\n//npm.corp.test/:_authToken=x\n");
    put(p->home, ".config/pip/pip.conf",
        "[global]\nindex-url=https://u:p@pip.corp.test:8443/x\n");
    put(p->home, ".config/uv/uv.toml", "index-url = \"https://uv.corp.test\"\n");
    put(p->home, ".cargo/config.toml",
        "[registries.c]\nindex = \"sparse+https://cargo.corp.test/\"\n");
    put(p->home, ".config/go/env", "GOPROXY=https://go.corp.test,direct\n");
    put(p->home, ".m2/settings.xml", "<settings><url>https://maven.corp.test</url></settings>");
    put(p->home, ".gemrc", ":sources:\n- https://gem.corp.test\n");
    put(p->home, ".bundle/config", "BUNDLE_MIRROR__ALL: \"https://bundle.corp.test\"\n");
    has(&c, "npm", "npm.corp.test:443", true);
    has(&c, "pip", "pip.corp.test:8443", true);
    has(&c, "uv", "uv.corp.test:443", true);
    has(&c, "cargo", "cargo.corp.test:443", true);
    has(&c, "go", "go.corp.test:443", true);
    has(&c, "maven", "maven.corp.test:443", true);
    has(&c, "gem", "gem.corp.test:443", true);
    has(&c, "gem", "bundle.corp.test:443", true);
    has(&c, "npm", "pip.corp.test:8443", false);
    /* a place of another's choosing takes the place of the usual one */
    put(p->top, "cargo/config.toml", "[registries.c]\nindex = \"https://other.corp.test/\"\n");
    char dir[512];
    (void)snprintf(dir, sizeof(dir), "%s/cargo", p->top);
    assert_int_equal(setenv("CARGO_HOME", dir, 1), 0);
    has(&c, "cargo", "other.corp.test:443", true);
    has(&c, "cargo", "cargo.corp.test:443", false);
    unsetenv("CARGO_HOME");
}

static void variables_count(void **state)
{
    const place *p = *state;
    csn_config c = {.size = sizeof(c), .workspace = p->work};
    static const char *const rows[][3] = {
        {"npm", "npm_config_registry", "https://v.test"},
        {"npm", "NPM_CONFIG_REGISTRY", "https://v.test"},
        {"npm", "npm_config_@corp:registry", "https://v.test"},
        {"pip", "PIP_INDEX_URL", "https://v.test/simple"},
        {"pip", "PIP_EXTRA_INDEX_URL", "https://w.test https://u:p@v.test"},
        {"uv", "UV_DEFAULT_INDEX", "https://v.test"},
        {"uv", "UV_INDEX", "corp=https://v.test"},
        {"cargo", "CARGO_REGISTRIES_CORP_INDEX", "sparse+https://v.test/i/"},
        {"go", "GOPROXY", "https://v.test|direct"},
        {"go", "GOSUMDB", "v.test+key"},
        {"gem", "BUNDLE_MIRROR__ALL", "https://v.test"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        has(&c, rows[i][0], "v.test:443", false);
        assert_int_equal(setenv(rows[i][1], rows[i][2], 1), 0);
        has(&c, rows[i][0], "v.test:443", true);
        unsetenv(rows[i][1]);
    }
}

/* What the sandbox may write must not decide what it may reach. */
static void files_of_the_project_do_not_count(void **state)
{
    const place *p = *state;
    csn_config c = {.size = sizeof(c), .workspace = p->work};
    char path[512], below[512], glob[512];

    put(p->work, ".npmrc", "registry=https://evil.test/\n");
    assert_int_equal(chdir(p->work), 0);
    has(&c, "npm", "evil.test:443", false);
    (void)snprintf(path, sizeof(path), "%s/.npmrc", p->work);
    assert_int_equal(setenv("npm_config_userconfig", path, 1), 0);
    has(&c, "npm", "evil.test:443", false);
    assert_int_equal(setenv("npm_config_userconfig", ".npmrc", 1), 0);
    has(&c, "npm", "evil.test:443", false);
    unsetenv("npm_config_userconfig");
    /* by a link of the user's into the workspace */
    (void)snprintf(below, sizeof(below), "%s/.npmrc", p->home);
    assert_int_equal(symlink(path, below), 0);
    has(&c, "npm", "evil.test:443", false);
    assert_int_equal(unlink(below), 0);
    /* the home directory itself may be written, in each of the ways that can be said */
    put(p->home, ".npmrc", "registry=https://mine.test/\n");
    (void)snprintf(glob, sizeof(glob), "%s/.np*", p->home);
    (void)snprintf(path, sizeof(path), "%s:/x:rw", p->home);
    csn_rule rules[] = {{CSN_OP_WRITE, 1, glob}};
    csn_config ways[] = {
        {.workspace = p->home},
        {.workspace = p->top},
        {.workspace = p->work, .home = p->home},
        {.workspace = p->work, .write = LIST(p->home)},
        {.workspace = p->work, .write = LIST("~")},
        {.workspace = p->work, .write = LIST("~/.npmrc")},
        {.workspace = p->work, .workspaces = LIST(path)},
        {.workspace = p->work, .rules = rules, .rule_count = 1},
    };
    has(&c, "npm", "mine.test:443", true);
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        has(&ways[i], "npm", "mine.test:443", false);
    assert_int_equal(chdir(p->home), 0);
    has(&(csn_config){.size = 0}, "npm", "mine.test:443", false);
    assert_int_equal(chdir("/"), 0);
}

static void odd_files_hold_nobody_up(void **state)
{
    const place *p = *state;
    csn_config c = {.size = sizeof(c), .workspace = p->work};
    char path[512];

    (void)snprintf(path, sizeof(path), "%s/.npmrc", p->home);
    assert_int_equal(mkfifo(path, 0600), 0);
    has(&c, "npm", "x.test:443", false);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    has(&c, "npm", "x.test:443", false);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(symlink(path, path), 0);
    has(&c, "npm", "x.test:443", false);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/dev/zero", path), 0);
    has(&c, "npm", "x.test:443", false);
    assert_int_equal(unlink(path), 0);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs("registry=https://early.test\n", f) >= 0);
    assert_int_equal(fseek(f, 3L << 20, SEEK_SET), 0);
    assert_true(fputs("\nregistry=https://late.test\n", f) >= 0);
    assert_int_equal(fclose(f), 0);
    has(&c, "npm", "early.test:443", true);
    has(&c, "npm", "late.test:443", false);
    unsetenv("HOME");
    has(&c, "npm", "early.test:443", false);
}

static void lists(const csn_config *c, const char *name, const char *rule, bool want)
{
    char **rules = expand(c, LIST(name));

    if (csn_strv_has((const char *const *)rules, rule) != want)
        fail_msg("%s: %s is %s", name, rule, want ? "missing" : "there");
    csn_strv_free(rules);
}

/* The index that the user selected may be anywhere but at a metadata service. */
static void configured_hosts_may_be_private(void **state)
{
    const place *p = *state;
    csn_config c = {.size = sizeof(c), .workspace = p->work};

    put(p->home, ".npmrc",
        "registry=http://mirror.corp.test:8081/\n@a:registry=http://10.1.2.3:8082/\n"
        "@b:registry=http://localhost:4873/\n@c:registry=http://169.254.169.254/x\n"
        "@d:registry=https://registry.npmjs.org/\n");
    static const char *const readers[] = {"npm", "yarn", "pnpm", "bun"};
    for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++) {
        lists(&c, readers[i], "mirror.corp.test:8081/private", true);
        lists(&c, readers[i], "mirror.corp.test:8081", false);
        lists(&c, readers[i], "10.1.2.3:8082", true);
        lists(&c, readers[i], "localhost:4873", true);
        lists(&c, readers[i], "169.254.169.254:80", false);
        /* the public service is covered already, and stays public */
        lists(&c, readers[i], "registry.npmjs.org:443/private", false);
        lists(&c, readers[i], "*.npmjs.org:443", true);
    }
    put(p->home, ".config/pnpm/rc", "registry=https://pnpm.corp.test\n");
    put(p->home, ".bunfig.toml", "[install]\nregistry = \"https://bun.corp.test\"\n");
    has(&c, "pnpm", "pnpm.corp.test:443", true);
    has(&c, "npm", "pnpm.corp.test:443", false);
    has(&c, "bun", "bun.corp.test:443", true);
    has(&c, "poetry", "mirror.corp.test:8081", false);
}

static void env_has(const csn_config *c, const char *name, const char *want)
{
    char **env = NULL;
    csn_error *err = NULL;

    if (csn_packages_env(c, LIST(name), &env, &err) != CSN_OK)
        fail_msg("%s", csn_error_message(err));
    const char *first = env ? env[0] : "";
    if (strcmp(first, want) != 0 || (env && env[1]))
        fail_msg("%s: %s, want %s", name, first, want);
    csn_strv_free(env);
}

static void the_index_is_passed_on(void **state)
{
    const place *p = *state;
    csn_config c = {.size = sizeof(c), .workspace = p->work};

    put(p->home, ".npmrc", "registry=http://u:p@mirror.corp.test:8081/\n");
    env_has(&c, "npm", "npm_config_registry=http://mirror.corp.test:8081/");
    env_has(&c, "yarn", "npm_config_registry=http://mirror.corp.test:8081/");
    env_has(&c, "pip", "");
    assert_int_equal(setenv("NPM_CONFIG_REGISTRY", "https://u:p@var.test/", 1), 0);
    env_has(&c, "npm", "npm_config_registry=https://var.test/");
    unsetenv("NPM_CONFIG_REGISTRY");
    c.env = LIST("npm_config_registry=https://mine.test");
    env_has(&c, "npm", "");
    c.env = LIST("npm_config_registry");
    env_has(&c, "npm", "");
    c.env = NULL;
    /* the project's file would lose against a variable */
    put(p->work, ".npmrc", "registry=https://evil.test/\n");
    env_has(&c, "npm", "");
    assert_int_equal(setenv("CARGO_REGISTRIES_C_TOKEN", "https://secret", 1), 0);
    env_has(&c, "cargo", "");
    unsetenv("CARGO_REGISTRIES_C_TOKEN");
    assert_int_equal(setenv("PIP_FIND_LINKS", "/opt/wheels", 1), 0);
    env_has(&c, "pip", "");
    unsetenv("PIP_FIND_LINKS");
    /* a file that the sandbox may write does not count */
    csn_config own = {.size = sizeof(own), .workspace = p->home};
    env_has(&own, "npm", "");
}

static void presets_are_known_by_name(void **state)
{
    csn_error *err = NULL;
    char **rules = NULL;
    csn_config c = {.size = sizeof(c)};

    (void)state;
    assert_int_equal(csn_packages_rules(&c, LIST("npm", "cpan"), &rules, &err), CSN_INVALID);
    assert_null(rules);
    assert_non_null(strstr(csn_error_message(err), "cpan"));
    csn_error_free(err);
    assert_int_equal(csn_packages_rules(&c, NULL, &rules, NULL), CSN_OK);
    assert_null(rules);
    rules =
        expand(&c, LIST("npm", "pip", "uv", "cargo", "go", "maven", "apt", "gem", "github"));
    assert_true(csn_strv_len((const char *const *)rules) > 9);
    csn_netrules *r = NULL;
    assert_int_equal(csn_netrules_new(NULL, (const char *const *)rules, NULL, &r, NULL),
                     CSN_OK);
    csn_netrules_free(r);
    csn_strv_free(rules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_of_the_user_count, make_place, remove_place),
        cmocka_unit_test_setup_teardown(variables_count, make_place, remove_place),
        cmocka_unit_test_setup_teardown(files_of_the_project_do_not_count, make_place,
                                        remove_place),
        cmocka_unit_test_setup_teardown(odd_files_hold_nobody_up, make_place, remove_place),
        cmocka_unit_test_setup_teardown(configured_hosts_may_be_private, make_place,
                                        remove_place),
        cmocka_unit_test_setup_teardown(the_index_is_passed_on, make_place, remove_place),
        cmocka_unit_test_setup_teardown(presets_are_known_by_name, make_place, remove_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
