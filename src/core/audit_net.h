/* audit_net.h: one connection, in a line of the audit log. */
#pragma once
#include "base/json_write.h"
#include "caisson/caisson.h"

/* Its fields, into the object `args` of the line. */
void csn_audit_put_net(csn_json *j, const csn_net_event *e);
