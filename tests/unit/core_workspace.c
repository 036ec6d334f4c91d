/* Snapshots, diff and commit of a copy-on-write workspace, on a backend whose layers are
 * directories that the test fills: a "command" writes or removes one file of the first one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "caisson/backend.h"
#include "layer_world.h"

#define LAYERS 8
#define NO_ERROR(call, err)                                                                    \
    do {                                                                                       \
        csn_status st_ = (call);                                                               \
        must(st_ == CSN_OK, csn_error_message(err));                                           \
    } while (0)

typedef struct fake {
    layer_world w;
    size_t count;           /* of layers; directory N - 1 of the world is the newest */
    char names[LAYERS][32]; /* of snapshots */
    size_t depth[LAYERS];   /* how many layers belong to it */
    bool automatic[LAYERS], hidden[LAYERS];
    size_t snapshots;
    bool running;
    char image[64]; /* of the last open */
} fake;

static fake f;
static const char since_file[] = "since";

static csn_status fake_snapshot(void *state, const char *name, uint32_t flags,
                                csn_snapshot_fn fn, void *ctx, csn_error **err)
{
    size_t n = f.snapshots;
    char image[64];

    (void)state;
    (void)err;
    if (name)
        snprintf(f.names[n], sizeof(f.names[n]), "%s", name);
    else
        snprintf(f.names[n], sizeof(f.names[n]), "s%zu", n);
    f.depth[n] = f.count++;
    f.automatic[n] = (flags & CSN_SNAPSHOT_AUTOMATIC) != 0;
    f.hidden[n] = (flags & CSN_SNAPSHOT_FORK) != 0;
    f.snapshots++;
    snprintf(image, sizeof(image), "fake:%s", f.names[n]);
    fn(ctx, &(csn_snapshot_entry){.name = f.names[n], .snapshot = image, .how = "frozen"});
    return CSN_OK;
}

static csn_status fake_snapshots(void *state, csn_snapshot_fn fn, void *ctx, csn_error **err)
{
    (void)state;
    (void)err;
    for (size_t i = 0; i < f.snapshots; i++)
        if (!f.hidden[i])
            fn(ctx, &(csn_snapshot_entry){.name = f.names[i],
                                          .snapshot = f.names[i],
                                          .automatic = f.automatic[i]});
    return CSN_OK;
}

