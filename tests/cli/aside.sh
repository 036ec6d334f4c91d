#!/bin/bash
# aside: protected files that a jail moved out of a workspace are listed, restored and deleted; a
# workspace that a sandbox prepared does not lead a restore elsewhere.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"
export CAISSON_BACKEND=jail
W=$T/ws S=$XDG_STATE_HOME/caisson/aside

status "aside without any" 0 cs aside
is "prints nothing" "$out" ""
json "aside --json without any" "$(cs aside --json)" 'v == []'
if ! cs run --workspace "$W" -- true 2>"$T/why"; then
    if [ "${CSN_MUST_WORK:-0}" = 1 ]; then
        fail "a jail" "$(cat "$T/why")"
    else
        skip "files that a jail moved away" "no jail on this host: $(head -n 1 "$T/why")"
    fi
    exit 0
fi

# ---- one line for a directory ----
# shellcheck disable=SC2016
status "a run that makes protected files" 0 cs run --workspace "$W" -c '
    mkdir -p a/.vscode b; echo one >.envrc
    for i in 1 2 3 4 5; do mkdir -p h/.git/hooks; : >h/.git/hooks/pre-$i; done
    mkdir -p h/.git/objects h/.git/refs; echo ref: refs/heads/main >h/.git/HEAD
    printf two >"b/.envrc"; mkdir "$(printf "b\n\033x")"; printf three >"$(printf "b\n\033x")/.envrc"'
like "a single file is reported with its new place" "$err" "*/ws/.envrc' was quarantined: it is now $S/*"
is "five in one directory in one line" "$(grep -c "5 files in '$W/h/.git/hooks' were quarantined: .*, ...; caisson aside shows them; to allow them: --write $W/h/.git/hooks" <<<"$err")" 1
is "and in no other" "$(grep -c "h/.git/hooks" <<<"$err")" 1

# ---- list ----
status "aside" 0 cs aside
like "has a heading" "$out" "ID * MOVED (UTC) * SIZE * PATH"$'\n'"*"
like "path, size and reason" "$out" "*jail-*/[0-9]* 20[0-9][0-9]-* 4 bytes *$W/.envrc  (.envrc: direnv runs it on cd)*"
holds "control characters are escaped" ! grep -q $'\e' <<<"$out"
is "one line for each" "$(wc -l <<<"$out")" 9
status "aside list" 0 cs aside list --json
json "--json" "$out" "len(v) == 8 and all(set(e) == {'id', 'sandbox', 'path', 'reason', 'kept', 'type', 'bytes', 'moved_at'}
    and e['id'].startswith(e['sandbox'] + '/') and e['type'] == 'file' for e in v)
    and sorted(e['bytes'] for e in v if e['path'].endswith('/.envrc')) == [3, 4, 5]"

# ---- restore ----
status "restore without a terminal" 2 cs aside restore "$W/.envrc"
like "needs --yes" "$err" "*restore needs --yes*"
holds "and changes nothing" test ! -e "$W/.envrc"
status "restore by path" 0 cs aside restore "$W/.envrc" --yes
is "the file is back" "$(cat "$W/.envrc")" one
like "with what that means" "$err" "*programs on this host may run it*"
status "once" 1 cs aside restore "$W/.envrc" --yes
status "restore by a relative path" 0 env -C "$W" "$CAISSON" aside restore ./b/.envrc -y
is "the file is back" "$(cat "$W/b/.envrc")" two
odd=$(cs aside --json | python3 -c 'import json, sys; print([e["id"] for e in json.load(sys.stdin) if e["bytes"] == 5][0])')
status "restore by id" 0 cs aside restore "$odd" --yes --json
json "--json" "$out" 'v == {"ok": True}'
is "to a directory with control characters" "$(cat "$W"/$'b\n\033x/.envrc')" three
status "restore of several" 2 cs aside restore "${odd%/*}" --yes
like "asks for one" "$err" "*5 entries: name one*"
status "restore of what is not there" 1 cs aside restore nothing --yes
status "a word that is none" 2 cs aside retsore x
like "with what was meant" "$err" "*did you mean restore?"

# a new sandbox sees the restored file as the user's
status "a later command" 0 cs run --workspace "$W" -- true
is "leaves it" "$(cat "$W/.envrc")" one

