#!/bin/bash
# run: exit codes, streams, limits on time and output, JSON, signals, broken pipes.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"
cd "$T/ws" || exit 1

status "a command that works" 0 cs run -- echo hello
is "its output" "$out" hello
status "its own exit code" 42 cs run -c 'exit 42'
status "not found" 127 cs run -- no-such-program-here
status "not found in a shell" 127 cs run -c no-such-program-here
printf 'x' >plain && chmod 644 plain
status "not executable" 126 cs run -- ./plain
status "ended by a signal" 137 cs run -c 'kill -KILL $$'
status "ended by TERM" 143 cs run -c 'kill -TERM $$'
status "timeout" 124 cs run --timeout 300ms -- sleep 600
like "a timeout is explained" "$err" "*timeout*"
status "timeout in seconds without a unit" 124 cs run --timeout=1 -- sleep 600
status "no such backend" 2 cs run --backend nonsense -- true
like "is explained" "$err" "caisson: *nonsense*"
status "no such workspace" 125 cs run --workspace "$T/missing" -- true
printf x >"$T/file"
status "no place for the log" 125 env XDG_STATE_HOME="$T/file" "$CAISSON" run -- true
like "names it, and what changes it" "$err" "caisson: run: audit log of *: state directory: $T/file/caisson/audit: *hint: set XDG_STATE_HOME *"
status "no place for a record" 1 env XDG_STATE_HOME="$T/file" "$CAISSON" create
like "likewise" "$err" "caisson: create: *state directory: $T/file/caisson/*hint: set XDG_STATE_HOME *"
status "refused by policy" 126 cs run --allow-command ls -- echo no
like "with a hint" "$err" "*hint: *allow-command*"
status "allowed by policy" 0 cs run --allow-command ls --allow-command echo -- echo yes

status "argv is never joined or expanded" 0 cs run -- printf '<%s>' 'a b' '$HOME' '' '*'
is "word by word" "$out" '<a b><$HOME><><*>'
cs run -c 'echo out; echo err >&2' >"$T/o" 2>"$T/e"
is "stdout goes to stdout" "$(cat "$T/o")" out
is "stderr goes to stderr" "$(cat "$T/e")" err
cs run --merge -c 'echo out; echo err >&2; echo out2' >"$T/o" 2>"$T/e"
is "--merge: all on stdout, in order" "$(tr '\n' ' ' <"$T/o")" "out err out2 "
is "a pipe is passed on as stdin" "$(echo data | cs run -- cat)" data
is "--stdin: likewise" "$(echo data | cs run --stdin -- cat)" data
is "--no-stdin: it is empty" "$(echo data | cs run --no-stdin -- cat)" ""
is "--stdin from a file" "$(cs run --stdin -- wc -c <"$CAISSON")" "$(wc -c <"$CAISSON")"
is "bytes are passed on as they are" "$(cs run -c 'printf "\0\377\n\r"' | od -An -tx1)" " 00 ff 0a 0d"
is "output is never cut when it streams" "$(cs run -c 'head -c 5000000 /dev/zero' | wc -c)" 5000000
is "not even with --max-output" "$(cs run --max-output 1K -c 'head -c 50000 /dev/zero' | wc -c)" 50000
first=$(timeout 60 bash -c '"$0" run --timeout none -c "echo now; sleep 600" | head -n 1' "$CAISSON")
is "output comes as it is written" "$first" now

is "the workspace is the current directory" "$(cs run -- pwd)" "$(pwd -P)"
mkdir sub
is "--cwd" "$(cs run --cwd sub -- pwd)" "$(pwd -P)/sub"
status "--cwd that is missing" 125 cs run --cwd nowhere -- pwd
is "--env with a value" "$(cs run --env A=b -c 'echo "$A"')" b
is "--env from the caller" "$(A=mine cs run --env A -c 'echo "$A"')" mine
is "nothing else is inherited" "$(A=mine cs run -c 'echo "${A-unset}"')" unset
is "HOME is the sandbox's" "$(cs run -c '[ "$HOME" != "'"$HOME"'" ] && [ -d "$HOME" ] && echo own')" own
is "HOME cannot be overridden" "$(cs run --env HOME=/x -c '[ "$HOME" = /x ] || echo kept')" kept
is "SIGPIPE is not ignored inside" "$(cs run -c 'grep SigIgn /proc/self/status | cut -f2')" 0000000000000000
is "no descriptor leaks inside" "$(cs run -c 'ls /proc/self/fd | wc -l')" 4

