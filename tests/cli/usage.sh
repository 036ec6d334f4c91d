#!/bin/bash
# Wrong command lines are found before anything is touched, named, and exit 2; help and
# completion come from the same tables.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

status "no command is wrong usage" 2 cs
like "and shows the overview" "$err" "*usage: caisson COMMAND*run*exec*create*"
status "help is not an error" 0 cs help
missing=
for c in $(cs completion words); do grep -q "^  $c  *[a-z]" <<<"$out" || missing="$missing $c"; done
is "help lists every command" "$missing" ""
like "by task" "$out" "*Run something:*  run *Sandboxes that stay:*  create *Files:*  read *Processes:*  ps *Network:*  net *Policy*:*  policy *Servers:*  mcp *"
status "--help does the same" 0 cs --help
status "version" 0 cs version
like "version names itself" "$out" "caisson [0-9]*"
status "--version" 0 cs --version
json "version --json" "$(cs version --json)" 'v["version"][0].isdigit()'

status "an unknown command" 2 cs frobnicate
like "is named" "$err" "caisson: unknown command 'frobnicate'*hint:*"
status "a slip in a command" 2 cs craete
like "is corrected" "$err" "*did you mean create?"

status "an unknown option" 2 cs run --tiemout 3s -- true
like "is named and corrected" "$err" "caisson: run: unknown option '--tiemout'*hint: did you mean --timeout?"
status "an option without its value" 2 cs run --timeout
like "says what is missing" "$err" "*--timeout needs a value: DURATION*"
status "a bad duration" 2 cs run --timeout soon -- true
like "is quoted" "$err" "*'soon'*"
status "a bad size" 2 cs run --memory lots -- true
status "a zero size" 2 cs run --memory 0 -- true
status "a bad number of cpus" 2 cs run --cpus 1.x -- true
status "a bad choice" 2 cs exec x --keep middle -c true
like "names the choices" "$err" "*head|tail|both*"
status "a value for a flag" 2 cs run --merge=yes -- true
status "an unknown letter" 2 cs ls x -z
status "a missing argument" 2 cs read x
like "is named" "$err" "*missing argument PATH*"
status "an extra argument" 2 cs ls a b c
like "is named" "$err" "*unexpected argument 'c'*"
status "a command without --" 2 cs exec x ls
like "gets a hint" "$err" "*after --*"
status "no command at all" 2 cs run
status "an empty command after --" 2 cs run --
status "-c and -- together" 2 cs run -c true -- true
status "an empty id" 2 cs exec "" -c true
status "--session needs -c" 2 cs exec x --session s -- true
status "--restart needs --session" 2 cs exec x --restart -c true
status "-d and -t" 2 cs exec x -d -t -c true
status "-t and --json" 2 cs exec x -t --json -c true
status "run -d" 2 cs run -d -c true
status "write needs a path" 2 cs write x
status "create-only and append" 2 cs write x y --create-only --append
status "edit without NEW" 2 cs edit x y old
status "edit with OLD and --edits" 2 cs edit x y old new --edits f
status "kill with a bad signal" 2 cs kill x 1 NOSUCH
status "kill with a bad pid" 2 cs kill x abc
status "wait for nothing" 2 cs wait x
status "wait for both" 2 cs wait x --port 1 --log y
status "wait for an impossible port" 2 cs wait x --port 70000
status "why with a bad operation" 2 cs why x fly /
status "extend without a duration" 2 cs extend x never
status "policy needs check" 2 cs policy explain f
status "a control byte in an option" 2 cs ls $'--\e[2J'
like "is escaped" "$err" "*\\x1b*"

status "wrong usage with --json" 2 cs read --json --nope
json "is JSON on stdout" "$out" 'v["error"]["code"] == "invalid" and v["error"]["op"] == "read"
    and "--nope" in v["error"]["message"] and v["error"]["path"] is None'
like "and a line on stderr" "$err" "caisson: read: unknown option '--nope'*"

for c in $(cs completion words); do
    status "help $c" 0 cs help "$c"
    like "$c: usage, examples or a reason" "$out" "usage: caisson $c*"
    status "$c --help" 0 cs "$c" --help
    is "help goes to stdout only" "$err" ""
done

# every option in help is in the manual, so that neither lags behind the other
if [ -n "${MANPAGE:-}" ] && command -v mandoc >/dev/null; then
    man=$(mandoc -T ascii "$MANPAGE" | col -b)
    missing=
    for c in $(cs completion words); do
        for o in $(cs completion words "$c"); do
            grep -q -e "$o" <<<"$man" || missing="$missing $c:$o"
        done
        grep -q -w -e "$c" <<<"$man" || missing="$missing $c"
    done
    is "the manual names every command and option" "$missing" ""
    is "the manual is clean" "$(mandoc -T lint -W warning "$MANPAGE")" ""
else
    skip "the manual names every command and option" "no mandoc"
fi

status "completion bash" 0 cs completion bash
is "the script parses" "$(cs completion bash | bash -n 2>&1)" ""
comp=$(
    PATH=${CAISSON%/*}:$PATH
    # shellcheck disable=SC1090
    . <(cs completion bash)
    COMP_WORDS=("$CAISSON" exe) COMP_CWORD=1
    _caisson
    printf '%s,' "${COMPREPLY[@]}"
    COMP_WORDS=("$CAISSON" grep x --ignore) COMP_CWORD=3
    _caisson
    printf '%s,' "${COMPREPLY[@]}"
)
is "it completes commands and options" "$comp" "exec,--ignore-case,"
status "an unknown shell" 2 cs completion tcsh
