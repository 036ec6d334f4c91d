/* write.h: one file on its way to its name; shared by write.c (one) and batch.c (many). */
#pragma once
#include "os/atomic.h"
#include "runtime/files.h"

typedef struct csn_job {
    const csn_write_req *req;
    csn_target t;
    csn_parent at;
    csn_temp temp;
    char hash[65];
    uint64_t bytes;
    bool copy;  /* the old content comes first */
    bool named; /* the temporary file must not keep a descriptor */
} csn_job;

/* Finds the place, asks the policy, looks at what is there, makes parents. */
csn_status csn_job_place(csn_job *j, const csn_runtime *rt, csn_error **err);
/* Everything into a temporary file beside it. */
csn_status csn_job_stage(csn_job *j, csn_error **err);
/* Does if_hash hold? Under the commit lock. */
csn_status csn_job_check(const csn_job *j, csn_error **err);
csn_status csn_job_publish_fail(const csn_job *j, int rc, csn_error **err);
csn_status csn_job_finish(csn_job *j, csn_written *ret, csn_error **err);
/* Removes the temporary file and, when it failed, the parents that were made. */
void csn_job_drop(csn_job *j, bool failed);

/* One commit at a time, also among processes that share a detached sandbox. */
int csn_commit_begin(csn_runtime *rt);
void csn_commit_end(csn_runtime *rt, int lock);

csn_status csn_runtime_write_batch(csn_runtime *rt, const csn_write_req *reqs, size_t count,
                                   csn_written *rets, csn_error **err);
