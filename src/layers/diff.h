/* diff.h: the contents behind a list of changes: hashes, counts of lines, a patch.
 *
 * Commands may change their files meanwhile. A file that is another one than in the list is
 * CSN_UNAVAILABLE: list the changes again. */
#pragma once
#include "base/buf.h"
#include "base/hash.h"
#include "layers/changes.h"

#define CSN_FACTS_HASHES (1u << 0)
#define CSN_FACTS_LINES  (1u << 1)

typedef struct csn_diff_facts {
    /* SHA-256 of a file, or of the text of a symbolic link. "": not asked for, another type,
     * absent, or a file of the base that the caller may not read. */
    char before_hash[CSN_HASH_HEX], after_hash[CSN_HASH_HEX];
    bool binary; /* compared by hash alone: a NUL in the first 8000 bytes, as git decides; more
                    than CSN_DIFF_FILE_MAX bytes; or not readable */
    uint64_t added, removed; /* lines; 0 if binary or not asked for */
} csn_diff_facts;

/* want: CSN_FACTS_*. `binary` is always set. */
csn_status csn_diff_facts_read(const csn_layer_stack *s, const csn_layer_change *c,
                               unsigned want, csn_diff_facts *ret, csn_error **err);

/* Appends the change as a git patch (text/patch.h): nothing for what git does not record
 * (directories, fifos, sockets, times, attributes, modes but the executable bit). A binary
 * change is named by size and SHA-256, and git refuses to apply the patch. On failure *out is
 * untouched. */
csn_status csn_diff_patch_write(const csn_layer_stack *s, const csn_layer_change *c,
                                unsigned context, csn_buf *out, csn_error **err);
/* The same for all changes of a list. */
csn_status csn_diff_patch_write_all(const csn_layer_stack *s, const csn_layer_changes *c,
                                    unsigned context, csn_buf *out, csn_error **err);
