/* tar.h: reads and writes tar streams.
 *
 * libarchive needs a dozen libraries, so its only user is a module (caisson-archive.so) that is
 * loaded with the first archive. Archives are not trusted: tar.c checks names, sizes and types
 * of entries. */
#pragma once
#include "caisson/backend.h"

typedef struct csn_tar_entry {
    const char *path;   /* relative, no leading slash, no . or .. components, not empty */
    const char *target; /* symlinks */
    uint64_t file_size;
    int64_t modified_ns;
    uint32_t mode; /* S_IFREG, S_IFDIR or S_IFLNK and permission bits; never set-id */
} csn_tar_entry;

typedef struct csn_tar_writer csn_tar_writer;

typedef struct csn_tar_api {
    uint32_t version;
    csn_status (*writer_new)(const csn_sink *sink, csn_tar_writer **ret, csn_error **err);
    /* Write exactly file_size bytes of data after a regular file. */
    csn_status (*writer_entry)(csn_tar_writer *w, const csn_tar_entry *e, csn_error **err);
    csn_status (*writer_data)(csn_tar_writer *w, const void *data, size_t len, csn_error **err);
    csn_status (*writer_finish)(csn_tar_writer *w, csn_error **err); /* end blocks */
    void (*writer_free)(csn_tar_writer *w);
    /* Calls fn for each entry in order. `data` reads the content of a regular file, during the
     * call only; unread content is skipped. CSN_INVALID: an absolute name, a name with .., a
     * device, a FIFO or a hard link. CSN_TOO_LARGE: too many entries or bytes. */
    csn_status (*read)(const csn_source *source, uint64_t max_entries, uint64_t max_bytes,
                       csn_status (*fn)(void *ctx, const csn_tar_entry *e,
                                        const csn_source *data, csn_error **err),
                       void *ctx, csn_error **err);
} csn_tar_api;

#define CSN_TAR_API_VERSION 1u
/* Loads the module once. CSN_UNSUPPORTED when it cannot be loaded. */
csn_status csn_tar_load(const csn_tar_api **ret, csn_error **err);
/* For tests: sets the path of the module for the next load; NULL restores the default. */
void csn_tar_module_path_set(const char *path);

/* The only symbol that the module exports. */
CSN_API const csn_tar_api *csn_tar_module(void);
