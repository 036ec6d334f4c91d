/* package_config_parts.h: what the readers of configuration files share. */
#pragma once
#include "policy/package_config.h"

/* A piece of the text that is being read; never NUL-terminated. */
typedef struct csn_span {
    const char *at;
    size_t len;
} csn_span;

typedef struct csn_registry_scan {
    csn_registry_fn fn;
    void *ctx;
    size_t told;
} csn_registry_scan;

csn_span csn_span_trim(csn_span s);
bool csn_span_is(csn_span s, const char *word);
/* Tells the host of each address (scheme://...) in the text. */
void csn_registry_urls(csn_registry_scan *scan, csn_span text);
/* package_config_toml.c */
void csn_registry_toml(csn_registry_scan *scan, csn_registry_format format, csn_span text);
