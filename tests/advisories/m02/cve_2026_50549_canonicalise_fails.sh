#!/bin/bash
# CVE-2026-50549, Cursor before 3.0: when a path could not be made canonical, because a part was missing
# or could not be searched, the check used the raw text, which looked harmless.
# Escaped: a file call with such a path changes or reads something outside.
# shellcheck disable=SC2317,SC2034
NEEDS="filecalls"
. "${0%/*}/../lib.sh"
prepare() { secret_out; echo original >"$OUT/file"; }
long=$(printf 'a/../%.0s' {1..60})
start()
{
    box_open
    inside 'ln -s "$OUT" l; mkdir a shut; ln -s "$OUT" shut/l; ln -s loop loop; ln -s "$OUT/missing" dangling; chmod 111 shut'
}
paths() { printf '%s\n' a/../l/file "${long}l/file" shut/l/file shut/../l/file ./l/./file l//file ../out/file; }
attack() { local p; start; while read -r p; do echo evil | fs_write "$p"; done < <(paths); echo evil | fs_write dangling; echo evil | fs_write loop; }
escaped() { chmod 755 "$WS/shut" 2>/dev/null; [ "$(cat "$OUT/file")" != original ] || [ -e "$OUT/missing" ]; }
attempt "write"
attack() { local p; start; while read -r p; do fs_cat "${p%file}secret"; done < <(paths); }
escaped() { chmod 755 "$WS/shut" 2>/dev/null; secret_seen; }
attempt "read"
