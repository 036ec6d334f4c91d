#!/bin/bash
# CVE-2026-44112, OpenClaw: the bridge for files checked a path and opened it afterwards; a link put in
# between was read.
# Escaped: bytes of a file outside are returned by a file call.
# shellcheck disable=SC2317,SC2034
NEEDS="filecalls keeps"
. "${0%/*}/../lib.sh"
prepare() { secret_out; mkdir "$WS/d" && echo plain >"$WS/d/secret"; }
look() { case $(($1 % 3)) in 0) fs_cat d/secret ;; 1) [ "$BOX" = none ] && fs_cat d/secret || fs_grep . d ;; *) [ "$BOX" = none ] || fs_export d "$R/copy$1"; esac; }
attack() { race 90 look; }
escaped() { grep -qs "$SECRET" "$R"/said* || grep -rqs "$SECRET" "$R"/copy*; }
attempt "cat, grep and export while a directory is exchanged with a link"
