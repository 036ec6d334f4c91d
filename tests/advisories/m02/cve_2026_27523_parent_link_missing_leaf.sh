#!/bin/bash
# CVE-2026-27523, OpenClaw: a path whose last part does not exist was checked without its parent, which
# was a link to the outside.
# Escaped: a file call creates something outside.
# shellcheck disable=SC2317,SC2034
NEEDS="filecalls"
. "${0%/*}/../lib.sh"
prepare() { mkdir -p "$OUT/sub" "$WS/a/b"; }
attack()
{
    box_open
    inside 'ln -s "$OUT" l; ln -s "$OUT/sub" a/b/c; ln -s ../../l a/b/e'
    echo x | fs_write l/new
    echo x | fs_write a/b/c/new
    echo x | fs_write a/b/e/sub/new
    fs_mkdir l/dir
    fs_mkdir a/b/c/dir/deep
    mkdir "$R/from" && echo x >"$R/from/new2"
    fs_import "$R/from" l
    fs_import "$R/from" a/b/c
}
escaped() { [ "$(find "$OUT" | wc -l)" -ne 2 ]; }
attempt "a missing leaf below a link"
