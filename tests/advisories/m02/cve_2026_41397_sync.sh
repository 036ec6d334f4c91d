#!/bin/bash
# CVE-2026-41397, OpenClaw: synchronising a workspace followed links in the tree that the agent had
# written.
# Escaped: an import writes outside, or an export brings the content of a file outside.
# shellcheck disable=SC2317,SC2034
NEEDS="filecalls"
. "${0%/*}/../lib.sh"
prepare() { secret_out; mkdir -p "$R/from/d" "$R/to" && echo evil | tee "$R/from/d/file" >"$R/from/f" && echo original >"$OUT/file"; }
attack() { box_open; inside 'ln -s "$OUT" d; ln -s "$OUT/file" f'; if [ "$BOX" = none ]; then (cd "$R/from" && tar c .) | tar x -C "$WS" --keep-directory-symlink; cp -r "$R/from/." "$WS/"; else fs_import "$R/from" .; fi; }
escaped() { [ "$(cat "$OUT/file")" != original ]; }
attempt "import through a link to a directory"
attack() { box_open; inside 'ln -s "$OUT" d; ln -s "$OUT/secret" s; mkdir sub; ln -s "$OUT/secret" sub/s; ln "$OUT/secret" hard'; fs_export . "$R/to"; }
escaped() { grep -rqs "$SECRET" "$R/to" --include='*' --exclude-dir=none -- && find "$R/to" -type f -exec grep -l "$SECRET" {} + | grep -q .; }
attempt "export of links"
attack()
{
    box_open
    if [ "$BOX" = none ]; then
        ln -s "$OUT" "$WS/d" && (cd "$R/from" && tar c d/file) | tar x -C "$WS" --keep-directory-symlink
    else
        "$CAISSON" write "$BOX_ID" . --tar < <(cd "$R" && mkdir a b && ln -s "$OUT" a/d && cp -r from/d b/ && tar c -C a d -C ../b d/file)
    fi
}
escaped() { [ "$(cat "$OUT/file")" != original ]; }
attempt "an archive with a link and a file below it"
