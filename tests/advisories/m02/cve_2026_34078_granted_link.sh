#!/bin/bash
# CVE-2026-34078, Flatpak before 1.16.4: paths that an application offered to expose to a sub-sandbox were
# links under its control, and the mount followed them to any file of the host.
# Escaped: the next sandbox, whose options name a directory of the project, writes where a link that the
# last one put there leads.
# shellcheck disable=SC2317,SC2034
NEEDS="commands"
. "${0%/*}/../lib.sh"
MAY_REFUSE=1
prepare() { mkdir "$WS/data" && secret_out; }
swap() { inside 'rmdir data; ln -s "$OUT" data'; }
attack() { swap; WRITE=("$WS/data"); inside 'touch data/marker "$OUT/marker"; cat data/secret "$OUT/secret"'; }
escaped() { marked || grep -qs "$SECRET" "$R"/said*; }
attempt "a writable directory of the project"
attack() { swap; READ=("$WS/data"); inside 'cat data/secret "$OUT/secret"'; }
attempt "a readable directory of the project"
