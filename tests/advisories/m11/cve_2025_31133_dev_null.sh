#!/bin/bash
# CVE-2025-31133, runc: /dev/null of the container was a link when the runtime used it to cover a path, so
# that the path was not covered, or the target of the link was.
# Escaped: a covered path is readable after /dev/null was replaced; or a denied file that became a link
# leads the cover to a file outside, or is not covered any more.
# The control leaves the devices of the host alone.
# shellcheck disable=SC2317,SC2034,SC2016
NEEDS="deny"
. "${0%/*}/../lib.sh"
MAY_REFUSE=1
prepare() { echo "$SECRET" | tee "$WS/token" >"$WS/kept"; echo original >"$OUT/file"; DENY=("$WS/kept"); [ "$BOX" = bwrap ] && DENY+=("$WS/token"); true; }
escaped() { grep -qs "$SECRET" "$R"/said* || [ "$(cat "$OUT/file")" != original ]; }
attack() { [ "$BOX" = caisson ] && box_open; [ "$BOX" = none ] || inside 'rm -f /dev/null; ln -s "$PWD/token2" /dev/null; mv /dev/null /dev/n; true'; DENY=("$WS/kept"); inside 'cat kept; echo evil >/dev/null'; }
attempt "/dev/null is replaced, then something is covered"
attack() { inside 'mv kept x; ln -s "$OUT/file" kept; ln -s "$PWD/token" kept; mv kept y'; inside 'cat kept x y; echo evil >kept; echo evil >y'; }
attempt "the denied file is replaced by a link"
