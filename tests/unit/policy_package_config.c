/* Package managers: the table of presets, and the hosts in their configuration files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "child.h"
#include "policy/netrules.h"
#include "policy/package_config.h"

static void collect(void *ctx, const char *rule)
{
    csn_netrule parsed;
    const char *why = "";

    if (!csn_netrule_parse(rule, &parsed, &why))
        fail_msg("%s: %s", rule, why);
    assert_int_equal(csn_buf_printf(ctx, "%s ", rule), 0);
}

/* The text is given without a byte behind it. */
static void reads(csn_registry_format format, const char *text, const char *want)
{
    csn_autobuf found;
    char *copy = malloc(strlen(text) + 1);

    assert_non_null(copy);
    memcpy(copy, text, strlen(text));
    copy = realloc(copy, strlen(text) ? strlen(text) : 1);
    csn_buf_init(&found, 65536);
    csn_registry_hosts(format, copy, strlen(text), collect, &found);
    if (strcmp(found.data ? found.data : "", want) != 0)
        fail_msg("%s\nfound '%s', wanted '%s'", text, found.data ? found.data : "", want);
    free(copy);
}

static void addresses(void **state)
{
    (void)state;
    reads(CSN_REGISTRY_URLS, "https://mirror.corp.test/npm/", "mirror.corp.test:443 ");
    reads(CSN_REGISTRY_URLS, "http://Mirror.Corp.test:8081", "mirror.corp.test:8081 ");
    reads(CSN_REGISTRY_URLS, "https://user:secret@m.test/x", "m.test:443 ");
    reads(CSN_REGISTRY_URLS, "https://${USER}:${TOKEN}@m.test/x", "m.test:443 ");
    reads(CSN_REGISTRY_URLS, "https://ok.test@evil.test/x", "evil.test:443 ");
    reads(CSN_REGISTRY_URLS, "https://a:b@c@m.test", "m.test:443 ");
    reads(CSN_REGISTRY_URLS, "sparse+https://m.test/index/", "m.test:443 ");
    reads(CSN_REGISTRY_URLS, "corp=https://m.test/simple", "m.test:443 ");
    reads(CSN_REGISTRY_URLS, "ssh://git@m.test:2222/x git+ssh://n.test",
          "m.test:2222 n.test:22 ");
    reads(CSN_REGISTRY_URLS, "https://a.test,direct", "a.test:443 ");
    reads(CSN_REGISTRY_URLS, "https://a.test|http://b.test,off", "a.test:443 b.test:80 ");
    reads(CSN_REGISTRY_URLS, "https://10.0.0.5:8443/", "10.0.0.5:8443 ");
    reads(CSN_REGISTRY_URLS, "https://[fd00::5]:8443/ https://[fd00::6]",
          "[fd00::5]:8443 [fd00::6]:443 ");
    reads(CSN_REGISTRY_URLS, "https://m.test:/x", "m.test:443 ");
    reads(CSN_REGISTRY_URLS, "http://10.1.2.3:8081/x http://LOCALHOST:4873/",
          "10.1.2.3:8081 localhost:4873 ");
    reads(CSN_REGISTRY_URLS, "http://127.0.0.1:3141/ http://[::1]:3142",
          "127.0.0.1:3141 [::1]:3142 ");
}

static void what_is_no_host_is_passed_over(void **state)
{
    static const char *const texts[] = {"",
                                        "direct",
                                        "off",
                                        "m.test",
                                        "//m.test",
                                        "://m.test",
                                        "file:///srv/mirror",
                                        "ftp://m.test",
                                        "https://",
                                        "https:///x",
                                        "https://${HOST}/x",
                                        "https://m.test:port/",
                                        "https://m.test:99999/",
                                        "https://*.m.test/",
                                        "https://m_x.test/",
                                        "https://127.1/",
                                        "https://[::1/",
                                        "https://a b",
                                        "https://x.localhost/",
                                        "http://127.0.0.2:3141/",
                                        "http://[::ffff:127.0.0.2]:3141",
                                        "http://0.0.0.0/",
                                        "http://169.254.169.254/latest",
                                        "https://user@/",
                                        "https://10.0.0.0%2f8/",
                                        "https://m.test\\@evil.test",
                                        "https://\xc3\xa4.test/"};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        reads(CSN_REGISTRY_URLS, texts[i],
              strstr(texts[i], "a b")  ? "a:443 "
              : strchr(texts[i], '\\') ? "m.test:443 "
                                       : "");
}

