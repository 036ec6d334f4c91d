#!/bin/bash
# CVE-2026-98988, Linux: open_tree with the flag for a new namespace made a copy of a mount without the
# mounts on top of it, which uncovered what they hide.
# Escaped: the content of a denied file comes out from under its cover, by open_tree or by other mounts.
# shellcheck disable=SC2317,SC2034
NEEDS="deny"
. "${0%/*}/../lib.sh"
prepare() { mkdir "$WS/private" && echo "$SECRET" | tee "$WS/private/key" >"$WS/token"; DENY=("$WS/private" "$WS/token"); }
attack() { probe uncover "$WS/private" "$WS/private/key"; probe uncover "$WS/token" "$WS/token"; }
escaped() { grep -qs "$SECRET" "$R"/said*; }
attempt "a copy of the mounts without the cover"
