/* fuzz_package_config.c: the first byte chooses the format, the rest is a configuration file.
 *
 * Beyond not crashing: each host that comes out is a rule for one host and one port, stands in
 * the text after "://" (or after GOSUMDB), and is never a wildcard or this machine; there are
 * no more than the ceiling. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/netrules.h"
#include "policy/package_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct tally {
    const char *text; /* NUL bytes replaced, to search in */
    size_t count;
} tally;

static void must(bool ok)
{
    if (!ok)
        __builtin_trap();
}

static void one_host(void *ctx, const char *rule)
{
    tally *t = ctx;
    csn_netrule parsed;
    csn_autofree char *host = strndup(rule, (size_t)(strrchr(rule, ':') - rule));

    must(csn_netrule_parse(rule, &parsed, NULL));
    must(parsed.port_count == 1 && parsed.kind != CSN_NETRULE_BELOW);
    must(++t->count <= CSN_REGISTRY_HOSTS_MAX);
    /* GOSUMDB may name a host without an address */
    const char *from = strstr(t->text, "GOSUMDB") ? t->text : strstr(t->text, "://");
    must(!host || (from && strcasestr(from, host)));
}

static void one_setting(void *ctx, const char *name, const char *value)
{
    (void)ctx;
    must(name[0] && value[0] && strlen(value) < CSN_REGISTRY_VALUE_MAX);
    must(!strpbrk(value, "$@\n\r\t\x1b"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    csn_autofree char *text = malloc(size - 1), *shown = malloc(size);
    if (!text || !shown)
        return 0;
    memcpy(text, data + 1, size - 1);
    memcpy(shown, data + 1, size - 1);
    for (size_t i = 0; i < size - 1; i++)
        if (shown[i] == '\0')
            shown[i] = '\x01';
    shown[size - 1] = '\0';
    csn_registry_format format = data[0] % (CSN_REGISTRY_BUNDLE + 1);
    csn_registry_hosts(format, text, size - 1, one_host, &(tally){.text = shown});
    csn_registry_settings(format, text, size - 1, one_setting, NULL);
    return 0;
}