# ---- something is there by now ----
rm "$W/.envrc"
cs run --workspace "$W" -c 'echo bad >.envrc' 2>"$T/.err"
echo mine >"$W/.envrc"
status "a file is there by now" 1 cs aside restore "$W/.envrc" --yes
like "which is said" "$err" "*there is something at '$W/.envrc' by now*--force*"
is "and stays" "$(cat "$W/.envrc")" mine
rm "$W/.envrc" && ln -s "$T/target" "$W/.envrc" && echo target >"$T/target"
status "a link likewise" 1 cs aside restore "$W/.envrc" --yes
status "--force replaces it" 0 cs aside restore "$W/.envrc" --yes --force
is "and not what it leads to" "$(cat "$T/target") $(cat "$W/.envrc")" "target bad"
rm "$W/.envrc"

# ---- what a sandbox prepares ----
mkdir "$T/outside"
cs run --workspace "$W" -c 'mkdir trap; echo evil >trap/.envrc' 2>"$T/.err"
rmdir "$W/trap" && ln -s "$T/outside" "$W/trap"
status "a link on the path" 1 cs aside restore "$W/trap/.envrc" --yes --force
like "is refused" "$err" "*symbolic link is on the path '$W/trap/.envrc'*"
is "and not followed" "$(ls -A "$T/outside")" ""
rm "$W/trap"
status "a directory that is gone" 1 cs aside restore "$W/trap/.envrc" --yes
like "is said" "$err" "*the directory of '$W/trap/.envrc' does not exist any more*"
mkdir -p "$W/trap/.envrc/x"
status "a directory in its place is not replaced" 1 cs aside restore "$W/trap/.envrc" --yes --force
rm -r "$W/trap/.envrc"
# entries whose notes were damaged
last=$(cs aside --json | python3 -c 'import json, sys; print(json.load(sys.stdin)[-1]["id"])')
cp "$S/$last/from" "$T/from"
for from in "'$W/trap/../../x'" "'relative'" "'$W/trap/.envrc" "'\\q'" "" "''"; do
    printf '%s\nreason\n' "$from" >"$S/$last/from"
    status "a note that says ${from:-nothing}" 1 cs aside restore "$last" --yes
    like "leads nowhere" "$err" "*it is not known where '$last' was*"
done
rm "$S/$last/from" && ln -s "$T/from" "$S/$last/from"
status "a note that is a link" 1 cs aside restore "$last" --yes
rm "$S/$last/from" && cp "$T/from" "$S/$last/from"
for id in ../x/1 "$T/1" "${last%/*}/../1" "${last%/*}/x" /; do
    status "the id $id" 1 cs aside restore "$id" --yes
done

# ---- another file system ----
if far=$(mktemp -d /dev/shm/csn-aside.XXXXXX) && [ "$(stat -c %d "$far")" != "$(stat -c %d "$T")" ]; then
    chmod 755 "$far"
    cs run --workspace "$far" -c 'echo far >.envrc' 2>"$T/.err"
    holds "a file on another file system is moved" test ! -e "$far/.envrc"
    echo mine >"$far/.envrc"
    status "nothing is replaced there" 1 cs aside restore "$far/.envrc" --yes
    is "at all" "$(cat "$far/.envrc")" mine
    status "without --force" 0 cs aside restore "$far/.envrc" --yes --force
    is "it is copied back" "$(cat "$far/.envrc")" far
    is "and leaves nothing else" "$(ls -A "$far")" .envrc
else
    skip "another file system" "no /dev/shm of its own"
fi
rm -rf "${far:-/nonexistent}"

# ---- clear ----
status "clear of several without a terminal" 2 cs aside clear
like "needs --yes" "$err" "*clear needs --yes*"
status "clear of one" 0 cs aside clear "$last"
is "deletes it" "$out" "1 deleted"
holds "from the disk" test ! -e "$S/$last"
status "clear of what is young" 0 cs aside clear --older 7d --yes
is "deletes none" "$out" "0 deleted"
find "$S" -name from -exec touch -d '8 days ago' {} +
status "clear --older" 0 cs aside clear --older 7d --yes --json
json "counts" "$out" 'v["removed"] == 5'
is "and leaves nothing" "$(cs aside) $(find "$S" -name item)" " "
status "clear of what is not there" 1 cs aside clear nothing
status "a bad age" 2 cs aside clear --older soon
status "--older without clear" 2 cs aside --older 7d
status "--force without restore" 2 cs aside clear --force
