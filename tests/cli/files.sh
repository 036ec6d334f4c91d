#!/bin/bash
# read, cat, write, edit, rm, mkdir, mv, stat, ls, glob, grep.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"
id=$(new --backend local)
w=$T/ws

# write
printf 'one\ntwo\nthree\n' | cs write "$id" a.txt
is "write" "$(cat "$w/a.txt")" "one
two
three"
j=$(printf 'one\ntwo\nthree\n' | cs write "$id" d/e/b.txt --json)
json "write --json" "$j" 'v["path"] == "d/e/b.txt" and v["bytes"] == 14 and
    v["resolved_path"].endswith("d/e/b.txt") and len(v["hash"]) == 64'
is "the hash is SHA-256" "$(python3 -c 'import json,sys; print(json.loads(sys.argv[1])["hash"])' "$j")" \
    "$(sha256sum <"$w/a.txt" | cut -d' ' -f1)"
status "create-only refuses" 1 cs write "$id" a.txt --create-only
like "with the text everybody knows" "$err" "*already exists*"
json "as JSON" "$(cs write "$id" a.txt --create-only --json </dev/null 2>/dev/null)" \
    'v["error"]["code"] == "exists" and v["error"]["path"] == "a.txt"'
echo four | cs write "$id" a.txt --append
is "append" "$(tail -n 1 "$w/a.txt")" four
status "if-hash of another file" 1 cs write "$id" a.txt --if-hash "$(sha256sum </dev/null | cut -d' ' -f1)"
echo five | cs write "$id" a.txt --if-hash "$(sha256sum <"$w/a.txt" | cut -d' ' -f1)" &&
    is "if-hash of this file" "$(cat "$w/a.txt")" five
head -c 3000000 /dev/urandom >big
cs write "$id" large <big
holds "three megabytes" cmp -s big "$w/large"
: | cs write "$id" empty && is "an empty file" "$(stat -c %s "$w/empty")" 0
status "write outside" 1 cs write "$id" ../escape
like "is refused with the text everybody knows" "$err" "*outside base directory*"
ln -s /etc "$w/link"
status "write through a link that leaves" 1 cs write "$id" link/passwd
status "write over a directory" 1 cs write "$id" d
# an interrupted write leaves the old file
mkfifo "$T/half"
"$CAISSON" write "$id" a.txt <"$T/half" &
writer=$!
exec 8>"$T/half"
echo half >&8
eventually pgrep -f "$CAISSON write $id a.txt"
sleep 0.2 # it may have begun
kill -TERM $writer
wait $writer 2>/dev/null
exec 8>&-
is "an interrupted write leaves the old file" "$(cat "$w/a.txt")" five
is "and nothing beside it" "$(find "$w" -maxdepth 1 -type f -newer "$w/empty" -name '.*')" ""

# read, cat
seq 5000 >"$w/lines"
is "read stops at 2000 lines" "$(cs read "$id" lines 2>"$T/e" | wc -l)" 2000
like "and says how to go on" "$(cat "$T/e")" "*--offset 2000*"
is "offset and limit" "$(cs read "$id" lines --offset 10 --limit 2 2>/dev/null | tr '\n' ' ')" "11 12 "
is "numbers" "$(cs read "$id" d/e/b.txt --numbers | head -n 1)" "     1	one"
j=$(cs read "$id" lines --limit 3 --json)
json "read --json" "$j" 'v["content"] == "1\n2\n3\n" and v["total_lines"] == 5000 and
    v["output_lines"] == 3 and v["truncated"] and v["truncated_by"] == "lines" and
    v["mime_type"] is None and v["bytes"] == 23893'
json "read a whole file --json" "$(cs read "$id" d/e/b.txt --json)" 'v["truncated"] is False and
    v["truncated_by"] is None and len(v["hash"]) == 64'
json "base64 on request" "$(cs read "$id" d/e/b.txt --json --encoding base64)" \
    'v["encoding"] == "base64" and __import__("base64").b64decode(v["content"]) == b"one\ntwo\nthree\n"'
printf '\x89PNG\r\n\x1a\n\0\0\0\rIHDR' >"$w/p.png"
json "an image" "$(cs read "$id" p.png --json)" 'v["mime_type"] == "image/png" and
    v["encoding"] == "base64" and __import__("base64").b64decode(v["content"]).startswith(b"\x89PNG")'
is "an empty file with numbers" "$(cs read "$id" empty --numbers)" \
    "System reminder: File exists but has empty contents"
status "read of nothing" 1 cs read "$id" none.txt
like "with the text everybody knows" "$err" "caisson: read: File '*none.txt' not found*"
status "read of a directory" 1 cs read "$id" d
mkfifo "$w/fifo"
status "read of a fifo does not hang" 1 timeout 60 "$CAISSON" read "$id" fifo
status "--nofollow refuses links" 1 cs read "$id" link/passwd --nofollow
cs cat "$id" large >copy
holds "cat: bytes" cmp -s copy big
json "cat --json" "$(cs cat "$id" p.png --json)" 'v["encoding"] == "base64" and v["bytes"] == 16'
cs cat "$id" large 2>"$T/e" | head -c 1 >/dev/null
is "cat to a broken pipe is quiet" "$(cat "$T/e")" ""
printf 'a\377b\r\n' | cs write "$id" raw
is "bytes survive" "$(cs cat "$id" raw | od -An -tx1)" " 61 ff 62 0d 0a"
is "also through read" "$(cs read "$id" raw | od -An -tx1)" " 61 ff 62 0d 0a"

