#!/bin/bash
# CVE-2026-88968, Claude Code (November 2026): between the check of a path and the write of the Edit tool
# a process replaced a directory by a link.
# Escaped: a file outside is edited. tests/race/race_hostside.c runs this with large counts.
# shellcheck disable=SC2317,SC2034
NEEDS="filecalls keeps"
. "${0%/*}/../lib.sh"
prepare() { mkdir "$WS/d" && echo original | tee "$WS/d/file" >"$OUT/file"; }
edit() { if [ $(($1 % 2)) = 0 ]; then fs_edit d/file original changed; else fs_edit d/file changed original; fi; }
attack() { race 80 edit; }
escaped() { [ "$(cat "$OUT/file")" != original ] || [ "$(ls "$OUT")" != file ]; }
attempt "edit while a directory is exchanged with a link"
