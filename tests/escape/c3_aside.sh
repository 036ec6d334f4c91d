#!/bin/bash
# C3: taking protected files out of a workspace costs no more than what they hold, ends, and is logged;
# what does not fit is made harmless in its place.
# shellcheck source=tests/escape/lib.sh
. "${0%/*}/lib.sh"

asides() { find "$1/caisson/aside" -name item -printf x 2>/dev/null | wc -c; }
space() { du -sm "$1" | cut -f 1; }
hooks() { find "$WS" -path '*/.git/hooks/*' -not -name '.csn-aside-*'; }
fresh() { chmod -R u+rwX "$WS" && rm -rf "${WS:?}"/* "$WS"/.[!.]* && cp "$PROBE" "$WS/probe"; }
git init -q "$T/template" 2>/dev/null || { skip "all of it" "no git here"; exit 0; }
rm -rf "$T/template/.git/hooks"
near=$T/near
mkdir -p "$near" && chmod 700 "$near"
stores=("$near")
if far=$(mktemp -d /dev/shm/csn-aside.XXXXXX) && [ "$(stat -c %d "$far")" != "$(stat -c %d "$T")" ]; then
    stores+=("$far")
fi

for store in "${stores[@]}"; do
    where=$([ "$store" = "$near" ] && echo "the same file system" || echo "another file system")
    at() { XDG_STATE_HOME=$store "${IN[@]}" "$@"; }

    # ---- files without data ----
    fresh && cp -r "$T/template" n
    at -c 'mkdir -p n/.git/hooks; for i in $(seq 40); do truncate -s 1T n/.git/hooks/h$i; done' >/dev/null 2>&1
    is "sparse files, $where: none is left" "$(hooks)" ""
    is "all are kept" "$(asides "$store")" 40
    holds "they take no space" test "$(space "$store")" -lt 20
    is "with their length" "$(find "$store/caisson/aside" -name item -printf '%s\n' | sort -u)" 1099511627776

    # ---- files with data ----
    fresh && cp -r "$T/template" n
    at -c 'mkdir -p n/.git/hooks; for i in $(seq 8); do head -c 60M /dev/zero | tr "\0" x >n/.git/hooks/h$i; done' >/dev/null 2>"$T/err"
    is "much data, $where: none is left" "$(hooks)" ""
    holds "at most 256 MiB of it are kept" test "$(space "$store")" -lt 280
    hidden=$(find "$WS/n/.git/hooks" -name '.csn-aside-*' | wc -l)
    holds "the rest is hidden" test "$hidden" -ge 4
    is "without permissions" "$(find "$WS/n/.git/hooks" -name '.csn-aside-*' -not -perm 000)" ""
    holds "and reported with its new name" grep -q "8 files in '$WS/n/.git/hooks' .*; $hidden of them stay there as .csn-aside-" "$T/err"
    rm -rf "$store/caisson/aside"

    # ---- many ----
    fresh && cp -r "$T/template" n
    at -c 'mkdir -p n/.git/hooks; cd n/.git/hooks; for i in $(seq 1100); do echo x >h$i; done' >/dev/null 2>&1
    is "many files, $where: none is left" "$(hooks)" ""
    # Copying to another file system has a time limit as well.
    kept=$(asides "$store")
    holds "at most 1000 of them are kept" test "$kept" -le 1000
    is "the others are hidden" $((kept + $(find "$WS/n/.git/hooks" -name '.csn-aside-*' | wc -l))) 1100
    rm -rf "$store/caisson/aside"

    # ---- other types ----
    fresh && cp -r "$T/template" n
    at -c 'mkdir -p n/.git/hooks; cd n/.git/hooks; mkfifo pre-commit; ln -s /bin/sh post-commit; echo x >pre-push; chmod 0 pre-push' >/dev/null 2>&1
    is "a fifo, a link and an unreadable file, $where: none is left" "$(hooks)" ""

    # ---- a file of the user under a second name ----
    fresh && cp -r "$T/template" n && head -c 300M /dev/zero | tr '\0' x >mine && chmod 755 mine
    at -c 'mkdir -p n/.git/hooks; ln mine n/.git/hooks/pre-commit' >/dev/null 2>&1
    is "a second name of a file of the user, $where: it is gone" "$(hooks)" ""
    is "and the file is as it was" "$(stat -c '%a %s' mine)" "755 314572800"
    rm -rf "$store/caisson"
done
rm -rf "${far:-/nonexistent}"

# ---- the log ----
fresh && cp -r "$T/template" n
id=$(new)
cs exec "$id" -c 'mkdir -p n/.git/hooks; echo x >n/.git/hooks/pre-commit; echo x >.zshenv' >/dev/null 2>&1
last() { cs log "$id" --json | tail -n 1; }
json "the line of the command lists what was moved" "$(last)" \
    "v['op'] == 'exec' and sorted(v['aside']) == ['$WS/.zshenv', '$WS/n/.git/hooks/pre-commit']"
cs exec "$id" -c 'echo harmless >file' >/dev/null
json "and of another one, nothing" "$(last)" "v['op'] == 'exec' and 'aside' not in v"
cs exec "$id" -c 'mkdir -p n/.git/hooks; for i in $(seq 200); do echo x >n/.git/hooks/a-rather-long-name-of-a-hook-$i; done' >/dev/null 2>&1
json "the list is bounded" "$(last)" "0 < len(v['aside']) <= 64"
status "the chain of the log is whole" 0 cs log "$id" --verify
