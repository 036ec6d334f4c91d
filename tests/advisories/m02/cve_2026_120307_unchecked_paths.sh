#!/bin/bash
# CVE-2026-120307, Beta9: the calls for files of a sandbox passed paths on unchecked.
# Escaped: a path with `..`, an absolute path or one through /proc leads out.
# shellcheck disable=SC2317,SC2034
NEEDS="filecalls"
. "${0%/*}/../lib.sh"
prepare() { secret_out; echo original >"$OUT/file"; }
cases() { printf '%s\n' "../out/$1" "$OUT/$1" "../../../../../../../../../../../../$OUT/$1" "/proc/self/root$OUT/$1" "/proc/self/cwd/../out/$1" "/proc/1/root$OUT/$1" "/proc/$$/root$OUT/$1" "/proc/$$/cwd/../out/$1" "/dev/fd/../../..$OUT/$1" "//$OUT/$1"; }
attack()
{
    local p
    box_open
    inside true
    while read -r p; do
        if [ "$BOX" = none ]; then cat "$p"; else "$CAISSON" cat "$BOX_ID" "$p"; fi >>"$R/said" 2>&1
        if [ "$BOX" != none ]; then "$CAISSON" grep "$BOX_ID" . "$p" >>"$R/said" 2>&1; fi
    done < <(cases secret)
}
escaped() { secret_seen; }
attempt "read"
attack()
{
    local p
    box_open
    inside true
    while read -r p; do
        if [ "$BOX" = none ]; then echo evil >"$p"; else
            echo evil | "$CAISSON" write "$BOX_ID" "$p"
            "$CAISSON" edit "$BOX_ID" "$p" original evil
            "$CAISSON" rm "$BOX_ID" "$p"
        fi
    done < <(cases file)
}
escaped() { [ "$(cat "$OUT/file" 2>&1)" != original ]; }
attempt "write, edit and remove"