static void npm(void **state)
{
    (void)state;
    reads(CSN_REGISTRY_NPMRC,
          "; registry=https://no.test\n# registry=https://no.test\nregistry = "
          "\"https://a.test/\"\r\n"
          "@corp:registry=https://b.test:4873/\n//c.test/:_authToken=https://no.test\n"
          "proxy=http://no.test:3128\nregistry\nregistry=\n=https://no.test\n",
          "a.test:443 b.test:4873 ");
    reads(CSN_REGISTRY_YARNRC,
          "# registry \"https://no.test\"\nregistry \"https://a.test\"\n"
          "\"@corp:registry\" \"https://b.test\"\nnpmRegistryServer: \"https://c.test\"\n"
          "npmScopes:\n  corp:\n    npmRegistryServer: https://d.test/npm\nhttpProxy: "
          "http://no.test\n",
          "a.test:443 b.test:443 c.test:443 d.test:443 ");
}

static void pip(void **state)
{
    (void)state;
    reads(CSN_REGISTRY_PIP,
          "[global]\nindex-url = https://u:p@a.test/simple\nextra-index-url =\n    "
          "https://b.test/simple\n"
          "    # https://no.test\n    http://c.test:8080/simple\ntrusted-host = no.test\nproxy "
          "= http://no.test\n"
          "[install]\nFind_Links: https://d.test/wheels\n  https://e.test\nother = x\n  "
          "https://no.test\n",
          "a.test:443 b.test:443 c.test:8080 d.test:443 e.test:443 ");
}

static void toml(void **state)
{
    (void)state;
    reads(CSN_REGISTRY_UV,
          "index-url = \"https://a.test/simple\" # \"https://no.test\"\n"
          "extra-index-url = [\n  \"https://b.test\", # x\n  'https://c.test:1'\n]\n"
          "publish-url = \"https://no.test\"\n"
          "[[index]]\nname = \"https://no.test\"\nurl = \"https://d.test\"\n"
          "[pip]\nindex-url = \"\"\"https://e.test\"\"\"\n[tool]\nurl = \"https://no.test\"\n",
          "a.test:443 b.test:443 c.test:1 d.test:443 e.test:443 ");
    reads(CSN_REGISTRY_UV,
          "index = [{ name = \"x\", url = \"https://a.test\" }, {url='https://b.test'}]",
          "a.test:443 b.test:443 ");
    reads(CSN_REGISTRY_CARGO,
          "[registries.corp]\nindex = \"sparse+https://a.test/index/\"\ntoken = "
          "\"https://no.test\"\n"
          "[source.\"crates-io\"]\nreplace-with = \"mirror\"\n[source.mirror]\nregistry = "
          "'https://b.test'\n"
          "[registries]\nx = { index = \"https://c.test\", token = \"https://no.test\" }\n"
          "[http]\nproxy = \"https://no.test\"\nindex = \"https://no.test\"\n",
          "a.test:443 b.test:443 c.test:443 ");
    reads(CSN_REGISTRY_CARGO,
          "registries.\"my.x\".index = \"https://a.test\"\n"
          "source.y.\"registry\" = \"https://b.test\"\nfoo.index = \"https://no.test\"\n",
          "a.test:443 b.test:443 ");
    /* nothing that is cut off, nested or never closed */
    reads(CSN_REGISTRY_CARGO, "[registries.x]\nindex = \"https://a.test", "a.test:443 ");
    reads(CSN_REGISTRY_CARGO, "[registries.x\nindex = \"https://a.test\\", "a.test:443 ");
    reads(CSN_REGISTRY_CARGO, "[[[[registries]]]]]]\n=\n\"\n'''", "");
    reads(CSN_REGISTRY_UV, "index-url = [[[[{{{{ \"https://a.test\"", "a.test:443 ");
}

