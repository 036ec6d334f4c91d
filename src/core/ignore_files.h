/* ignore_files.h: the .gitignore files of a sandbox, read with its file operations. */
#pragma once
#include "core/internal.h"
#include "search/ignore.h"

/* Reads the rules that the directory `joined` inherits: those of the directories above it, up
 * to the one with .git. None if there is no such directory. */
csn_status csn_ignore_files_above(const csn_fs *fs, const char *joined, csn_ignore **ret,
                                  csn_error **err);

/* Paths of ignore files, relative to the start of a walk. */
typedef struct csn_ignore_files {
    char **paths;
    size_t count, room;
} csn_ignore_files;

/* Notes `path` if it is an ignore file. 0 or ENOMEM. */
int csn_ignore_files_note(csn_ignore_files *f, const char *path, const csn_file_stat *st);
/* Adds the rules of all of them; `joined` is the start of the walk. */
csn_status csn_ignore_files_load(csn_ignore_files *f, const csn_fs *fs, const char *joined,
                                 csn_ignore *ig, csn_error **err);
void csn_ignore_files_release(csn_ignore_files *f);
