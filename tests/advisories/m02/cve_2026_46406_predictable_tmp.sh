#!/bin/bash
# CVE-2026-46406, Claude Code before 2.1.128: a file with a predictable name in the shared /tmp was
# written by the host; a link of that name made inside led it elsewhere.
# Escaped: a link made in /tmp inside is there on the host.
# shellcheck disable=SC2317,SC2034
NEEDS=privatetmp
. "${0%/*}/../lib.sh"
names() { echo /tmp/csn-adv-$$ /var/tmp/csn-adv-$$ /dev/shm/csn-adv-$$; }
prepare() { local n; for n in $(names); do rm -f "$n"; done; }
attack() { inside "for n in $(names); do ln -s '$OUT/victim' \$n; done"; }
escaped() { local n found=1; for n in $(names); do [ -L $n ] && found=0; rm -f $n; done; return $found; }
attempt "a link in a directory for temporary files"