# --json
j=$(cs run --json -c 'echo out; echo err >&2; exit 3')
is "--json exits as the command does" "$?" 3
json "--json has every field" "$j" 'set(v) >= {"stdout", "stderr", "output", "exit_code", "signal",
    "duration_ms", "timed_out", "interrupted", "failed", "truncated", "truncated_by", "total_bytes",
    "killed_by", "usage", "denials", "unchecked", "layers"}'
json "values" "$j" 'v["stdout"] == "out\n" and v["stderr"] == "err\n" and v["exit_code"] == 3 and
    v["signal"] is None and v["failed"] is True and v["timed_out"] is False and
    v["truncated"] is False and v["truncated_by"] is None and v["killed_by"] is None'
json "output holds both" "$j" 'sorted(v["output"].split()) == ["err", "out"]'
json "totals" "$j" 'v["total_bytes"] == {"stdout": 4, "stderr": 4, "output": 8}'
json "usage and layers" "$j" 'set(v["usage"]) == {"cpu_ms", "peak_memory"} and len(v["layers"]) > 0
    and all(set(x) == {"name", "status", "detail"} for x in v["layers"])'
j=$(cs run --json -c 'kill -KILL $$')
is "--json of a signal exits 137" "$?" 137
json "a signal has no exit code" "$j" 'v["exit_code"] is None and v["signal"] == "SIGKILL"'
j=$(cs run --json --timeout 200ms -- sleep 600)
is "--json of a timeout exits 124" "$?" 124
json "a timeout" "$j" 'v["timed_out"] and v["interrupted"] and v["failed"] and v["killed_by"] == "timeout"'
j=$(cs run --json --max-output 10 -c 'printf 0123456789abcdef')
json "head is kept" "$j" 'v["stdout"] == "0123456789" and v["truncated"] and
    v["truncated_by"] == "bytes" and v["total_bytes"]["stdout"] == 16'
j=$(cs run --json --max-output 10 --keep tail -c 'printf 0123456789abcdef')
json "tail is kept" "$j" 'v["stdout"] == "6789abcdef"'
j=$(cs run --json --output-max 10 --keep both -c 'printf 0123456789abcdef')
json "both ends are kept" "$j" 'v["stdout"] == "01234bcdef" and v["gap_at"]["stdout"] == 5'
j=$(cs run --json -c 'printf "a\377b\0c"')
json "bad bytes are repaired" "$j" 'v["stdout"] == "a\ufffdb\0c"'
status "a refusal with --json" 126 cs run --json --allow-command ls -- echo no
json "is an error with its denial" "$out" 'v["error"]["code"] == "denied" and
    v["error"]["denial"]["op"] == "exec" and v["error"]["denial"]["target"] == "echo" and
    v["error"]["denial"]["hint"] and set(v["error"]) >= {"message", "op", "path", "hint"}'
status "a failure with --json" 2 cs run --json --backend nonsense -- true
json "is an error" "$out" 'v["error"]["message"]'
status "what local cannot do is said" 125 cs run --allow example.org -- true
like "by name" "$err" "*local*"

# signals to the program
"$CAISSON" run -c 'echo $$ >pid; sleep 100' &
cli=$!
eventually test -s pid
kill -TERM $cli
wait $cli
is "SIGTERM cancels and exits 143" "$?" 143
holds "the command is gone" gone "$(cat pid)"
rm -f pid
# a background job of a script ignores SIGINT, so it needs its own default first
python3 -c '
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$CAISSON" run -c 'echo $$ >pid; sleep 100' &
cli=$!
eventually test -s pid
kill -INT $cli
wait $cli
is "SIGINT cancels and exits 130" "$?" 130
holds "the command is gone" gone "$(cat pid)"
rm -f pid
"$CAISSON" run -c 'echo $$ >pid; (sleep 101 & echo $! >pid2); sleep 100' &
cli=$!
eventually test -s pid2
kill -KILL $cli
wait $cli 2>/dev/null
holds "kill -9 of the program leaves no process" gone "$(cat pid)" "$(cat pid2)"

# a reader that goes away
rm -f pid
bash -c '"$0" run --timeout none -c "echo \$\$ >pid; exec yes"; echo $? >"$1"' "$CAISSON" "$T/st" |
    head -n 1 >/dev/null
is "a broken pipe ends the program with 141" "$(cat "$T/st")" 141
holds "and the command" gone "$(cat pid)"
(cs run -- echo lost >&-) 2>"$T/e"
is "a closed stdout is a failure" "$?" 125
cs run -- echo x >/dev/full 2>"$T/e"
is "so is a full disk" "$?" 125
is "the program stays quiet about SIGPIPE" "$(cs help 2>&1 | head -n 1 | cut -c1-5)" usage