static void empty_layer(size_t i)
{
    char name[16];

    snprintf(name, sizeof(name), "%zu", i);
    int fd = openat(f.w.top_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(fd >= 0 && csn_tree_empty(fd) == 0, name);
    close(fd);
}

static csn_status fake_rollback(void *state, const char *name, uint32_t remove, csn_error **err)
{
    size_t i = f.snapshots;

    (void)state;
    while (i-- > 0 && name && strcmp(f.names[i], name) != 0)
        ;
    if (i >= f.snapshots)
        return csn_error_set(err, CSN_NOT_FOUND, "no snapshot '%s'", name ? name : "");
    for (size_t k = f.depth[i]; k < f.count; k++)
        empty_layer(LAYERS - 1 - k);
    f.count = f.depth[i] + (remove ? 0 : 1);
    f.snapshots = remove ? i : i + 1;
    return CSN_OK;
}

static csn_status fake_discard(void *state, csn_error **err)
{
    (void)state;
    (void)err;
    for (size_t i = 0; i < LAYERS; i++)
        empty_layer(i);
    f.count = 1;
    f.snapshots = 0;
    return CSN_OK;
}

static csn_status fake_freeze(void *state, csn_error **err)
{
    (void)state;
    (void)err;
    return CSN_OK;
}

static csn_status fake_open_layers(void *state, csn_workspace_layers *ret, csn_error **err)
{
    struct stat st;

    (void)state;
    (void)err;
    must(fstatat(f.w.top_fd, since_file, &st, 0) == 0, since_file);
    *ret = (csn_workspace_layers){.base = openat(f.w.top_fd, "base", O_RDONLY | O_CLOEXEC),
                                  .originals = -1,
                                  .store = openat(f.w.top_fd, "store", O_RDONLY | O_CLOEXEC),
                                  .count = (uint32_t)f.count,
                                  .since_s = st.st_ctim.tv_sec,
                                  .since_ns = st.st_ctim.tv_nsec,
                                  .running = f.running};
    for (size_t i = 0; i < f.count; i++)
        ret->layers[i] = dup(f.w.stack.layers[LAYERS - f.count + i]);
    return CSN_OK;
}

/* The path of a file in the newest layer. */
static const char *upper(const char *path)
{
    static char text[256];

    snprintf(text, sizeof(text), "%zu/%s", LAYERS - f.count, path);
    return text;
}

/* argv: {"put", PATH, TEXT} */
static csn_status fake_exec(void *state, const csn_exec_req *req, const csn_sink *sink,
                            csn_exec_end *ret, csn_error **err)
{
    (void)state;
    (void)sink;
    (void)err;
    world_file(&f.w, upper(req->argv[1]), req->argv[2]);
    ret->exit_code = 0;
    return CSN_OK;
}

static csn_status fake_open(const csn_config *config, const char *id, void *data,
                            void **ret_state, csn_error **err)
{
    (void)id;
    (void)data;
    (void)err;
    snprintf(f.image, sizeof(f.image), "%s", config->image ? config->image : "");
    *ret_state = &f;
    return CSN_OK;
}

static csn_status fake_info(void *state, csn_info_result *ret, csn_error **err)
{
    (void)state;
    (void)err;
    ret->workdir = "/";
    return CSN_OK;
}

static csn_status fake_stat(void *state, const char *path, uint32_t flags, csn_file_stat *ret,
                            char **ret_target, csn_error **err)
{
    (void)state;
    (void)path;
    (void)flags;
    (void)ret_target;
    (void)err;
    *ret = (csn_file_stat){.mode = S_IFDIR | 0755};
    return CSN_OK;
}

static const csn_file_ops file_ops = {.size = sizeof(file_ops), .stat = fake_stat};
static const csn_workspace_ops workspace_ops = {.size = sizeof(workspace_ops),
                                                .snapshot = fake_snapshot,
                                                .snapshots = fake_snapshots,
                                                .rollback = fake_rollback,
                                                .discard = fake_discard,
                                                .open_layers = fake_open_layers,
                                                .freeze = fake_freeze};
static const csn_backend_ops fake_ops = {.size = sizeof(fake_ops),
                                         .name = "fakecow",
                                         .options = CSN_OPTION_COW | CSN_OPTION_IMAGE |
                                                    CSN_OPTION_RULES,
                                         .caps = CSN_CAP_SPAWN,
                                         .exec = fake_exec,
                                         .files = &file_ops,
                                         .open = fake_open,
                                         .info = fake_info,
                                         .workspace = &workspace_ops};

static struct timespec ctime_of(const char *path)
{
    struct stat st;

    must(fstatat(f.w.top_fd, path, &st, 0) == 0, path);
    return st.st_ctim;
}

/* Writes a file until its time is after that of another one: the clock of files is coarse. */
static void put_after(const char *other, const char *path, const char *text)
{
    struct timespec then = ctime_of(other), now;

    do {
        world_file(&f.w, path, text);
        now = ctime_of(path);
    } while (now.tv_sec == then.tv_sec && now.tv_nsec <= then.tv_nsec);
}

static int setup(void **state)
{
    (void)state;
    f = (fake){.count = 1};
    world_make(&f.w, LAYERS);
    must(mkdirat(f.w.top_fd, "store", 0700) == 0, "store");
    world_file(&f.w, "base/a", "one\n");
    world_file(&f.w, "base/b", "two\n");
    put_after("base/b", since_file, "");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    world_wipe(&f.w);
    return 0;
}

static csn_sandbox *open_with(uint32_t flags, const char *audit)
{
    const csn_config config = {.size = sizeof(config),
                               .backend = "fakecow",
                               .audit = audit ? audit : "none",
                               .flags = flags};
    csn_sandbox *sb = NULL;
    csn_error *err = NULL;

    NO_ERROR(csn_open(&config, &sb, &err), err);
    return sb;
}

static void put(csn_sandbox *sb, const char *path, const char *text)
{
    const char *const argv[] = {"put", path, text, NULL};
    csn_exec_result *r = NULL;
    csn_error *err = NULL;

    NO_ERROR(csn_exec(sb, argv, NULL, &r, &err), err);
    csn_exec_result_free(r);
}

static csn_diff_result *diff(csn_sandbox *sb, uint32_t flags, const char *const *paths)
{
    const csn_diff_opts o = {.size = sizeof(o), .flags = flags, .paths = paths};
    csn_diff_result *r = NULL;
    csn_error *err = NULL;

    NO_ERROR(csn_diff(sb, &o, &r, &err), err);
    return r;
}

static csn_commit_result *commit(csn_sandbox *sb, uint32_t flags, const char *const *paths)
{
    const csn_commit_opts o = {.size = sizeof(o), .flags = flags, .paths = paths};
    csn_commit_result *r = NULL;
    csn_error *err = NULL;

    NO_ERROR(csn_commit(sb, &o, &r, &err), err);
    return r;
}

static bool host_has(const char *path, const char *text)
{
    char name[256], got[256];

    snprintf(name, sizeof(name), "base/%s", path);
    int fd = openat(f.w.top_fd, name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, got, sizeof(got) - 1) : -1;
    if (fd >= 0)
        close(fd);
    return n >= 0 && (size_t)n == strlen(text) && memcmp(got, text, (size_t)n) == 0;
}

/* ---- options ---- */

static void undo_without_cow_is_refused(void **state)
{
    const csn_config config = {
        .size = sizeof(config), .backend = "fakecow", .audit = "none", .flags = CSN_OPEN_UNDO};
    csn_sandbox *sb = NULL;
    csn_error *err = NULL;

    (void)state;
    assert_int_equal(csn_open(&config, &sb, &err), CSN_INVALID);
    assert_non_null(strstr(csn_error_message(err), "undo: the workspace is not copy-on-write"));
    csn_error_free(err);
}

static void a_backend_without_layers_refuses_cow(void **state)
{
    const csn_backend_ops plain = {
        .size = sizeof(plain), .name = "plain", .isolation = "custom", .exec = fake_exec};
    const csn_config config = {
        .size = sizeof(config), .backend = "plain", .audit = "none", .flags = CSN_OPEN_COW};
    csn_sandbox *sb = NULL;
    csn_error *err = NULL;

    (void)state;
    NO_ERROR(csn_register_backend(&plain, NULL, &err), err);
    assert_int_equal(csn_open(&config, &sb, &err), CSN_UNSUPPORTED);
    csn_error_free(err);
}

static void a_plain_workspace_has_no_diff(void **state)
{
    csn_sandbox *sb = open_with(0, NULL);
    csn_diff_result *r = NULL;
    csn_error *err = NULL;

    (void)state;
    assert_int_equal(csn_diff(sb, NULL, &r, &err), CSN_UNSUPPORTED);
    assert_non_null(strstr(csn_error_hint(err), "--cow"));
    csn_error_free(err);
    csn_close(sb);
}

/* ---- diff ---- */

static void diff_lists_changes_with_counts_and_hashes(void **state)
{
    csn_sandbox *sb = open_with(CSN_OPEN_COW, NULL);

    (void)state;
    put(sb, "a", "one\nmore\n");
    put(sb, "d/new", "x\n");
    world_whiteout(&f.w, upper("b"));
    csn_diff_result *r = diff(sb, CSN_DIFF_COUNTS | CSN_DIFF_HASHES | CSN_DIFF_PATCH, NULL);
    assert_int_equal(r->count, 4); /* a, b, d, d/new */
    assert_string_equal(r->changes[0].path, "a");
    assert_int_equal(r->changes[0].kind, CSN_CHANGE_MODIFIED);
    assert_int_equal(r->changes[0].lines_added, 1);
    assert_int_equal(r->changes[0].lines_removed, 0);
    assert_string_equal(r->changes[0].hash_before,
                        "2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806");
    assert_int_equal(r->changes[1].kind, CSN_CHANGE_DELETED);
    assert_null(r->changes[1].hash_after);
    assert_string_equal(r->changes[3].path, "d/new");
    assert_non_null(strstr(r->patch, "+++ b/d/new"));
    csn_diff_result_free(r);
    csn_close(sb);
}

static void diff_of_a_path_leaves_the_others_out(void **state)
{
    csn_sandbox *sb = open_with(CSN_OPEN_COW, NULL);
    const char *const paths[] = {"d", NULL};

    (void)state;
    put(sb, "a", "changed\n");
    put(sb, "d/new", "x\n");
    csn_diff_result *r = diff(sb, 0, paths);
    assert_int_equal(r->count, 2);
    assert_string_equal(r->changes[1].path, "d/new");
    csn_diff_result_free(r);
    csn_close(sb);
}

/* ---- protection ---- */

static const char *held_of(csn_sandbox *sb, const char *path)
{
    csn_diff_result *r = diff(sb, 0, NULL);
    const char *held = NULL;

    for (size_t i = 0; i < r->count; i++)
        if (strcmp(r->changes[i].path, path) == 0)
            held = r->changes[i].held ? "held" : "free";
    csn_diff_result_free(r);
    return held;
}

static void names_that_the_host_runs_are_held(void **state)
{
    csn_sandbox *sb = open_with(CSN_OPEN_COW, NULL);

    (void)state;
    put(sb, ".git/hooks/pre-commit", "#!/bin/sh\n");
    put(sb, "sub/.vscode/tasks.json", "{}\n");
    put(sb, "src/main.c", "int main;\n");
    assert_string_equal(held_of(sb, ".git/hooks/pre-commit"), "held");
    assert_string_equal(held_of(sb, "sub/.vscode/tasks.json"), "held");
    assert_string_equal(held_of(sb, "src/main.c"), "free");
    csn_close(sb);
}

static void a_git_config_is_judged_by_its_content(void **state)
{
    csn_sandbox *sb = open_with(CSN_OPEN_COW, NULL);

    (void)state;
    put(sb, ".git/config", "[core]\n\tbare = false\n");
    assert_string_equal(held_of(sb, ".git/config"), "free");
    put(sb, ".git/config", "[core]\n\tfsmonitor = ./evil\n");
    assert_string_equal(held_of(sb, ".git/config"), "held");
    csn_close(sb);
}

static void a_directory_that_looks_like_a_repository_is_one(void **state)
{
    csn_sandbox *sb = open_with(CSN_OPEN_COW, NULL);

    (void)state;
    world_dir(&f.w, "base/x");
    world_dir(&f.w, "base/x/objects");
    put(sb, "x/hooks/post-checkout", "#!/bin/sh\n");
    assert_string_equal(held_of(sb, "x/hooks/post-checkout"), "free");
    put(sb, "x/HEAD", "ref: refs/heads/m\n");
    put(sb, "x/refs/heads/m", "0\n");
    assert_string_equal(held_of(sb, "x/hooks/post-checkout"), "held");
    csn_close(sb);
}

static void hooks_that_the_host_config_names_are_held(void **state)
{
    csn_sandbox *sb = open_with(CSN_OPEN_COW, NULL);

    (void)state;
    world_file(&f.w, "base/.git/config", "[core]\n\thooksPath = ./.husky/_/\n");
    put(sb, ".husky/_/pre-push", "#!/bin/sh\n");
    put(sb, ".husky/readme", "text\n");
    assert_string_equal(held_of(sb, ".husky/_/pre-push"), "held");
    assert_string_equal(held_of(sb, ".husky/readme"), "free");
    csn_close(sb);
}

static void a_link_in_place_of_a_settings_directory_is_held(void **state)
{
    csn_sandbox *sb = open_with(CSN_OPEN_COW, NULL);

    (void)state;
    must(symlinkat("elsewhere", f.w.top_fd, upper(".claude")) == 0, ".claude");
    must(symlinkat("elsewhere", f.w.top_fd, upper("docs")) == 0, "docs");
    assert_string_equal(held_of(sb, ".claude"), "held");
    assert_string_equal(held_of(sb, "docs"), "free");
    csn_close(sb);
}

/* ---- commit ---- */

static void commit_writes_chosen_paths_and_holds_protected_ones(void **state)
{
    csn_sandbox *sb = open_with(CSN_OPEN_COW, NULL);
    const char *const paths[] = {"a", ".git", NULL};

    (void)state;
    put(sb, "a", "changed\n");
    put(sb, "b", "changed\n");
    put(sb, ".git/hooks/x", "#!/bin/sh\n");
    csn_commit_result *r = commit(sb, 0, paths);
    assert_int_equal(r->written, 1);
    assert_int_equal(r->held, 1);
    assert_true(host_has("a", "changed\n"));
    assert_true(host_has("b", "two\n"));
    assert_false(host_has(".git/hooks/x", "#!/bin/sh\n"));
    csn_commit_result_free(r);
    r = commit(sb, CSN_COMMIT_PROTECTED, paths);
    assert_true(host_has(".git/hooks/x", "#!/bin/sh\n"));
    csn_commit_result_free(r);
    csn_close(sb);
}

static void a_dry_run_writes_nothing(void **state)
{
    csn_sandbox *sb = open_with(CSN_OPEN_COW, NULL);

    (void)state;
    put(sb, "a", "changed\n");
    f.running = true;
    csn_commit_result *r = commit(sb, CSN_COMMIT_DRY_RUN, NULL);
    assert_int_equal(r->written, 0);
    assert_int_equal(r->applied, 1);
    assert_int_equal(r->changes[0].outcome, CSN_OUTCOME_APPLIED);
    assert_true(host_has("a", "one\n"));
    csn_commit_result_free(r);
    csn_close(sb);
}

static void commit_refuses_while_a_command_runs(void **state)
{
    csn_sandbox *sb = open_with(CSN_OPEN_COW, NULL);
    csn_commit_result *r = NULL;
    csn_error *err = NULL;

    (void)state;
    put(sb, "a", "changed\n");
    f.running = true;
    assert_int_equal(csn_commit(sb, NULL, &r, &err), CSN_CONFLICT);
    assert_true(host_has("a", "one\n"));
    csn_error_free(err);
    csn_close(sb);
}

static void a_conflict_has_the_versions_and_writes_nothing(void **state)
{
    csn_sandbox *sb = open_with(CSN_OPEN_COW, NULL);

    (void)state;
    put(sb, "a", "sandbox\n");
    put(sb, "b", "sandbox\n");
    put_after(since_file, "base/a", "host\n");
    csn_commit_result *r = commit(sb, 0, NULL);
    assert_int_equal(r->written, 0);
    assert_int_equal(r->conflict_count, 1);
    assert_string_equal(r->conflicts[0].path, "a");
    assert_string_equal(r->conflicts[0].host, "host\n");
    assert_string_equal(r->conflicts[0].sandbox, "sandbox\n");
    assert_true(host_has("b", "two\n"));
    csn_commit_result_free(r);
    r = commit(sb, CSN_COMMIT_THEIRS, NULL);
    assert_int_equal(r->written, 1);
    assert_true(host_has("a", "sandbox\n"));
    csn_commit_result_free(r);
    csn_close(sb);
}

static void a_resolution_is_written(void **state)
{
    csn_sandbox *sb = open_with(CSN_OPEN_COW, NULL);
    const csn_resolution both = {"a", "both\n", 5};
    const csn_commit_opts o = {.size = sizeof(o), .resolved = &both, .resolved_count = 1};
    csn_commit_result *r = NULL;
    csn_error *err = NULL;

    (void)state;
    put(sb, "a", "sandbox\n");
    put_after(since_file, "base/a", "host\n");
    NO_ERROR(csn_commit(sb, &o, &r, &err), err);
    assert_int_equal(r->written, 1);
    assert_true(host_has("a", "both\n"));
    csn_commit_result_free(r);
    csn_close(sb);
}

/* ---- snapshots ---- */

static void rollback_and_discard_restore_the_files(void **state)
{
    csn_sandbox *sb = open_with(CSN_OPEN_COW, NULL);
    csn_snapshot_result *s = NULL;
    csn_snapshot_list *l = NULL;
    csn_error *err = NULL;

    (void)state;
    put(sb, "a", "first\n");
    NO_ERROR(csn_snapshot_as(sb, "mine", &s, &err), err);
    assert_string_equal(s->name, "mine");
    assert_string_equal(s->how, "frozen");
    csn_snapshot_result_free(s);
    put(sb, "b", "second\n");
    NO_ERROR(csn_snapshots(sb, &l, &err), err);
    assert_int_equal(l->count, 1);
    csn_snapshot_list_free(l);
    NO_ERROR(csn_rollback(sb, "mine", &err), err);
    csn_diff_result *r = diff(sb, 0, NULL);
    assert_int_equal(r->count, 1);
    assert_string_equal(r->changes[0].path, "a");
    csn_diff_result_free(r);
    NO_ERROR(csn_discard(sb, &err), err);
    r = diff(sb, 0, NULL);
    assert_int_equal(r->count, 0);
    csn_diff_result_free(r);
    csn_close(sb);
}

static void each_undo_takes_back_one_command(void **state)
{
    csn_sandbox *sb = open_with(CSN_OPEN_COW | CSN_OPEN_UNDO, NULL);
    csn_error *err = NULL;

    (void)state;
    put(sb, "a", "first\n");
    put(sb, "b", "second\n");
    for (size_t left = 2; left-- > 0;) {
        NO_ERROR(csn_undo(sb, &err), err);
        csn_diff_result *r = diff(sb, 0, NULL);
        assert_int_equal(r->count, left);
        csn_diff_result_free(r);
    }
    assert_int_equal(csn_undo(sb, &err), CSN_NOT_FOUND);
    csn_error_free(err);
    csn_close(sb);
}

static void a_fork_opens_from_a_hidden_snapshot(void **state)
{
    csn_sandbox *sb = open_with(CSN_OPEN_COW, NULL), *other = NULL;
    csn_snapshot_list *l = NULL;
    csn_error *err = NULL;

    (void)state;
    NO_ERROR(csn_fork(sb, NULL, &other, &err), err);
    assert_string_equal(f.image, "fake:s0");
    NO_ERROR(csn_snapshots(sb, &l, &err), err);
    assert_int_equal(l->count, 0);
    csn_snapshot_list_free(l);
    csn_close(other);
    csn_close(sb);
}

/* ---- the audit log ---- */

static void the_log_has_the_files_that_each_command_changed(void **state)
{
    char path[128], text[16384];

    (void)state;
    snprintf(path, sizeof(path), "%s/log", f.w.top);
    csn_sandbox *sb = open_with(CSN_OPEN_COW | CSN_OPEN_RECORD, path);
    put(sb, "a", "first\n");
    put(sb, "a", "second\n");
    put(sb, "new", "first\n");
    csn_close(sb);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    assert_true(n > 0);
    text[n] = '\0';
    const char *one = strstr(text, "\"changes\":[{\"path\":\"a\",\"before\":\"2c8b08da5ce6");
    assert_non_null(one);
    const char *after = strstr(one, "\"after\":\"") + strlen("\"after\":\"");
    const char *two = strstr(one + 1, "\"changes\":[{\"path\":\"a\",\"before\":\"");
    assert_non_null(two);
    two += strlen("\"changes\":[{\"path\":\"a\",\"before\":\"");
    assert_memory_equal(after, two, 64); /* the second command found what the first one left */
    assert_non_null(strstr(two, "\"changes\":[{\"path\":\"new\",\"before\":null,\"after\":\""));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(undo_without_cow_is_refused),
        TEST(a_backend_without_layers_refuses_cow),
        TEST(a_plain_workspace_has_no_diff),
        TEST(diff_lists_changes_with_counts_and_hashes),
        TEST(diff_of_a_path_leaves_the_others_out),
        TEST(names_that_the_host_runs_are_held),
        TEST(a_git_config_is_judged_by_its_content),
        TEST(a_directory_that_looks_like_a_repository_is_one),
        TEST(hooks_that_the_host_config_names_are_held),
        TEST(a_link_in_place_of_a_settings_directory_is_held),
        TEST(commit_writes_chosen_paths_and_holds_protected_ones),
        TEST(a_dry_run_writes_nothing),
        TEST(commit_refuses_while_a_command_runs),
        TEST(a_conflict_has_the_versions_and_writes_nothing),
        TEST(a_resolution_is_written),
        TEST(rollback_and_discard_restore_the_files),
        TEST(each_undo_takes_back_one_command),
        TEST(a_fork_opens_from_a_hidden_snapshot),
        TEST(the_log_has_the_files_that_each_command_changed),
    };
    csn_error *err = NULL;

    NO_ERROR(csn_register_backend(&fake_ops, NULL, &err), err);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
