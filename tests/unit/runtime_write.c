/* runtime_write.c: writes that fail, race, or meet odd files (D21-D37 of the corpus of hostile
 * I/O): old or new content, whole, nothing left behind. */
#include "fixture.h"

#include <linux/fs.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "base/hash.h"
#include "child.h"
#include "fault.h"

static room rm;

#define CHECK(cond)                                                                            \
    do {                                                                                       \
        if (!(cond)) {                                                                         \
            dprintf(2, "# line %d: %s\n", __LINE__, #cond);                                    \
            return 1;                                                                          \
        }                                                                                      \
    } while (0)

/* Exit code 77 of a child: cannot be tried here. */
static void in_child(int (*body)(void *), void *ctx)
{
    csn_child_end end = csn_child_run(body, ctx, -1, 60000);

    if (end.exit_code == 77)
        SKIP("no seccomp filters, or no mounts, here");
    assert_int_equal(end.signal, 0);
    assert_int_equal(end.exit_code, 0);
}

static bool no_temps(void)
{
    return room_fingerprint(&rm).temps == 0;
}

static mode_t mode_of(const char *name)
{
    struct stat st;

    assert_int_equal(fstatat(rm.fx.fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
    return st.st_mode & 07777;
}

/* ---- modes, links, names ---- */

static void write_keeps_mode_and_drops_set_id(void **state)
{
    (void)state;
    assert_int_equal(fchmodat(rm.fx.fd, "target", 04755, 0), 0);
    assert_int_equal(room_write(&rm, "/target", "x", 0), CSN_OK);
    assert_int_equal(mode_of("target"), 0755);
    assert_int_equal(fchmodat(rm.fx.fd, "target", 04711, 0), 0);
    assert_int_equal(room_write(&rm, "/target", "y", CSN_FILE_APPEND), CSN_OK);
    assert_int_equal(mode_of("target"), 0711);
    mode_t old = umask(0027);
    assert_int_equal(room_write(&rm, "/fresh", "x", 0), CSN_OK);
    assert_int_equal(room_write_opts(&rm, "/fresh2", "x", 0, 0755, NULL, NULL), CSN_OK);
    umask(old);
    assert_int_equal(mode_of("fresh"), 0640);
    assert_int_equal(mode_of("fresh2"), 0755);
    assert_true(no_temps());
}

static void write_keeps_the_owner(void **state)
{
    struct stat st;

    (void)state;
    if (geteuid() != 0)
        SKIP("only root can give files away");
    assert_int_equal(fchownat(rm.fx.fd, "target", 4242, 4343, 0), 0);
    assert_int_equal(room_write(&rm, "/target", "x", 0), CSN_OK);
    assert_int_equal(fstatat(rm.fx.fd, "target", &st, 0), 0);
    assert_int_equal(st.st_uid, 4242);
    assert_int_equal(st.st_gid, 4343);
}

/* D30 */
static void hard_links_are_replaced_never_written_through(void **state)
{
    (void)state;
    assert_int_equal(room_write(&rm, "/hard", "more\n", CSN_FILE_APPEND), CSN_OK);
    assert_true(room_holds(&rm, "hard", CANARY "more\n"));
    assert_true(corpus_outside_intact(&rm.fx));
    assert_int_equal(linkat(rm.fx.top_fd, "hardcanary", rm.fx.fd, "hard2", 0), 0);
    assert_int_equal(room_write(&rm, "/hard2", "new", 0), CSN_OK);
    assert_true(room_holds(&rm, "hard2", "new"));
    assert_true(corpus_outside_intact(&rm.fx));
    assert_true(no_temps());
}

static void links_are_followed_inside_and_stay_links(void **state)
{
    (void)state;
    assert_int_equal(room_write(&rm, "/link", "via link", 0), CSN_OK);
    assert_true(room_holds(&rm, "target", "via link"));
    assert_int_equal(room_write(&rm, "/clink", "via chain", 0), CSN_OK);
    assert_true(room_holds(&rm, "target", "via chain"));
    assert_int_equal(room_write(&rm, "/dangling", "made", 0), CSN_OK);
    assert_true(room_holds(&rm, "nope_in", "made"));
    assert_int_equal(room_write(&rm, "/dangling_deep", "made", 0), CSN_OK);
    assert_true(room_holds(&rm, "nope1/nope2/x", "made"));
    assert_int_equal(room_write(&rm, "/dangling_out", "made", 0), CSN_OUTSIDE);
    assert_int_equal(readlinkat(rm.fx.fd, "link", (char[64]){0}, 64), 6);
    assert_true(corpus_outside_intact(&rm.fx));
}

/* D37 */
static void longest_name_is_written_atomically(void **state)
{
    char name[258] = "/";

    (void)state;
    memset(name + 1, 'b', 255);
    name[256] = '\0';
    assert_int_equal(room_write(&rm, name, "x", 0), CSN_OK);
    assert_int_equal(room_write(&rm, name, "y", 0), CSN_OK);
    assert_true(room_holds(&rm, name + 1, "y"));
    name[256] = 'b';
    name[257] = '\0';
    assert_int_equal(room_write(&rm, name, "x", 0), CSN_INVALID);
}

static void parents_are_made_and_taken_back(void **state)
{
    (void)state;
    assert_int_equal(room_write(&rm, "/p/q/r/file", "x", 0), CSN_OK);
    assert_true(room_holds(&rm, "p/q/r/file", "x"));
    assert_int_equal(room_write(&rm, "/u/v", "x", CSN_FILE_NO_PARENTS), CSN_NOT_FOUND);
    assert_int_equal(room_write(&rm, "/u/v/../w", "x", 0), CSN_NOT_FOUND);
    assert_int_equal(room_write_opts(&rm, "/u/v/w", "x", 0, 0, "00", NULL), CSN_CONFLICT);
    assert_false(room_has(&rm, "u"));
    assert_int_equal(room_write(&rm, "/dangling/x", "x", 0), CSN_NOT_FOUND);
    assert_false(room_has(&rm, "nope_in"));
}

static void create_only_and_if_hash_are_kept(void **state)
{
    char hex[CSN_HASH_HEX];

    (void)state;
    assert_int_equal(room_write(&rm, "/new", "1", CSN_FILE_CREATE), CSN_OK);
    assert_int_equal(room_write(&rm, "/new", "2", CSN_FILE_CREATE), CSN_EXISTS);
    assert_true(room_holds(&rm, "new", "1"));
    csn_hash_bytes("1", 1, hex);
    assert_int_equal(room_write_opts(&rm, "/new", "3", 0, 0, hex, NULL), CSN_OK);
    assert_int_equal(room_write_opts(&rm, "/new", "4", 0, 0, hex, NULL), CSN_CONFLICT);
    assert_int_equal(room_write_opts(&rm, "/gone", "4", 0, 0, hex, NULL), CSN_CONFLICT);
    assert_int_equal(room_write_opts(&rm, "/new", "4", CSN_FILE_APPEND, 0, hex, NULL),
                     CSN_CONFLICT);
    assert_true(room_holds(&rm, "new", "3"));
    assert_false(room_has(&rm, "gone"));
    assert_true(no_temps());
}

static void result_tells_bytes_hash_and_place(void **state)
{
    room_text t = {"abc", 3};
    csn_written w = {0};
    csn_write_req req = {
        .path = "/dirlink/abc", .source = {room_source, &t}, .flags = CSN_FILE_SYNC};
    char want[256];

    (void)state;
    assert_int_equal(csn_runtime_write(&rm.l, &req, 1, &w, NULL), CSN_OK);
    assert_int_equal(w.bytes, 3);
    assert_string_equal(w.hash,
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    snprintf(want, sizeof(want), "%s/dir/abc", rm.fx.root);
    assert_string_equal(w.resolved_path, want);
    free(w.resolved_path);
}

static int64_t broken_source(void *ctx, void *buf, size_t len)
{
    int *calls = ctx;

    memset(buf, 'x', len);
    return ++*calls < 3 ? (int64_t)len : -1;
}

/* D46's file side: the body breaks off */
static void broken_source_leaves_the_old_file(void **state)
{
    int calls = 0;
    csn_written w = {0};
    csn_write_req req = {.path = "/q/target", .source = {broken_source, &calls}};

    (void)state;
    assert_int_equal(csn_runtime_write(&rm.l, &req, 1, &w, NULL), CSN_IO);
    assert_false(room_has(&rm, "q"));
    calls = 0;
    req.path = "/target";
    assert_int_equal(csn_runtime_write(&rm.l, &req, 1, &w, NULL), CSN_IO);
    assert_true(room_holds(&rm, "target", "inside\n"));
    assert_true(no_temps());
}

static void file_limit_of_the_sandbox_holds(void **state)
{
    (void)state;
    rm.l.file_max = 8;
    assert_int_equal(room_write(&rm, "/target", "123456789", 0), CSN_TOO_LARGE);
    assert_int_equal(room_write(&rm, "/target", "ab", CSN_FILE_APPEND), CSN_TOO_LARGE);
    assert_true(room_holds(&rm, "target", "inside\n"));
    assert_int_equal(room_write(&rm, "/target", "12345678", 0), CSN_OK);
    rm.l.file_max = 0;
}

/* ---- faults ---- */

static int write_under_fault(void *ctx)
{
    const fault *f = ctx;
    room_print before = room_fingerprint(&rm);

    if (fault_inject(f) < 0)
        return 77;
    CHECK(room_write(&rm, "/target", "never seen", CSN_FILE_SYNC) < 0);
    CHECK(room_write(&rm, "/t/u/fresh", "never seen", CSN_FILE_SYNC) < 0);
    CHECK(before.sum == room_fingerprint(&rm).sum);
    if (f->nr == SYS_openat) { /* an append makes no file */
        CHECK(room_write(&rm, "/target", "+", CSN_FILE_APPEND | CSN_FILE_SYNC) == CSN_OK);
        CHECK(room_holds(&rm, "target", "inside\n+"));
        return 0;
    }
    CHECK(room_write(&rm, "/target", "+", CSN_FILE_APPEND | CSN_FILE_SYNC) < 0);
    CHECK(room_holds(&rm, "target", "inside\n") || room_holds(&rm, "target", "inside\n+"));
    CHECK(f->nr == SYS_fsync || before.sum == room_fingerprint(&rm).sum);
    return 0;
}

/* D22 */
static void full_disk_at_any_call_leaves_the_old_file(void **state)
{
    fault open = {SYS_openat, 2, O_CREAT | FAULT_TMPFILE, 0}, put = {SYS_write, 0, 0, 0},
          sync = {SYS_fsync, -1, 0, 0};

    (void)state;
    in_child(write_under_fault, &open);
    put_file(rm.fx.fd, "target", "inside\n");
    in_child(write_under_fault, &put);
    in_child(write_under_fault, &sync);
}

static int rename_fault(void *ctx)
{
    const fault *f = ctx;

    if (fault_inject(f) < 0)
        return 77;
    CHECK(room_write(&rm, "/target", "never seen", 0) < 0);
    CHECK(room_holds(&rm, "target", "inside\n") && room_fingerprint(&rm).temps == 0);
    return 0;
}

static int mkdir_fault(void *ctx)
{
    if (fault_inject(ctx) < 0)
        return 77;
    CHECK(room_write(&rm, "/t/u", "never seen", 0) < 0);
    CHECK(!room_has(&rm, "t") && room_fingerprint(&rm).temps == 0);
    return 0;
}

static bool has_unnamed(void)
{
    int fd = openat(rm.fx.fd, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void full_disk_at_any_step_leaves_nothing(void **state)
{
    fault ren = {SYS_renameat, -1, 0, 0}, mod = {SYS_fchmod, -1, 0, 0},
          mk = {SYS_mkdirat, -1, 0, 0}, link = {SYS_linkat, -1, 0, 0};

    (void)state;
    in_child(rename_fault, &ren);
    in_child(rename_fault, &mod);
    if (has_unnamed())
        in_child(rename_fault, &link);
    in_child(mkdir_fault, &mk);
}

static int over_the_size_limit(void *ctx)
{
    struct rlimit old, lim;
    static char big[5000];
    sigset_t pending, block;

    (void)ctx;
    memset(big, 'x', sizeof(big) - 1);
    CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
    lim = (struct rlimit){1000, old.rlim_max};
    CHECK(setrlimit(RLIMIT_FSIZE, &lim) == 0);
    CHECK(room_write(&rm, "/target", big, 0) == CSN_TOO_LARGE);
    CHECK(room_write(&rm, "/target", big, CSN_FILE_APPEND) == CSN_TOO_LARGE);
    CHECK(room_holds(&rm, "target", "inside\n"));
    CHECK(room_write(&rm, "/target", "small", 0) == CSN_OK);
    sigpending(&pending);
    CHECK(!sigismember(&pending, SIGXFSZ));
    /* a caller who blocks the signal himself finds it as he left it */
    sigemptyset(&block);
    sigaddset(&block, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &block, NULL);
    CHECK(room_write(&rm, "/target", big, 0) == CSN_TOO_LARGE);
    sigpending(&pending);
    CHECK(!sigismember(&pending, SIGXFSZ));
    raise(SIGXFSZ);
    CHECK(room_write(&rm, "/target", big, 0) == CSN_TOO_LARGE);
    sigpending(&pending);
    CHECK(sigismember(&pending, SIGXFSZ));
    CHECK(room_fingerprint(&rm).temps == 0);
    CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
    return 0;
}

/* D23 */
static void size_limit_of_the_process_is_an_error_not_a_death(void **state)
{
    (void)state;
    in_child(over_the_size_limit, NULL);
}

static csn_status write_three(const char *a, const char *b, const char *c)
{
    const char *const paths[] = {a, b, c};
    room_text t[3];
    csn_write_req reqs[3];
    csn_written rets[3] = {0};

    for (int i = 0; i < 3; i++) {
        t[i] = (room_text){"batch", 5};
        reqs[i] = (csn_write_req){.path = paths[i], .source = {room_source, &t[i]}};
    }
    csn_status st = csn_runtime_write(&rm.l, reqs, 3, rets, NULL);
    for (int i = 0; i < 3; i++)
        free(rets[i].resolved_path);
    return st;
}

static int writes_all_the_same(void *ctx)
{
    if (fault_inject(ctx) < 0)
        return 77;
    CHECK(room_write(&rm, "/made", "1", CSN_FILE_CREATE) == CSN_OK);
    CHECK(room_write(&rm, "/made", "2", CSN_FILE_CREATE) == CSN_EXISTS);
    CHECK(room_holds(&rm, "made", "1"));
    CHECK(write_three("/target", "/x", "/x/y") < 0); /* fails half way: x is no directory */
    CHECK(room_holds(&rm, "target", "inside\n") && !room_has(&rm, "x"));
    CHECK(write_three("/target", "/made", "/made2") == CSN_OK);
    CHECK(room_holds(&rm, "target", "batch") && room_holds(&rm, "made2", "batch"));
    CHECK(room_fingerprint(&rm).temps == 0);
    return 0;
}

/* File systems that know no RENAME_EXCHANGE and NOREPLACE say EINVAL. */
static void file_system_without_rename_flags_is_enough(void **state)
{
    fault f = {SYS_renameat2, -1, 0, EINVAL};

    (void)state;
    in_child(writes_all_the_same, &f);
}

/* NFS and others have no files without a name; a security module may refuse to link one. */
static void file_system_without_unnamed_files_is_enough(void **state)
{
    fault no_file = {SYS_openat, 2, FAULT_TMPFILE, EOPNOTSUPP},
          no_link = {SYS_linkat, -1, 0, EACCES};

    (void)state;
    in_child(writes_all_the_same, &no_file);
    put_file(rm.fx.fd, "target", "inside\n");
    for (int i = 0; i < 2; i++)
        assert_int_equal(unlinkat(rm.fx.fd, i ? "made2" : "made", 0), 0);
    in_child(writes_all_the_same, &no_link);
}

/* ---- kills ---- */

static int64_t deadly_source(void *ctx, void *buf, size_t len)
{
    int *calls = ctx;

    memset(buf, 'x', len);
    if (++*calls == 3)
        (void)raise(SIGKILL);
    return (int64_t)len;
}

/* argument: how many files come whole before the one that is never finished */
static int killed_in_the_middle(void *ctx)
{
    static const char *const paths[] = {"/target", "/new", "/a/target", "/dir/file"};
    const int whole = *(const int *)ctx;
    room_text t[4];
    csn_write_req reqs[4];
    csn_written rets[4] = {0};
    int calls = 0;

    for (int i = 0; i < whole; i++) {
        t[i] = (room_text){"batch", 5};
        reqs[i] = (csn_write_req){.path = paths[i], .source = {room_source, &t[i]}};
    }
    reqs[whole] = (csn_write_req){.path = paths[whole], .source = {deadly_source, &calls}};
    (void)csn_runtime_write(&rm.l, reqs, (size_t)whole + 1, rets, NULL);
    return 1;
}

static void killed_writer_leaves_nothing(void **state)
{
    room_print before = room_fingerprint(&rm);

    (void)state;
    if (!has_unnamed())
        SKIP("no O_TMPFILE here");
    for (int whole = 0; whole < 4; whole++) {
        csn_child_end end = csn_child_run(killed_in_the_middle, &whole, -1, 60000);
        assert_int_equal(end.signal, SIGKILL);
        assert_int_equal(room_fingerprint(&rm).sum, before.sum);
    }
}

/* D21, D24: a disk of one megabyte and few inodes */
static int on_small_disk(void *ctx)
{
    static char big[2 << 20];
    char name[32];
    room small = {.config.size = sizeof(csn_config)};
    struct stat st;
    csn_status last = CSN_OK;

    (void)ctx;
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return 77;
    snprintf(small.home, sizeof(small.home), "%s/outdir", rm.fx.top);
    if (mount("tmpfs", small.home, "tmpfs", 0, "size=1m,nr_inodes=40") < 0)
        return 77;
    small.config.workspace = small.config.home = small.home;
    CHECK(room_try_open(&small, NULL) == CSN_OK);
    small.fx.fd = open(small.home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    memset(big, 'x', sizeof(big) - 1);
    CHECK(room_write(&small, "/f", "old", 0) == CSN_OK);
    CHECK(room_write(&small, "/f", big, 0) == CSN_IO);
    CHECK(room_write(&small, "/f", big, CSN_FILE_APPEND) == CSN_IO);
    CHECK(room_write(&small, "/x/y/z", big, 0) == CSN_IO);
    CHECK(room_holds(&small, "f", "old") && !room_has(&small, "x"));
    for (int i = 0; i < 60 && last == CSN_OK; i++) {
        snprintf(name, sizeof(name), "/i%d", i);
        last = room_write(&small, name, "", 0);
    }
    CHECK(last == CSN_IO);
    CHECK(room_write(&small, "/f", "new", 0) == CSN_IO && room_holds(&small, "f", "old"));
    CHECK(room_fingerprint(&small).temps == 0);
    CHECK(mount(NULL, small.home, NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
    CHECK(room_write(&small, "/f", "new", 0) == CSN_DENIED); /* D25, EROFS */
    CHECK(fstatat(small.fx.fd, "f", &st, 0) == 0 && st.st_size == 3);
    close(small.fx.fd);
    room_close(&small);
    return 0;
}

static void small_disk_keeps_the_old_file(void **state)
{
    (void)state;
    if (geteuid() != 0)
        SKIP("a mount of its own needs root");
    in_child(on_small_disk, NULL);
}

/* ---- rights (D25-D28) ---- */

static int as_plain_user(void *ctx)
{
    csn_file_stat fst;

    (void)ctx;
    if (geteuid() == 0 &&
        (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0))
        return 77;
    CHECK(room_write(&rm, "/ro/f", "x", 0) == CSN_DENIED);
    CHECK(room_write(&rm, "/rw/none", "x", 0) == CSN_DENIED);
    CHECK(room_write(&rm, "/rw/none", "x", CSN_FILE_APPEND) == CSN_DENIED);
    CHECK(room_read(&rm, "/rw/none", &(room_bytes){.len = 0}, NULL) == CSN_DENIED);
    CHECK(room_write(&rm, "/rw/readonly", "x", 0) == CSN_DENIED);
    CHECK(csn_runtime_remove(&rm.l, "/ro/f", 0, NULL) == CSN_DENIED);
    CHECK(csn_runtime_stat(&rm.l, "/closed/f", 0, &fst, NULL, NULL) == CSN_DENIED);
    CHECK(room_write(&rm, "/rw/mine", "x", 0) == CSN_OK);
    return 0;
}

static void rights_are_those_of_the_process(void **state)
{
    uid_t uid = geteuid() == 0 ? 65534 : geteuid();

    (void)state;
    assert_int_equal(fchmod(rm.fx.top_fd, 0755), 0);
    put_dir(rm.fx.fd, "ro");
    put_file(rm.fx.fd, "ro/f", "old");
    put_dir(rm.fx.fd, "closed");
    put_file(rm.fx.fd, "closed/f", "old");
    put_dir(rm.fx.fd, "rw");
    put_file(rm.fx.fd, "rw/none", "old");
    put_file(rm.fx.fd, "rw/readonly", "old");
    assert_int_equal(fchmodat(rm.fx.fd, "rw/none", 0, 0), 0);
    assert_int_equal(fchmodat(rm.fx.fd, "rw/readonly", 0444, 0), 0);
    assert_int_equal(fchmodat(rm.fx.fd, "ro", 0555, 0), 0);
    assert_int_equal(fchmodat(rm.fx.fd, "closed", 0, 0), 0);
    assert_int_equal(fchownat(rm.fx.fd, "rw", uid, (gid_t)-1, 0), 0);
    in_child(as_plain_user, NULL);
    assert_int_equal(fchmodat(rm.fx.fd, "closed", 0755, 0), 0);
    assert_int_equal(fchmodat(rm.fx.fd, "ro", 0755, 0), 0);
    assert_int_equal(fchmodat(rm.fx.fd, "rw/none", 0644, 0), 0);
    assert_true(room_holds(&rm, "rw/none", "old") && room_holds(&rm, "rw/readonly", "old") &&
                room_holds(&rm, "ro/f", "old"));
    assert_true(no_temps());
}

static void immutable_file_is_refused(void **state)
{
    int fd = openat(rm.fx.fd, "target", O_RDONLY | O_CLOEXEC), on = FS_IMMUTABLE_FL, off = 0;

    (void)state;
    if (ioctl(fd, FS_IOC_SETFLAGS, &on) < 0) {
        close(fd);
        SKIP("needs root and a file system that knows it");
    }
    csn_status w = room_write(&rm, "/target", "x", 0);
    csn_status a = room_write(&rm, "/target", "x", CSN_FILE_APPEND);
    csn_status d = csn_runtime_remove(&rm.l, "/target", 0, NULL);
    assert_int_equal(ioctl(fd, FS_IOC_SETFLAGS, &off), 0);
    close(fd);
    assert_int_equal(w, CSN_DENIED);
    assert_int_equal(a, CSN_DENIED);
    assert_int_equal(d, CSN_DENIED);
    assert_true(room_holds(&rm, "target", "inside\n") && no_temps());
}

/* ---- races ---- */

#define PATTERN (256 * 1024)
static _Atomic int torn, stop, landed;

typedef struct pattern {
    char letter;
    size_t left;
} pattern;

static int64_t pattern_source(void *ctx, void *buf, size_t len)
{
    pattern *p = ctx;
    size_t n = len < p->left ? len : p->left;

    memset(buf, p->letter, n);
    p->left -= n;
    return (int64_t)n;
}

static void *pattern_writer(void *arg)
{
    for (int i = 0; i < 40; i++) {
        pattern p = {(char)(intptr_t)arg, PATTERN};
        csn_written w = {0};
        csn_write_req req = {.path = "/shared", .source = {pattern_source, &p}};
        if (csn_runtime_write(&rm.l, &req, 1, &w, NULL) != CSN_OK)
            torn++;
        free(w.resolved_path);
    }
    return NULL;
}

typedef struct look {
    char letter;
    uint64_t len;
    bool mixed;
} look;

static int look_sink(void *ctx, int stream, const void *data, size_t len)
{
    look *l = ctx;
    const char *p = data;

    (void)stream;
    if (l->len == 0)
        l->letter = p[0];
    for (size_t i = 0; i < len; i++)
        l->mixed |= p[i] != l->letter;
    l->len += len;
    return CSN_SINK_MORE;
}

static void *pattern_reader(void *arg)
{
    (void)arg;
    while (!stop) {
        look l = {0};
        csn_file_stat st;
        csn_sink sink = {look_sink, &l};
        csn_status rc =
            csn_runtime_read(&rm.l, "/shared", 0, 0, CSN_NO_LIMIT, &sink, &st, NULL);
        if (rc != CSN_OK || l.mixed || l.len != PATTERN)
            torn++;
    }
    return NULL;
}

/* D31 */
static void readers_see_one_pattern_whole(void **state)
{
    pthread_t w[6], r[3];
    pattern p = {'0', PATTERN};
    csn_written out = {0};
    csn_write_req req = {.path = "/shared", .source = {pattern_source, &p}};

    (void)state;
    torn = stop = 0;
    assert_int_equal(csn_runtime_write(&rm.l, &req, 1, &out, NULL), CSN_OK);
    free(out.resolved_path);
    for (int i = 0; i < 3; i++)
        pthread_create(&r[i], NULL, pattern_reader, NULL);
    for (int i = 0; i < 6; i++)
        pthread_create(&w[i], NULL, pattern_writer, (void *)(intptr_t)('a' + i));
    for (int i = 0; i < 6; i++)
        pthread_join(w[i], NULL);
    stop = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(r[i], NULL);
    assert_int_equal(torn, 0);
    assert_true(no_temps());
}

static void *appender(void *arg)
{
    char line[32];

    for (int i = 0; i < 200; i++) {
        snprintf(line, sizeof(line), "%02d %04d line\n", (int)(intptr_t)arg, i);
        if (room_write(&rm, "/log", line, CSN_FILE_APPEND) != CSN_OK)
            torn++;
    }
    return NULL;
}

/* D32 */
static void appended_lines_stay_whole(void **state)
{
    pthread_t t[16];
    char line[64];
    int count = 0, bad = 0;

    (void)state;
    torn = 0;
    for (int i = 0; i < 16; i++)
        pthread_create(&t[i], NULL, appender, (void *)(intptr_t)i);
    for (int i = 0; i < 16; i++)
        pthread_join(t[i], NULL);
    FILE *f = fdopen(openat(rm.fx.fd, "log", O_RDONLY | O_CLOEXEC), "r");
    while (fgets(line, sizeof(line), f)) {
        count++;
        bad += strlen(line) != 13 || strcmp(line + 7, " line\n") != 0;
    }
    fclose(f);
    assert_int_equal(torn, 0);
    assert_int_equal(count, 16 * 200);
    assert_int_equal(bad, 0);
}

static void *counter(void *arg)
{
    (void)arg;
    for (int i = 0; i < 100; i++) {
        room_bytes b = {.len = 0};
        char hex[CSN_HASH_HEX], next[32];
        if (room_read(&rm, "/count", &b, NULL) != CSN_OK)
            continue;
        csn_hash_bytes(b.data, (size_t)b.len, hex);
        snprintf(next, sizeof(next), "%ld", strtol(b.data, NULL, 10) + 1);
        if (room_write_opts(&rm, "/count", next, 0, 0, hex, NULL) == CSN_OK)
            landed++;
    }
    return NULL;
}

/* D33: read, change, write back if nobody else did: no change is lost */
static void conditional_writes_lose_no_update(void **state)
{
    pthread_t t[8];
    room_bytes b = {.len = 0};

    (void)state;
    landed = 0;
    assert_int_equal(room_write(&rm, "/count", "0", 0), CSN_OK);
    for (int i = 0; i < 8; i++)
        pthread_create(&t[i], NULL, counter, NULL);
    for (int i = 0; i < 8; i++)
        pthread_join(t[i], NULL);
    assert_int_equal(room_read(&rm, "/count", &b, NULL), CSN_OK);
    assert_true(landed > 0);
    assert_int_equal(strtol(b.data, NULL, 10), landed);
}

static void *creator(void *arg)
{
    (void)arg;
    if (room_write(&rm, "/only-one/x", "x", CSN_FILE_CREATE) == CSN_OK)
        landed++;
    return NULL;
}

static void one_of_many_creators_wins(void **state)
{
    pthread_t t[16];

    (void)state;
    landed = 0;
    for (int i = 0; i < 16; i++)
        pthread_create(&t[i], NULL, creator, NULL);
    for (int i = 0; i < 16; i++)
        pthread_join(t[i], NULL);
    assert_int_equal(landed, 1);
    assert_true(no_temps());
}

static int setup(void **state)
{
    (void)state;
    room_make(&rm);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    room_clean(&rm);
    return 0;
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(write_keeps_mode_and_drops_set_id),
        T(write_keeps_the_owner),
        T(hard_links_are_replaced_never_written_through),
        T(links_are_followed_inside_and_stay_links),
        T(longest_name_is_written_atomically),
        T(parents_are_made_and_taken_back),
        T(create_only_and_if_hash_are_kept),
        T(result_tells_bytes_hash_and_place),
        T(broken_source_leaves_the_old_file),
        T(file_limit_of_the_sandbox_holds),
        T(full_disk_at_any_call_leaves_the_old_file),
        T(full_disk_at_any_step_leaves_nothing),
        T(file_system_without_rename_flags_is_enough),
        T(file_system_without_unnamed_files_is_enough),
        T(killed_writer_leaves_nothing),
        T(size_limit_of_the_process_is_an_error_not_a_death),
        T(small_disk_keeps_the_old_file),
        T(rights_are_those_of_the_process),
        T(immutable_file_is_refused),
        T(readers_see_one_pattern_whole),
        T(appended_lines_stay_whole),
        T(conditional_writes_lose_no_update),
        T(one_of_many_creators_wins),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