static void the_others(void **state)
{
    (void)state;
    reads(CSN_REGISTRY_GOENV,
          "GOPROXY=https://a.test|direct\nGOFLAGS=-x=https://no.test\nGOSUMDB=sum.x "
          "https://b.test\n",
          "a.test:443 b.test:443 ");
    reads(CSN_REGISTRY_GOENV, "GOSUMDB=Sum.test+1a2b+c3d=\n", "sum.test:443 ");
    reads(CSN_REGISTRY_GOENV, "GOSUMDB=sum.test\nGOPROXY=direct\n", "sum.test:443 ");
    reads(CSN_REGISTRY_GOENV, "GOSUMDB=off\nGOSUMDB=\nGOSUMDB=+\nGOSUMDB=*.a.test", "");
    reads(CSN_REGISTRY_MAVEN,
          "<settings><!-- <url>https://no.test</url> --><mirrors><mirror><id>x</id>\n<url>\n "
          "https://a.test/m2 </url>"
          "</mirror></mirrors><proxies><proxy><host>no.test</host></proxy></proxies>"
          "<repository><url>https://b.test:8443</url></repository><url>http://0.0.0.0/</"
          "url><url>https://c.test",
          "a.test:443 b.test:8443 c.test:443 ");
    reads(CSN_REGISTRY_MAVEN, "<!-- <url>https://no.test</url>", "");
    reads(CSN_REGISTRY_APT,
          "# deb http://no.test x\ndeb http://a.test/debian bookworm main\n"
          "deb-src\t[arch=amd64 signed-by=/x] https://b.test:8443/x y z\ndeb cdrom:[x]/ y\n"
          "  deb mirror+http://c.test/list y\nrpm http://no.test\n",
          "a.test:80 b.test:8443 c.test:80 ");
    reads(CSN_REGISTRY_DEB822,
          "Types: deb\nURIs: http://a.test/debian\n https://b.test/x\n# "
          "https://no.test\nSuites: https://no.test\n"
          " https://no.test\n\nuris: https://c.test\n",
          "a.test:80 b.test:443 c.test:443 ");
    reads(CSN_REGISTRY_GEM,
          "---\n:backtrace: false\n:sources:\n- https://a.test/\n  - "
          "https://b.test\n:http_proxy: http://no.test\n"
          "- https://no.test\ngem: --no-document --source https://c.test\n",
          "a.test:443 b.test:443 c.test:443 ");
    reads(CSN_REGISTRY_BUNDLE,
          "---\nBUNDLE_MIRROR__HTTPS://GEMS__TEST/: \"https://a.test/\"\nBUNDLE_GEM__CORP: "
          "\"https://no.test\"\n",
          "a.test:443 ");
}

static void much_is_bounded(void **state)
{
    csn_autobuf text, found;

    (void)state;
    csn_buf_init(&text, 4u << 20);
    csn_buf_init(&found, 1u << 20);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(csn_buf_printf(&text, "https://h%d.test ", i), 0);
    csn_registry_hosts(CSN_REGISTRY_URLS, text.data, text.len, collect, &found);
    size_t count = 0;
    for (size_t i = 0; i < found.len; i++)
        count += found.data[i] == ' ';
    assert_int_equal(count, CSN_REGISTRY_HOSTS_MAX);
}

/* What would be looked at again and again by a careless reader takes no time, and nothing
 * behind the ceiling is read. */
static void hostile_texts_are_linear(void **state)
{
    static const char *const parts[] = {
        "://[{'<!--", "[\n",       " ",        "=",  "\"",  "<url>", "[registries",
        "@:",         "a=\"x\"\n", "https://", "- ", "{a=", "'''",   "-->"};

    (void)state;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        csn_autobuf text, found;
        csn_buf_init(&text, 4u << 20);
        csn_buf_init(&found, 1u << 20);
        while (text.len < CSN_REGISTRY_TEXT_MAX / 2)
            assert_int_equal(csn_buf_puts(&text, parts[i]), 0);
        while (text.len < CSN_REGISTRY_TEXT_MAX)
            assert_int_equal(csn_buf_puts(&text, "='x'"), 0);
        assert_int_equal(csn_buf_puts(&text, " https://late.test"), 0);
        for (int f = CSN_REGISTRY_URLS; f <= CSN_REGISTRY_BUNDLE; f++)
            csn_registry_hosts((csn_registry_format)f, text.data, text.len, collect, &found);
        assert_null(found.data ? strstr(found.data, "late") : NULL);
    }
}

static void put_setting(void *ctx, const char *name, const char *value)
{
    assert_int_equal(csn_buf_puts(ctx, name), 0);
    assert_int_equal(csn_buf_puts(ctx, "="), 0);
    assert_int_equal(csn_buf_puts(ctx, value), 0);
    assert_int_equal(csn_buf_puts(ctx, ";"), 0);
}

static void sets(csn_registry_format format, const char *text, const char *want)
{
    csn_autobuf found;

    csn_buf_init(&found, 1u << 16);
    csn_registry_settings(format, text, strlen(text), put_setting, &found);
    if (strcmp(found.data ? found.data : "", want) != 0)
        fail_msg("%s\n  found: %s\n  want:  %s", text, found.data ? found.data : "", want);
}

