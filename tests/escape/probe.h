/* probe.h: what the files of the probe share.
 *
 * An attempt does one forbidden thing and returns 0 when it succeeded, or the errno that
 * stopped it; the program prints `ESCAPED name ...` or `held ERRNO`. The same attempt is run
 * outside as the control, so it must be harmless there: it opens and closes, or touches what
 * the test planted. Helpers prepare something for an attempt and print what they have to say
 * themselves. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define SAID       (-1)   /* a helper: nothing more is to be printed */
#define AS_ORDERED 0x1000 /* held, and no errno says so: printed as `held as-ordered` */

typedef struct attempt {
    const char *name;
    int args; /* at least that many */
    int (*run)(char **args);
} attempt;

extern const attempt read_attempts[], write_attempts[], suid_attempts[], share_attempts[],
    socket_attempts[], rights_attempts[], call_attempts[], bomb_attempts[], keeper_attempts[],
    kernel_attempts[], without_attempts[];

/* Words for the line of an escape: what was seen. */
void detail(const char *format, ...) __attribute__((format(printf, 1, 2)));

int number(const char *text);
const char *errno_name(int e);

/* 0 when something can be read from it: a byte of a file, a name in a directory. */
int look_at(int fd);
/* open, look_at, close */
int read_path(const char *path);
/* A system call of the i386 table through int 0x80: its result, or -errno; -EFAULT - 0x1000
 * when this kernel has none. */
long call_i386(uint32_t number, uint32_t a, uint32_t b, uint32_t c, uint32_t d);
#define NO_I386 (-0x1000L)
