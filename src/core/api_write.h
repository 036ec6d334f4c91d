/* api_write.h: csn_write, csn_write_many and csn_edit; csn_write_tar shares the batch write. */
#pragma once
#include "core/internal.h"

/* Writes all files or none, within a call that has begun. */
csn_status csn_write_batch(csn_call *c, const csn_file_content *files, size_t count,
                           uint32_t flags, csn_error **err);
