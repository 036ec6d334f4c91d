/* quick_libc.h: what musl's headers lack of what our sources use; the build includes it before
 * every file of the quick program. Newer releases have more of it, hence the questions. */
#pragma once
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Banned elsewhere for its shared buffer; musl's texts are constants. */
static inline const char *csn_quick_error_text(int number)
{
    return (strerror)(number);
}
#define strerrordesc_np csn_quick_error_text

#ifndef RENAME_NOREPLACE
#define CSN_QUICK_RENAMEAT2 1
#define RENAME_NOREPLACE    1
#define RENAME_EXCHANGE     2
int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags);
#endif

#ifndef STATX_CTIME
#define CSN_QUICK_STATX 1
#include <linux/stat.h>
int statx(int dir, const char *path, int flags, unsigned mask, struct statx *ret);
#endif
