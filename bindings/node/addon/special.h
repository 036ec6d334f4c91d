/* special.h: verbs that generated.c takes from special.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CAISSON_SPECIAL_H
#define CAISSON_SPECIAL_H

#include "addon.h"

csn_status run_open(call *c);
csn_status run_close(call *c);
csn_status run_destroy(call *c);
csn_status run_reset(call *c);
csn_status run_destroy_id_report(call *c);
csn_status run_wait_port(call *c);
csn_status run_wait_log(call *c);
csn_status run_process_wait(call *c);
csn_status run_process_logs(call *c);
csn_status run_watch_next(call *c);
csn_status run_read_bytes(call *c);
csn_status run_audit_read(call *c);
csn_status run_audit_read_file(call *c);

#endif