static void the_index_becomes_a_variable_without_its_password(void **state)
{
    (void)state;
    sets(CSN_REGISTRY_NPMRC, "registry=http://u:p@m.test:8081/npm/\n//m.test/:_authToken=x\n",
         "npm_config_registry=http://m.test:8081/npm/;");
    sets(CSN_REGISTRY_NPMRC, "registry = \"https://m.test/\"\r\n@a:registry=https://b.test\n",
         "npm_config_registry=https://m.test/;");
    sets(CSN_REGISTRY_NPMRC, "registry = { url = \"https://m.test\", token = \"secret\" }\n",
         "");
    sets(CSN_REGISTRY_NPMRC, "registry=https://${TOKEN}@m.test/\n;registry=https://c.test\n",
         "npm_config_registry=https://m.test/;");
    sets(CSN_REGISTRY_NPMRC, "registry=https://m.test/${TOKEN}/\n", "");
    sets(CSN_REGISTRY_NPMRC, "registry=https://u:p,w@m.test/\n", "");
    sets(CSN_REGISTRY_NPMRC, "registry=https://u:p/w@m.test/\n", "");
    sets(CSN_REGISTRY_NPMRC, "registry=https://u:p@w@m.test/\n",
         "npm_config_registry=https://m.test/;");
    sets(CSN_REGISTRY_NPMRC, "registry=\nregistry\nregistry=file:///srv\n", "");
    sets(CSN_REGISTRY_PIP,
         "[global]\nIndex_URL: https://u:p@m.test/simple\ntrusted-host = m.test\n"
         "extra-index-url =\n  https://a:b@x.test/1\n  https://y.test/2\nfind-links = /w\n",
         "PIP_INDEX_URL=https://m.test/simple;PIP_TRUSTED_HOST=m.test;"
         "PIP_EXTRA_INDEX_URL=https://x.test/1 https://y.test/2;");
    sets(CSN_REGISTRY_GOENV, "GOPROXY=https://u:p@m.test/go,direct\nGOSUMDB=off\nGOFLAGS=-x\n",
         "GOPROXY=https://m.test/go,direct;GOSUMDB=off;");
    sets(CSN_REGISTRY_CARGO, "[registries.c]\nindex = \"https://m.test/\"\n", "");
}

static void presets_are_rules(void **state)
{
    static const char *const all[] = {"npm",   "pip", "uv",     "cargo",    "go",
                                      "maven", "apt", "gem",    "github",   "yarn",
                                      "pnpm",  "bun", "poetry", "composer", "gradle"};

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        csn_autobuf found;
        csn_buf_init(&found, 4096);
        assert_true(csn_preset_known(all[i]));
        assert_non_null(strstr(csn_preset_names(), all[i]));
        csn_preset_rules(all[i], collect, &found);
        assert_non_null(found.data);
        assert_non_null(strstr(found.data, "*."));
    }
    csn_autobuf composer;
    csn_buf_init(&composer, 4096);
    csn_preset_rules("composer", collect, &composer);
    assert_string_equal(composer.data, "*.packagist.org:443 packagist.org:443 "
                                       "api.github.com:443 codeload.github.com:443 ");
    assert_false(csn_preset_known("cpan"));
    assert_false(csn_preset_known(""));
    assert_false(csn_preset_known("NPM"));
}

static void a_host_of_a_public_service_has_a_preset(void **state)
{
    static const struct {
        const char *host, *program, *preset;
    } rows[] = {
        {"crates.io", NULL, "cargo"},
        {"static.crates.io", NULL, "cargo"},
        {"pypi.org", NULL, "pip"},
        {"pypi.org", "uv", "uv"},
        {"pypi.org", "npm", "pip"},
        {"pythonhosted.org", NULL, NULL},
        {"a.b.npmjs.org", "sh", "npm"},
        {"npmjs.org", NULL, NULL},
        {"evilcrates.io", NULL, NULL},
        {"crates.io.test", NULL, NULL},
        {".crates.io", NULL, NULL},
        {"", NULL, NULL},
        {"registry.npmjs.org", "bun", "bun"},
        {"registry.yarnpkg.com", NULL, "npm"},
        {"api.github.com", NULL, "github"},
        {"api.github.com", "composer", "composer"},
        {"xpi.github.com", "composer", "github"},
        {"repo1.maven.org", NULL, "maven"},
        {"plugins.gradle.org", NULL, "gradle"},
        {"repo.packagist.org", NULL, "composer"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *found = csn_preset_of_host(rows[i].host, rows[i].program);
        if (rows[i].preset)
            assert_string_equal(found, rows[i].preset);
        else
            assert_null(found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses),
        cmocka_unit_test(what_is_no_host_is_passed_over),
        cmocka_unit_test(npm),
        cmocka_unit_test(pip),
        cmocka_unit_test(toml),
        cmocka_unit_test(the_others),
        cmocka_unit_test(much_is_bounded),
        cmocka_unit_test(hostile_texts_are_linear),
        cmocka_unit_test(the_index_becomes_a_variable_without_its_password),
        cmocka_unit_test(presets_are_rules),
        cmocka_unit_test(a_host_of_a_public_service_has_a_preset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
