#!/bin/bash
# CVE-2026-96808, Flatpak: a descriptor that the host passed was opened again through its link in /proc,
# with more rights than it had.
# Escaped: a file that was given as standard input for reading is changed.
# shellcheck disable=SC2317,SC2034
NEEDS="commands"
. "${0%/*}/../lib.sh"
prepare() { echo original >"$OUT/file"; [ "$BOX" = caisson ] && EXTRA=(--stdin); true; }
attack() { idle=1; box_run 'echo = ran; cat; for f in /proc/self/fd/0 /dev/stdin /dev/fd/0; do echo evil >>$f; done' <"$OUT/file" >"$R/said" 2>&1; grep -q '^= ran' "$R/said" && idle=0; cat "$R/said"; }
escaped() { [ "$(cat "$OUT/file")" != original ]; }
attempt "standard input"
attack() { idle=1; box_run 'echo = ran; echo evil >>/proc/self/fd/7; touch /proc/self/fd/9/marker' 7<"$OUT/file" 9<"$OUT" >"$R/said" 2>&1; grep -q '^= ran' "$R/said" && idle=0; cat "$R/said"; }
escaped() { [ "$(cat "$OUT/file")" != original ] || marked; }
attempt "another descriptor of the caller"
