#!/bin/bash
# CVE-2026-96807, Flatpak: the host writes a cache of the dynamic loader into a directory that the
# application owns; a link there redirected the write. bubblewrap before 0.12 had the same in the places
# where it makes mount points (CVE-2026-87766).
# Escaped: opening a sandbox on a project whose directories are links creates or changes something outside.
# shellcheck disable=SC2317,SC2034
NEEDS="commands"
. "${0%/*}/../lib.sh"
MAY_REFUSE=1
names=".git .vscode .idea .claude .cursor .codex .ssh .cache .config .local .devcontainer .caisson"
prepare() { mkdir "$OUT/dir" && echo original >"$OUT/dir/file" && find "$R/out" -printf '%p %s %m\n' | sort >"$R/before"; }
attack()
{
    local n
    inside "for n in $names; do ln -s '$OUT/dir' \$n; done; ln -s '$OUT/dir/new' .mcp.json; ln -s '$OUT/dir/file' .bashrc; mkdir sub; ln -s '$OUT/dir' sub/deep"
    if [ "$BOX" = none ]; then # a host program that makes what it needs
        mkdir -p "$WS/.cache/made" && return
    fi
    for n in $names; do [ -L "$WS/$n" ] || ln -s "$OUT/dir" "$WS/$n"; done
    inside 'true'
    DENY=("$WS/sub/deep/x" "$WS/.cache/x")
    inside 'true'
    DENY=() WRITE=("$WS/sub/deep/y" "$WS/.local/y")
    inside 'true'
    WRITE=()
    [ "$BOX" = caisson ] || return
    EXTRA=(--home "$WS/.config")
    inside 'true'
    EXTRA=(--workspace "$R/from:$WS/sub/deep/mnt")
    mkdir -p "$R/from"
    inside 'true'
    EXTRA=()
}
escaped() { ! find "$R/out" -printf '%p %s %m\n' | sort | cmp -s - "$R/before"; }
attempt "a sandbox is opened on a project full of links"