# edit
printf 'x = 1\ny = 1\n' | cs write "$id" e.c
status "edit" 0 cs edit "$id" e.c 'x = 1' 'x = 2'
is "changed" "$(head -n 1 "$w/e.c")" "x = 2"
status "no match" 1 cs edit "$id" e.c nothing else
like "says so" "$err" "*String not found in file: 'nothing'*"
status "two matches" 1 cs edit "$id" e.c ' = ' ':='
like "say so" "$err" "*appears multiple times*"
json "--all --json" "$(cs edit "$id" e.c ' = ' ':=' --all --json)" 'v["occurrences"] == 2 and
    v["path"] == "e.c" and set(v) >= {"bytes", "resolved_path", "hash"}'
status "text with a dash" 0 cs edit "$id" e.c -- 'x:=2' '-x'
is "is text" "$(head -n 1 "$w/e.c")" "-x"
echo '[{"old_string":"-x","new_string":"a"},{"old_string":"y","new_string":"b"}]' >edits.json
status "--edits" 0 cs edit "$id" e.c --edits edits.json
is "all of them" "$(tr '\n' ' ' <"$w/e.c")" "a b:=1 "
echo '[{"old_string":"a","new_string":"c"},{"old_string":"zzz","new_string":"b"}]' |
    cs edit "$id" e.c --edits - 2>/dev/null
is "or none" "$(tr '\n' ' ' <"$w/e.c")" "a b:=1 "
echo '[{"old":"a"}]' >edits.json
status "a wrong key in the edits" 1 cs edit "$id" e.c --edits edits.json
like "is named" "$err" "*old*"
is "empty NEW removes" "$(cs edit "$id" e.c 'b:=1' '' && tr '\n' ' ' <"$w/e.c")" "a  "

# rm, mkdir, mv, stat
status "mkdir makes parents" 0 cs mkdir "$id" m/n/o
holds "they are there" test -d "$w/m/n/o"
status "mv" 0 cs mv "$id" e.c m/f.c
holds "moved" test -f "$w/m/f.c"
status "rm of a full directory" 1 cs rm "$id" m
status "rm -r" 0 cs rm "$id" m -r
holds "gone" ! test -e "$w/m"
status "rm of nothing" 1 cs rm "$id" m
json "rm --json" "$(cs rm "$id" lines --json)" 'v == {"ok": True}'
status "rm of a link" 0 cs rm "$id" link
holds "spares its target" test -f /etc/passwd
chmod 640 "$w/a.txt"
json "stat --json" "$(cs stat "$id" a.txt --json)" 'v["path"] == "a.txt" and v["is_dir"] is False and
    v["size"] == 5 and v["mode"] == "0640" and v["is_symlink"] is False and
    __import__("re").match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$", v["modified_at"])'
like "stat for people" "$(cs stat "$id" d)" "*kind *directory*"
status "stat of nothing" 1 cs stat "$id" none
ln -s a.txt "$w/inside"
json "stat of a link" "$(cs stat "$id" inside --nofollow --json)" \
    'v["is_symlink"] and v["target"] == "a.txt"'
json "stat follows" "$(cs stat "$id" inside --json)" 'not v["is_symlink"] and v["size"] == 5'

# ls, glob
cs cleanup "$id" --force
mkdir -p "$w/src/.hid" && touch "$w/b" "$w/a" "$w/.dot" "$w/src/x.c" "$w/src/y.h" "$w/src/.hid/z.c"
touch "$w/"$'new\nline' "$w/"$'bad\377'
is "ls is sorted and complete" "$(cs ls "$id" -0 | tr '\0' '|')" ".dot|a|b|bad"$'\377'"|new
line|src|"
is "ls of a directory" "$(cs ls "$id" src | tr '\n' ' ')" ".hid x.c y.h "
like "ls -l" "$(cs ls "$id" -l)" "*-rw* 0 20[0-9][0-9]-[0-9]*a*drw*src*"
json "ls --json" "$(cs ls "$id" --json)" '[x["path"] for x in v] == [".dot", "a", "b", "bad\ufffd",
    "new\nline", "src"] and v[5]["is_dir"] and set(v[0]) == {"path", "is_dir", "size", "modified_at",
    "mode", "is_symlink"}'
json "a name that is not UTF-8" "$(cs ls "$id" --json)" \
    '__import__("base64").b64decode(v[3]["path_base64"]) == b"bad\xff" and "path_base64" not in v[0]'
