/* tar.h: reading and writing tar streams; the only door to libarchive.
 *
 * libarchive drags a dozen libraries behind it, so this is a module (caisson-archive.so) that
 * is loaded when the first archive is made or read; tar_load.c finds it beside the library. An
 * archive that is read comes from anywhere: names, sizes and types in it are checked here. */
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
    /* Then exactly file_size bytes of data for a regular file. */
    csn_status (*writer_entry)(csn_tar_writer *w, const csn_tar_entry *e, csn_error **err);
    csn_status (*writer_data)(csn_tar_writer *w, const void *data, size_t len, csn_error **err);
    csn_status (*writer_finish)(csn_tar_writer *w, csn_error **err); /* end blocks */
    void (*writer_free)(csn_tar_writer *w);
    /* Calls fn for each entry in order; for regular files `data` gives its bytes (only during
     * the call; what fn does not read is skipped). A name that is absolute or has .., a device,
     * a fifo, a hard link: CSN_INVALID naming it. Too many entries or bytes: CSN_TOO_LARGE. */
    csn_status (*read)(const csn_source *source, uint64_t max_entries, uint64_t max_bytes,
                       csn_status (*fn)(void *ctx, const csn_tar_entry *e,
                                        const csn_source *data, csn_error **err),
                       void *ctx, csn_error **err);
} csn_tar_api;

#define CSN_TAR_API_VERSION 1u
/* Loads the module once. CSN_UNSUPPORTED, naming the file, when it is not installed. */
csn_status csn_tar_load(const csn_tar_api **ret, csn_error **err);
/* For tests: where the module is, in place of the usual places; NULL: those again. What was
 * loaded before is forgotten. */
void csn_tar_module_path_set(const char *path);

/* The one symbol of the module. */
CSN_API const csn_tar_api *csn_tar_module(void);
