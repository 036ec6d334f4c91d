/* support.h: what tests need from the host they run on: directories, files, processes, time. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A new private directory below $TMPDIR or /tmp. malloc'd; aborts the test program on failure,
 * as everything here does that only prepares a test. */
char *csn_test_tmpdir(void);
char *csn_test_join(const char *dir, const char *name);
char *csn_test_format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void csn_test_mkdir(const char *path);
void csn_test_remove(const char *path); /* a whole tree; missing is fine */

void csn_test_put(const char *path, const void *data, size_t len);
/* malloc'd and NUL-terminated; NULL when it cannot be read. ret_len may be NULL. */
char *csn_test_get(const char *path, size_t *ret_len);
bool csn_test_exists(const char *path); /* of the link itself */
uint32_t csn_test_mode(const char *path);

int64_t csn_test_now_ms(void); /* since the epoch */
void csn_test_nap(unsigned ms);
bool csn_test_alive(pid_t pid); /* zombies do not count */
/* Waits, generously: a noisy machine must not fail a test. */
bool csn_test_wait_dead(pid_t pid);
/* The process that has number `inside` in the innermost of its several pid namespaces and `cwd`
 * as its directory, as this process sees it; or -1. */
pid_t csn_test_pid_of(pid_t inside, const char *cwd);
/* Prints what is known of the children of this process that are left, as TAP comments. */
void csn_test_print_children(void);
/* Kills the children that are left, one by one. */
void csn_test_kill_children(void);
/* Number of open descriptors of this process. */
size_t csn_test_fd_count(void);
