/* commit_apply.c: applies a plan as one transaction, and recovers one that was interrupted.
 *
 *   list of temporary files -> store         (commit.staging)
 *   temporary files -> base, on disk
 *   base compared with the plan once more
 *   list of operations -> store, by rename   (commit.journal)    <- the commit point
 *   operations executed, on disk
 *   both lists removed
 *
 * Before the commit point only temporary files exist, and every failure removes them. After it
 * the operations are executed until the end, by this process or by csn_commit_recover. The
 * base is locked meanwhile; the kernel drops the lock of a process that dies. */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "layers/commit_internal.h"

csn_status csn_commit_fail(csn_error **err, int error, const char *verb, const char *path)
{
    csn_autofree char *shown = csn_path_printable(path);

    return csn_fail_errno(err, error, "cannot %s %s", verb, shown ? shown : "a file");
}

csn_status csn_commit_stale(csn_error **err, const char *side, const char *path)
{
    csn_autofree char *shown = csn_path_printable(path);
    csn_status st = csn_fail(err, CSN_CONFLICT,
                             "%s: %s changed it while the commit was prepared; nothing was "
                             "written",
                             shown ? shown : "a file", side);

    return csn_error_advise(st, err, "commit again to compare with what is there now");
}

/* Returns a locked descriptor of the base, or -1 with *ret_status set. */
static int lock_base(int base, csn_status *ret_status, csn_error **err)
{
    int fd = openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0) {
        *ret_status = csn_fail_errno(err, errno, "cannot open the directory to commit to");
    } else if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        *ret_status =
            errno == EWOULDBLOCK
                ? csn_fail(err, CSN_CONFLICT,
                           "another commit to this directory is running; try "
                           "again when it has ended")
                : csn_fail_errno(err, errno, "cannot lock the directory to commit to");
        close(fd);
        fd = -1;
    }
    return fd;
}

/* ---- recovery ---- */

static csn_status load(int store, const char *name, csn_oplist *ret, bool *ret_found,
                       csn_error **err)
{
    int rc = csn_journal_load(store, name, ret);

    *ret_found = rc == 0;
    if (rc == 0 || rc == -ENOENT)
        return CSN_OK;
    if (rc == -EBADMSG)
        return csn_fail(err, CSN_IO,
                        "%s of an interrupted commit is damaged; compare the "
                        "directory with the sandbox, then remove this file",
                        name);
    return csn_commit_fail(err, -rc, "read", name);
}

static csn_status remove_lists(int store, csn_error **err)
{
    int rc = csn_journal_remove_all(store);

    return rc < 0 ? csn_commit_fail(err, -rc, "remove", CSN_JOURNAL_FINAL) : CSN_OK;
}

/* Executes a journal. The journal stays on failure. */
static csn_status roll_forward(int store, int base, const csn_oplist *l, csn_executed *ret,
                               csn_error **err)
{
    int rc = csn_ops_execute(base, l, ret);

    if (rc == 0)
        return remove_lists(store, err);
    csn_status st = csn_commit_fail(err, -rc, "change", ret->failed ? ret->failed : ".");
    return csn_error_advise(st, err,
                            "the commit is partly done; it is completed when the "
                            "sandbox is next used after the cause is removed");
}

static csn_status recover_locked(int store, int base, csn_commit_recovery *ret, csn_error **err)
{
    csn_oplist l = {0};
    csn_executed done = {0};
    bool found = false;
    csn_status st = load(store, CSN_JOURNAL_FINAL, &l, &found, err);

    if (st != CSN_OK)
        return st;
    if (found) {
        st = roll_forward(store, base, &l, &done, err);
        csn_oplist_release(&l);
        if (st == CSN_OK)
            *ret = (csn_commit_recovery){.outcome = CSN_COMMIT_DONE, .left = done.left};
        return st;
    }
    st = load(store, CSN_JOURNAL_STAGING, &l, &found, err);
    if (st != CSN_OK)
        return st;
    bool executed = l.final;
    int rc = found && !executed ? csn_ops_unstage(base, &l) : 0;
    csn_oplist_release(&l);
    if (rc < 0)
        return csn_commit_fail(err, -rc, "remove temporary files below", ".");
    st = remove_lists(store, err); /* also one that was not complete yet */
    if (st == CSN_OK && found)
        ret->outcome = executed ? CSN_COMMIT_DONE : CSN_COMMIT_UNDONE;
    return st;
}

csn_status csn_commit_recover(int store, int base, csn_commit_recovery *ret, csn_error **err)
{
    csn_commit_recovery r = {0};
    csn_status st = CSN_OK;

    if (csn_journal_any(store)) {
        csn_autofd int lock = lock_base(base, &st, err);
        if (lock >= 0)
            st = recover_locked(store, lock, &r, err);
    }
    if (st == CSN_OK)
        *ret = r;
    return st;
}

