/* policy_import.h: translates policies of other sandboxes. */
#pragma once
#include "base/buf.h"
#include "caisson/caisson.h"

/* Called for each key that has no equal, with the reason. */
typedef void (*csn_import_lost_fn)(void *ctx, const char *key, const char *reason);

/* Appends the policy as JSON text. `format` is "srt" (JSON) or "codex" (TOML); `what` names the
 * document in messages. */
csn_status csn_policy_import(const char *format, const char *text, size_t len, const char *what,
                             csn_buf *out, csn_import_lost_fn lost, void *ctx, csn_error **err);
