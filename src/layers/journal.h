/* journal.h: the operations of a commit, and the files that make them survive a crash.
 *
 * The store has `commit.staging` while temporary files are made: it names them, so that they
 * can be removed. It has `commit.journal` from the commit point until every operation is done.
 * Both have the same format. While there is anything to finish or to undo, `commit.staging`
 * exists: a commit that is complete renames its journal to that before it removes it.
 * Operations are idempotent and executed in their order. */
#pragma once
#include <sys/types.h>

#include "base/arena.h"
#include "layers/changes.h"

#define CSN_COMMIT_TEMP      ".csn-commit-"
#define CSN_COMMIT_TEMP_SIZE 48
#define CSN_COMMIT_TOKEN     12 /* letters that name one commit */

typedef enum csn_op_kind {                  /* in the order of execution */
                           CSN_OP_OPEN = 1, /* a directory becomes writable for its owner;
                                               contents follow */
                           CSN_OP_REMOVE,   /* a file or, if it is empty, a directory; children
                                               first */
                           CSN_OP_MKDIR,    /* with mode 0700; parents first */
                           CSN_OP_RENAME,   /* a temporary file takes the name */
                           CSN_OP_FINISH,   /* mode, owner, attributes, time of a directory;
                                               children first */
} csn_op_kind;

#define CSN_OP_REPLACED (1u << 0) /* REMOVE: another type takes the name in this commit */
#define CSN_OP_OWNER    (1u << 1) /* FINISH: set uid and gid */
#define CSN_OP_ATTRS    (1u << 2) /* FINISH: the attributes become exactly these */
#define CSN_OP_MTIME    (1u << 3) /* FINISH: set the time */
#define CSN_OP_IN_NEW   (1u << 4) /* RENAME: into a directory that the commit makes */

typedef struct csn_op {
    uint32_t kind, flags;
    const char *path;
    csn_change_side host; /* what the base has at `path` before the commit; mode 0: nothing */
    /* RENAME: the temporary file number `number` in the directory `stage` of the base. The
     * inode is known once it is staged. */
    const char *stage;
    uint64_t number, temp_ino;
    /* FINISH */
    uint32_t mode, uid, gid;
    struct timespec mtime;
    const void *attrs; /* csn_attrs_read */
    uint64_t attrs_len;
    size_t item; /* of the plan; not stored */
} csn_op;

typedef struct csn_oplist {
    csn_arena *arena; /* of all texts */
    csn_op *v;        /* malloc'd */
    size_t count, room;
    char token[CSN_COMMIT_TOKEN + 1];
    bool final; /* saved at the commit point, or later */
} csn_oplist;

void csn_oplist_release(csn_oplist *l);
/* Appends a zeroed operation. NULL: out of memory. */
csn_op *csn_oplist_add(csn_oplist *l, csn_op_kind kind, const char *path);
void csn_op_temp_name(const csn_oplist *l, const csn_op *op, char ret[CSN_COMMIT_TEMP_SIZE]);

/* Writes `name` in the store: complete and on disk, or not there. 0 or -errno. */
int csn_journal_save(int store, const char *name, const csn_oplist *l);
/* -ENOENT: there is none. -EBADMSG: it is damaged. */
int csn_journal_load(int store, const char *name, csn_oplist *ret);
/* Returns when the removal is durable. */
int csn_journal_remove(int store, const char *name);
/* Removes all lists, complete or not. */
int csn_journal_remove_all(int store);
/* Is there one? true also if that cannot be told. */
bool csn_journal_any(int store);

#define CSN_JOURNAL_STAGING "commit.staging"
#define CSN_JOURNAL_FINAL   "commit.journal"

/* A directory of the base, kept open between operations on its entries. */
typedef struct csn_commit_dir {
    int base, fd;
    char *path; /* malloc'd; NULL: none is open */
} csn_commit_dir;
#define CSN_COMMIT_DIR(base_fd) ((csn_commit_dir){.base = (base_fd), .fd = -1})
void csn_commit_dir_release(csn_commit_dir *p);
/* Opens the directory that contains `path`, without following a link. *ret_name: the last
 * component. Returns a descriptor that p owns, or -errno. */
int csn_commit_dir_above(csn_commit_dir *p, const char *path, const char **ret_name);
/* The same for the directory `path` itself; "" is the base. */
int csn_commit_dir_open(csn_commit_dir *p, const char *path);

/* What a directory has under a name: mode 0 if nothing. 0 or -errno. */
int csn_side_read(int dir, const char *name, csn_change_side *ret);
/* Is it still what was seen? Directories by inode alone, since their times change with their
 * contents; files with several links without ctime, which changes with the other names. The
 * device is not compared: its number can be another one after the next boot. */
bool csn_side_same(const csn_change_side *a, const csn_change_side *b);

/* The attributes of a file of a layer that a commit keeps, as NAME NUL LENGTH BYTES ..., in the
 * arena. */
int csn_attrs_read(int fd, csn_arena *arena, const void **ret, uint64_t *ret_len);
/* Sets them. exact: removes the others. */
int csn_attrs_write(int fd, const void *attrs, uint64_t len, bool exact);

typedef struct csn_executed {
    size_t left;            /* paths that the host changed meanwhile */
    const char *first_left; /* of the list, or NULL */
    const char *failed;     /* the path of the operation that failed, or NULL */
} csn_executed;

/* Executes all operations and makes them durable. 0 or -errno. */
int csn_ops_execute(int base, const csn_oplist *l, csn_executed *ret);
/* Removes all temporary files of the list. 0 or -errno. */
int csn_ops_unstage(int base, const csn_oplist *l);
/* With more operations the file system is synchronized as a whole, not file by file. */
#define CSN_SYNC_EACH 16u
/* Makes the directories of the temporary files (staged), else all changed ones, durable. */
int csn_ops_sync(int base, const csn_oplist *l, bool staged);