/* ---- apply ---- */

static csn_status refuse_conflicts(const csn_commit_plan *plan, csn_error **err)
{
    for (size_t i = 0; i < plan->count; i++) {
        const csn_commit_item *it = &plan->v[i];
        if (it->verdict != CSN_COMMIT_CONFLICT)
            continue;
        csn_autofree char *shown = csn_path_printable(it->change->path);
        return csn_fail(err, CSN_CONFLICT, "%s: %s (%zu %s in all); nothing was written",
                        shown ? shown : "a file", it->why ? it->why : "conflict",
                        plan->conflicts, plan->conflicts == 1 ? "conflict" : "conflicts");
    }
    return CSN_OK;
}

/* Is the base still what the plan saw, as far as one operation is concerned? 1, 0 or -errno. */
static int is_as_planned(const csn_commit_plan *plan, int base, const csn_op *op)
{
    csn_commit_dir at = CSN_COMMIT_DIR(base);
    csn_change_side now = {0};
    const char *name;
    int dir = csn_commit_dir_above(&at, op->path, &name);
    int rc = dir < 0 ? 0 : csn_side_read(dir, name, &now);

    csn_commit_dir_release(&at);
    if (op->kind == CSN_OP_MKDIR && (dir < 0 || S_ISDIR(now.mode)))
        return 1; /* the operation on its parent tells, or nothing is to be made */
    if (rc < 0 || (dir < 0 && !(op->flags & CSN_OP_IN_NEW)))
        return rc;
    if (op->kind == CSN_OP_REMOVE && op->flags & CSN_OP_REPLACED && S_ISDIR(now.mode)) {
        rc = csn_plan_has_remainder(plan, base, op->path, NULL);
        if (rc != 0)
            return rc < 0 ? rc : 0;
    }
    return csn_side_same(&op->host, &now);
}

static csn_status check_again(const csn_commit_plan *plan, int base, const csn_oplist *l,
                              csn_error **err)
{
    for (size_t i = 0; i < l->count; i++) {
        const csn_op *op = &l->v[i];
        if (op->kind == CSN_OP_OPEN || op->kind == CSN_OP_FINISH)
            continue;
        int rc = is_as_planned(plan, base, op);
        if (rc < 0)
            return csn_commit_fail(err, -rc, "read", op->path);
        if (rc == 0)
            return csn_commit_stale(err, "the host", op->path);
    }
    return CSN_OK;
}

/* Everything up to the commit point. */
static csn_status prepare(const csn_commit_request *r, const csn_commit_plan *plan, int store,
                          csn_oplist *l, csn_error **err)
{
    int base = r->stack->base;
    int rc = csn_journal_save(store, CSN_JOURNAL_STAGING, l);

    if (rc < 0)
        return csn_commit_fail(err, -rc, "write", CSN_JOURNAL_STAGING);
    csn_status st = csn_ops_stage(r, plan, l, err);
    if (st == CSN_OK)
        st = check_again(plan, base, l, err);
    l->final = true;
    rc = st == CSN_OK ? csn_journal_save(store, CSN_JOURNAL_FINAL, l) : 0;
    if (rc < 0) {
        st = csn_commit_fail(err, -rc, "write", CSN_JOURNAL_FINAL);
        /* It may have its name although it could not be made durable. While that is so, its
         * temporary files must stay. */
        rc = csn_journal_remove(store, CSN_JOURNAL_FINAL);
    }
    /* What cannot be removed now is in the list, for csn_commit_recover. */
    if (st != CSN_OK && rc == 0 && csn_ops_unstage(base, l) == 0)
        (void)csn_journal_remove_all(store);
    return st;
}

csn_status csn_commit_apply(const csn_commit_request *r, const csn_commit_plan *plan, int store,
                            csn_error **err)
{
    csn_commit_recovery old = {0};
    csn_executed done = {0};
    csn_oplist l = {0};
    csn_status st = refuse_conflicts(plan, err);

    if (st != CSN_OK)
        return st;
    csn_autofd int lock = lock_base(r->stack->base, &st, err);
    if (lock >= 0 && csn_journal_any(store))
        st = recover_locked(store, lock, &old, err);
    if (st == CSN_OK)
        st = csn_ops_make(r, plan, &l, err);
    if (st == CSN_OK && l.count > 0)
        st = prepare(r, plan, store, &l, err);
    if (st == CSN_OK && l.count > 0)
        st = roll_forward(store, lock, &l, &done, err);
    if (st == CSN_OK && done.left > 0) {
        csn_autofree char *shown = csn_path_printable(done.first_left);
        st = csn_fail(err, CSN_CONFLICT,
                      "%s: the host changed it at the same moment, and it "
                      "stays so (%zu paths in all); everything else was committed",
                      shown ? shown : "a file", done.left);
    }
    csn_oplist_release(&l);
    return st;
}
