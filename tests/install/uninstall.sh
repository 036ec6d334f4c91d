#!/bin/bash
# make builds all that make install installs. make uninstall removes that, and nothing else.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/../cli/lib.sh"

is "make builds each file that is installed" "$(python3 -c '
import json, os, subprocess, sys
build = sys.argv[1]
with open(build + "/meson-info/intro-targets.json") as f:
    targets = [t for t in json.load(f) if t["installed"]]
query = subprocess.run(["ninja", "-C", build, "-t", "query", "product"], check=True,
                       stdout=subprocess.PIPE, text=True).stdout.split()
print(*[n for t in targets if not any(os.path.relpath(n, build) in query for n in t["filename"])
        for n in t["filename"]])' "$BUILD" 2>&1)" ""

root=$T/root
status "it is installed" 0 env DESTDIR="$root" meson install -C "$BUILD" --no-rebuild
program=$(find "$root" -path '*/bin/caisson')
prefix=${program%/bin/caisson}
holds "the program is there" test -x "$program"
holds "and pages" test -e "$prefix/share/man/man3/csn_exec.3"
: >"$prefix/bin/other"
: >"$prefix/include/caisson/other.h"
status "it is removed" 0 env DESTDIR="$root" "$SOURCE/tools/uninstall" "$BUILD"
is "only what others put there is left" "$(find "$root" ! -type d | sort)" "$prefix/bin/other
$prefix/include/caisson/other.h"
is "of caisson's directories only one with a file of others" "$(find "$root" -name caisson)" \
    "$prefix/include/caisson"
status "a second time there is nothing to do" 0 env DESTDIR="$root" "$SOURCE/tools/uninstall" "$BUILD"
