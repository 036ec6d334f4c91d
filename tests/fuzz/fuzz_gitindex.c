/* fuzz_gitindex.c: the first byte chooses the length of object names, the rest is an index.
 *
 * Beside not crashing: the same answer twice, and no index is harmless once its first bytes are
 * not an index's. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/gitindex.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t len = size > 0 ? size - 1 : 0, hash_len = size > 0 && (data[0] & 1) ? 32 : 20;
    csn_autofree char *copy = malloc(len > 0 ? len : 1);

    if (!copy || size == 0)
        return 0;
    memcpy(copy, data + 1, len);
    bool fine = csn_gitindex_is_harmless(copy, len, hash_len);
    must(fine == csn_gitindex_is_harmless(copy, len, hash_len));
    if (len > 0) {
        copy[0] ^= 1;
        must(!csn_gitindex_is_harmless(copy, len, hash_len) || copy[0] == 'D');
    }
    return 0;
}
