#!/bin/bash
# CVE-2026-32055, OpenClaw: a dangling link counted as a file that does not exist, and the write created
# its target outside.
# Escaped: the target of a dangling link appears.
# shellcheck disable=SC2317,SC2034
NEEDS="filecalls"
. "${0%/*}/../lib.sh"
prepare() { mkdir "$R/from" && echo x >"$R/from/f"; }
attack() { box_open; inside 'ln -s "$OUT/made" f; ln -s f g; ln -s ../out/made h'; echo x | fs_write f; echo x | fs_write g; echo x | fs_write h; }
escaped() { [ -n "$(ls -A "$OUT")" ]; }
attempt "write to a dangling link"
attack() { box_open; inside 'ln -s "$OUT/made" f'; if [ "$BOX" = none ]; then cp --remove-destination=no "$R/from/f" "$WS/f" 2>/dev/null || cat "$R/from/f" >"$WS/f"; else fs_import "$R/from" .; fi; }
attempt "import over a dangling link"
