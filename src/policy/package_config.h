/* package_config.h: package managers: which hosts each of them needs.
 *
 * Two sources. A table of presets has the domains of the public services; the readers here find
 * the hosts that a tool is really configured for, a company's mirror for instance, in the text
 * of its configuration. Which files and variables those are: core/packages.h. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define CSN_REGISTRY_TEXT_MAX                                                                  \
    (1024u * 1024u)                 /* of one configuration; what is behind is not read */
#define CSN_REGISTRY_HOSTS_MAX 256u /* out of one configuration */

/* Is there a preset of this name? */
bool csn_preset_known(const char *name);
/* "apt, cargo, ..." for messages. */
const char *csn_preset_names(void);

/* `rule` is a network rule ("mirror.corp.test:8443", "*.ok.test:443") and lives for the call.
 */
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

/* Each host the configuration names, with the port, as a rule; the same may come twice. What is
 * not understood is passed over, credentials in addresses are dropped. Not told: what is no
 * valid rule, this machine itself, and addresses that no hint would offer (netaddr.h). */
void csn_registry_hosts(csn_registry_format format, const char *text, size_t len,
                        csn_registry_fn fn, void *ctx);
