/* api_write.h: writing many files, shared with tar import. */
#pragma once
#include "core/internal.h"

/* All or nothing, within a call. */
csn_status csn_write_batch(csn_call *c, const csn_file_content *files, size_t count,
                           uint32_t flags, csn_error **err);
