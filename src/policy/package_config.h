/* package_config.h: the hosts that a package manager needs, from presets and from its
 * configuration.
 *
 * A preset lists the domains of the public service; the configuration may name others, such as
 * a company's mirror. core/packages.c decides which files and variables are read. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define CSN_REGISTRY_TEXT_MAX  (1024u * 1024u) /* bytes read of one configuration */
#define CSN_REGISTRY_HOSTS_MAX 256u            /* reported of one configuration */
#define CSN_REGISTRY_VALUE_MAX 2048u           /* bytes of one setting, with its NUL */

/* Is there a preset of this name? */
bool csn_preset_known(const char *name);
/* "apt, cargo, ..." for messages. */
const char *csn_preset_names(void);

/* The preset whose public service has this host, or NULL. program: the one that is preferred if
 * several do, e.g. the name of the running program; may be NULL. */
const char *csn_preset_of_host(const char *host, const char *program);

/* `rule` is a network rule ("mirror.corp.test:8443", "*.ok.test:443") and lives for the
 * call. */
typedef void (*csn_registry_fn)(void *ctx, const char *rule);

/* The rules of the public service. */
void csn_preset_rules(const char *name, csn_registry_fn fn, void *ctx);

typedef enum csn_registry_format {
    CSN_REGISTRY_URLS,   /* a variable: addresses with anything between them */
    CSN_REGISTRY_NPMRC,  /* npmrc: registry, @scope:registry */
    CSN_REGISTRY_YARNRC, /* .yarnrc, .yarnrc.yml: registry, npmRegistryServer */
    CSN_REGISTRY_PIP,    /* pip.conf: index-url, extra-index-url, find-links */
    CSN_REGISTRY_UV,     /* uv.toml: the same, and [[index]] url */
    CSN_REGISTRY_CARGO,  /* config.toml: registries, source, registry */
    CSN_REGISTRY_GOENV,  /* the file of `go env -w`: GOPROXY, GOSUMDB */
    CSN_REGISTRY_MAVEN,  /* settings.xml: url of mirrors and repositories */
    CSN_REGISTRY_APT,    /* sources.list: deb [options] address suite */
    CSN_REGISTRY_DEB822, /* *.sources: URIs */
    CSN_REGISTRY_GEM,    /* gemrc: sources */
    CSN_REGISTRY_BUNDLE, /* bundle's config: BUNDLE_MIRROR */
} csn_registry_format;

/* Reports each host that the configuration names, with the port, as a rule; the same one may
 * come twice. Credentials in addresses are dropped. Not reported: what is not a valid rule, and
 * addresses that no hint offers (netaddr.h), except localhost:PORT, 127.0.0.1:PORT and
 * [::1]:PORT. */
void csn_registry_hosts(csn_registry_format format, const char *text, size_t len,
                        csn_registry_fn fn, void *ctx);

/* Reports the index that the configuration (of npm, pip or go) selects, as the variable that
 * the tool reads for it: "PIP_INDEX_URL", "https://mirror.corp.test/simple". Without
 * credentials. */
typedef void (*csn_setting_fn)(void *ctx, const char *name, const char *value);
void csn_registry_settings(csn_registry_format format, const char *text, size_t len,
                           csn_setting_fn fn, void *ctx);
/* Copies the value of such a variable without credentials. false: empty, too long, or with
 * bytes that a tool would expand. */
bool csn_registry_clean(const char *value, size_t len, char *ret, size_t size);
