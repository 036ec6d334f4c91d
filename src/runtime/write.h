/* write.h: writes files atomically: the steps that write.c (one file) and batch.c (many) share.
 */
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
    bool copy;  /* append: copy the old content first */
    bool named; /* use a named temporary file, so that no descriptor stays open */
} csn_job;

/* Finds the parent directory, checks the policy and the existing file, creates missing
 * parents. */
csn_status csn_job_place(csn_job *j, const csn_runtime *rt, csn_error **err);
/* Writes all content to a temporary file in the same directory. */
csn_status csn_job_stage(csn_job *j, csn_error **err);
/* Checks if_hash. Call it under the commit lock. */
csn_status csn_job_check(const csn_job *j, csn_error **err);
/* Checks the content that was staged, by name or, for one of several files, in any case. Call
 * it under the commit lock. */
csn_status csn_job_judge(const csn_job *j, bool one_of_several, csn_error **err);
csn_status csn_job_publish_fail(const csn_job *j, int rc, csn_error **err);
csn_status csn_job_finish(csn_job *j, csn_written *ret, csn_error **err);
/* Removes the temporary file and, after a failure, the parents that were created. */
void csn_job_drop(csn_job *j, bool failed);

/* Serialize commits, also between processes that share a detached sandbox. end takes the result
 * of begin. */
int csn_commit_begin(csn_runtime *rt);
void csn_commit_end(csn_runtime *rt, int lock);

csn_status csn_runtime_write_batch(csn_runtime *rt, const csn_write_req *reqs, size_t count,
                                   csn_written *rets, csn_error **err);
