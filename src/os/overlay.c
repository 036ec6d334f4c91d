/* overlay.c: makes an overlay mount from a tree of layers. */
#include "os/overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "os/raw_syscall.h"

/* Not in the headers of musl. */
#ifndef SYS_fsopen
#define SYS_fsopen   430
#define SYS_fsconfig 431
#define SYS_fsmount  432
#endif
#define FS_CLOEXEC    1u
#define FS_SET_FLAG   0u
#define FS_SET_STRING 1u
#define FS_CREATE     6u
#define ATTRS         0x6u /* nosuid, nodev */

static bool add(char *to, size_t room, const char *text, size_t len)
{
    size_t used = strlen(to);

    if (used + len >= room)
        return false;
    memcpy(to + used, text, len);
    to[used + len] = '\0';
    return true;
}

static bool is_name(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!((name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9')))
            return false;
    return len == CSN_OVERLAY_NAME;
}

int csn_overlay_describe(const char *names, csn_overlay *ret)
{
    size_t count = 0;
    bool ok = true;

    *ret = (csn_overlay){0};
    for (const char *p = names; ok && *p; count++) {
        size_t len = strcspn(p, " ");
        ok = is_name(p, len) && count < CSN_OVERLAY_MAX;
        if (ok && count == 0)
            ok = add(ret->upper, sizeof(ret->upper), p, len) &&
                 add(ret->upper, sizeof(ret->upper), "/fs", 3) &&
                 add(ret->work, sizeof(ret->work), p, len) &&
                 add(ret->work, sizeof(ret->work), "/work", 5);
        else if (ok)
            ok = add(ret->lower, sizeof(ret->lower), p, len) &&
                 add(ret->lower, sizeof(ret->lower), "/fs:", 4);
        p += len;
        p += *p == ' ';
    }
    ok = ok && add(ret->lower, sizeof(ret->lower), CSN_OVERLAY_BASE, strlen(CSN_OVERLAY_BASE));
    return ok && count > 0 ? 0 : -EINVAL;
}

CSN_IN_CHILD static long configure(int fs, const csn_overlay *o)
{
    long rc = csn_raw(SYS_fsconfig, fs, FS_SET_STRING, "lowerdir", o->lower, 0);

    if (rc == 0)
        rc = csn_raw(SYS_fsconfig, fs, FS_SET_STRING, "upperdir", o->upper, 0);
    if (rc == 0)
        rc = csn_raw(SYS_fsconfig, fs, FS_SET_STRING, "workdir", o->work, 0);
    if (rc == 0)
        rc = csn_raw(SYS_fsconfig, fs, FS_SET_FLAG, "userxattr", NULL, 0);
    if (rc == 0)
        rc = csn_raw(SYS_fsconfig, fs, FS_SET_FLAG, "volatile", NULL, 0);
    return rc < 0 ? rc : csn_raw(SYS_fsconfig, fs, FS_CREATE, NULL, NULL, 0);
}

CSN_IN_CHILD int csn_overlay_new(int tree, const csn_overlay *o)
{
    long rc = csn_raw(SYS_fchdir, tree);
    int fs = rc < 0 ? (int)rc : (int)csn_raw(SYS_fsopen, "overlay", FS_CLOEXEC);

    if (fs < 0)
        return fs;
    rc = configure(fs, o);
    if (rc == 0)
        rc = csn_raw(SYS_fsmount, fs, FS_CLOEXEC, ATTRS);
    (void)csn_raw(SYS_close, fs);
    return (int)rc;
}
