/* musl.h: functions our sources use that musl 1.2.3 to 1.2.5 do not have. The build includes it
 * before every file that musl-gcc compiles; newer releases have some of them. */
#pragma once
#define _LARGEFILE64_SOURCE /* since musl 1.2.4 struct dirent64 needs it */
/* The statx of musl 1.2.4 has no number of the mount. */
#define statx           musl_statx
#define statx_timestamp musl_statx_timestamp
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#undef statx
#undef statx_timestamp
#include <linux/stat.h>

/* strerror is banned elsewhere for its shared buffer; musl returns constants. */
static inline const char *csn_musl_strerrordesc_np(int errnum)
{
    return (strerror)(errnum);
}
#define strerrordesc_np csn_musl_strerrordesc_np

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#define RENAME_EXCHANGE  2
static inline int renameat2(int from_dir, const char *from, int to_dir, const char *to,
                            unsigned flags)
{
    return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}
#endif

static inline int statx(int dir, const char *path, int flags, unsigned mask, struct statx *ret)
{
    return (int)syscall(SYS_statx, dir, path, flags, mask, ret);
}
