/* fuzz_config.c: the input is the JSON of a configuration.
 *
 * What parses must survive being written and read again unchanged, and being taken. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "core/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    csn_config *first = NULL, *second = NULL, *taken = NULL;
    csn_error *err = NULL;
    csn_autobuf one, two;

    csn_buf_init(&one, 1 << 24);
    csn_buf_init(&two, 1 << 24);
    if (csn_config_parse((const char *)data, size, "fuzz", &first, &err) < 0) {
        must(!first && csn_error_message(err)[0]);
        csn_error_free(err);
        return 0;
    }
    must(csn_config_encode(first, &one) == 0);
    must(csn_config_parse(one.data, one.len, "again", &second, NULL) == CSN_OK);
    must(csn_config_encode(second, &two) == 0);
    must(one.len == two.len && memcmp(one.data, two.data, one.len) == 0);
    must(csn_config_take(first, &taken, NULL) == CSN_OK);
    must(taken->backend && taken->rule_count == first->rule_count);
    csn_config_free(first);
    csn_config_free(second);
    csn_config_free(taken);
    return 0;
}