status "ls of nothing" 1 cs ls "$id" none
is "glob" "$(cs glob "$id" '**/*.{c,h}' | tr '\n' ' ')" "src/.hid/z.c src/x.c src/y.h "
is "glob below a path" "$(cs glob "$id" '*.c' src)" x.c
json "glob --json" "$(cs glob "$id" '**/*.h' --json)" 'len(v) == 1 and v[0]["path"] == "src/y.h"'
status "no match is fine" 0 cs glob "$id" '*.none'
tty=$(script -qec "'$CAISSON' ls '$id'" /dev/null </dev/null 2>/dev/null)
like "on a terminal names are escaped" "$tty" '*new\\x0aline*'

# grep
printf 'alpha\nbeta\ngamma\nbeta.*\nend\n' >"$w/src/t"
printf 'beta\0' >"$w/binary"
is "grep is literal" "$(cs grep "$id" 'beta.*')" "src/t:4:beta.*"
is "grep finds lines" "$(cs grep "$id" beta | tr '\n' ' ')" "src/t:2:beta src/t:4:beta.* "
is "grep --regex" "$(cs grep "$id" --regex '^(al|en)' src | tr '\n' ' ')" "t:1:alpha t:5:end "
is "grep -i in a file" "$(cs grep "$id" -i GAMMA src/t)" "src/t:3:gamma"
is "grep -C" "$(cs grep "$id" -C 1 alpha src | tr '\n' ' ')" "t:1:alpha t-2-beta "
printf '1\n2\nX\n4\n5\n6\n7\nX\n' >"$w/ctx"
is "groups are separated" "$(cs grep "$id" -C1 X ctx | tr '\n' ' ')" \
    "ctx-2-2 ctx:3:X ctx-4-4 -- ctx-7-7 ctx:8:X "
is "grep --glob" "$(cs grep "$id" beta --glob '*.c')" ""
is "grep --max" "$(cs grep "$id" beta --max 1 2>"$T/e")" "src/t:2:beta"
like "and says that there is more" "$(cat "$T/e")" "*more matches*"
json "grep --json" "$(cs grep "$id" -C 1 gamma --json)" '[(x["path"], x["line"], x["text"],
    x.get("is_context", False)) for x in v] == [("src/t", 2, "beta", True),
    ("src/t", 3, "gamma", False), ("src/t", 4, "beta.*", True)]'
json "no match is an empty array" "$(cs grep "$id" zzz --json)" 'v == []'
status "no match is not a failure" 0 cs grep "$id" zzz
status "a bad expression" 2 cs grep "$id" --regex '('
status "a place that is not there" 1 cs grep "$id" x none
mkdir -p "$w/repo/.git" "$w/repo/out"
printf 'out/\n*.o\n' >"$w/repo/.gitignore"
echo pin >"$w/repo/a.c" && echo pin >"$w/repo/a.o" && echo pin >"$w/repo/out/b.c"
is "grep --gitignore" "$(cs grep "$id" pin repo --gitignore)" "a.c:1:pin"
is "glob --gitignore" "$(cs glob "$id" "**/a.*" repo --gitignore)" "a.c"
is "without it, all" "$(cs grep "$id" pin repo | wc -l)" 3

# watch
"$CAISSON" watch "$id" --max 2 --timeout 60s --json >"$T/events" &
n=0
while kill -0 $! 2>/dev/null; do # what comes before it looks is not seen
    n=$((n + 1))
    touch "$w/w$n"
    sleep 0.1
done
wait $!
json "watch --json: one object a line" "$(head -n 1 "$T/events")" \
    'v["event"] == "create" and v["path"].startswith("w") and v["is_dir"] is False'
is "as many as were wanted" "$(wc -l <"$T/events")" 2
status "watch ends after its timeout" 0 timeout 60 "$CAISSON" watch "$id" --timeout 300ms

# watch ends with its sandbox: it is waiting when its inotify descriptor is open
watching() { find "/proc/$1/fd" -lname '*inotify*' 2>/dev/null | grep -q .; }
# ends_with NAME BACKEND WANT COMMAND...: COMMAND, given the id, ends a watch with the message
ends_with()
{
    local name=$1 backend=$2 want=$3 box pid
    shift 3
    box=$(cs create --backend "$backend" --workspace "$w")
    mkdir -p "$w/watched"
    "$CAISSON" watch "$box" watched 2>"$T/.watch" >/dev/null &
    pid=$!
    eventually watching "$pid"
    "$@" "$box"
    wait "$pid"
    is "$name: exit status ($backend)" $? 1
    # shellcheck disable=SC2059
    is "$name: message ($backend)" "$(cat "$T/.watch")" "$(printf "$want" "$box")"
    cs destroy "$box"
}
kill_keeper()
{
    kill -9 "$(cs info "$1" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["keeper_pid"])')"
}
shorten_life() { cs extend "$1" 100ms >/dev/null; }
remove_watched() { rmdir "$w/watched"; }
for backend in local jail; do
    ended="caisson: watch: sandbox '%s' has ended"
    ends_with "watch ends with destroy" $backend "$ended" cs destroy
    ends_with "watch ends with the keeper" $backend "$ended" kill_keeper
    ends_with "watch ends with the lifetime" $backend "$ended" shorten_life
    ends_with "watch ends with its directory" $backend \
        "caisson: watch: 'watched': the watched directory was removed" remove_watched
done
