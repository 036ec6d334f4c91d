#!/bin/bash
# What a sandbox controls and a terminal would obey: escape sequences and direction characters are
# shown, unless --raw; a pipe and a file get the bytes.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"
w=$T/ws
evil=$'a\e]0;title\a\xe2\x80\xaetxt.exe\xc2\x9b2J\x9b\r\nb\rc\n'
want='a\x1b]0;title\x07<U+202E>txt.exe\xc2\x9b2J\x9b'
id=$(new)
printf %s "$evil" >"$w/evil"
name=$'n\e[31m\xe2\x80\xae'
: >"$w/$name"
command -v script >/dev/null || { skip "on a terminal" "needs script"; exit 0; }
# tty WORD...: the command on a terminal of its own; what that terminal gets
tty() { printf -v line '%q ' "$CAISSON" "$@"; SHELL=/bin/bash script -qec "$line" /dev/null </dev/null 2>/dev/null; }
lines() { tr -d '\r'; } # the terminal's own line ends

is "cat" "$(tty cat "$id" evil | lines)" "$want"$'\n''b\x0dc'
is "read" "$(tty read "$id" evil | lines)" "$want"$'\n''b\x0dc'
is "read --numbers" "$(tty read "$id" evil --numbers | lines | grep -c '\\x1b')" 1
like "cat --raw" "$(tty cat "$id" evil --raw)" *$'\e]0;title\a\xe2\x80\xae'*
like "read --raw" "$(tty read "$id" evil --raw)" *$'\e]0;title\a\xe2\x80\xae'*
is "cat to a pipe" "$(cs cat "$id" evil)" "${evil%$'\n'}"
is "read to a pipe" "$(cs read "$id" evil)" "${evil%$'\n'}"
cs cat "$id" evil >"$T/copy"
holds "cat to a file" cmp "$T/copy" "$w/evil"
like "ls" "$(tty ls "$id")" '*n\\x1b[[]31m<U+202E>*'
like "ls -0" "$(tty ls "$id" -0 | tr '\0' '\n')" '*n\\x1b[[]31m<U+202E>*'
like "glob" "$(tty glob "$id" 'n*')" 'n\\x1b[[]31m<U+202E>*'
like "stat" "$(tty stat "$id" "$name")" '*n\\x1b[[]31m<U+202E>*'
like "grep" "$(tty grep "$id" txt.exe)" '*\\x1b]0;title\\x07<U+202E>txt.exe*'
json "--json is still a document" "$(tty ls "$id" --json)" "any(e['path'].startswith('n') for e in v)"
holds "and has no such character" ! grep -q $'\xe2\x80\xae' <<<"$(tty ls "$id" --json)"
like "a message names what it was given, visibly" "$(tty read "$id" $'no\e[2J\xe2\x80\xae')" '*no\\x1b[[]2J<U+202E>*'
like "run: the command's own output passes" "$(tty exec "$id" -- printf '\033[31mred')" *$'\e[31mred'*
printf 'x%.0s' $(seq 65535) >"$w/long" && printf '\xe2\x80\xaeend\r\n' >>"$w/long"
like "a character across two chunks" "$(tty cat "$id" long | tail -c 60 | lines)" '*xxx<U+202E>end'
pid=$(cs exec "$id" -d -- sh -c 'sleep 300' $'\e[31m\xe2\x80\xae')
like "ps" "$(tty ps "$id")" '*\\x1b[[]31m<U+202E>*'
cs kill "$id" "$pid"
holds "log" ! grep -q $'\xe2\x80\xae' <<<"$(tty log "$id")"
holds "log to a pipe has the bytes" grep -q $'\xe2\x80\xae' <<<"$(cs log "$id" --json)"
cs destroy "$id"
