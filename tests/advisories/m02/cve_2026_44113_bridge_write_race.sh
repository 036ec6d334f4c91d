#!/bin/bash
# CVE-2026-44113, OpenClaw: the same bridge, for writing, creating and removing.
# Escaped: something outside is created, changed or removed by a file call.
# shellcheck disable=SC2317,SC2034
NEEDS="filecalls keeps"
. "${0%/*}/../lib.sh"
prepare() { mkdir -p "$WS/d/sub" "$OUT/sub" "$R/from" && echo original | tee "$OUT/file" >"$OUT/sub/file" && echo x | tee "$WS/d/file" >"$R/from/file"; }
change()
{
    case $(($1 % 5)) in
    0) echo evil | fs_write d/file ;;
    1) fs_mkdir d/made ;;
    2) fs_rm d/sub ;;
    3) echo x | fs_write "plain$1" && fs_mv "plain$1" "d/moved$1" ;;
    *) fs_import "$R/from" d ;;
    esac
}
attack() { race 100 change; }
escaped() { [ "$(cat "$OUT/file" "$OUT/sub/file" 2>&1)" != $'original\noriginal' ] || [ "$(find "$OUT" | wc -l)" -ne 4 ]; }
attempt "write, mkdir, rm, mv and import while a directory is exchanged with a link"
