#!/bin/bash
# The small program runs some command lines itself and passes the others to caisson-full: each
# means the same in both.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

full=${CAISSON}-full
if [ ! -x "$full" ]; then
    skip "both programs" "this build has one"
    exit 0
fi

# same NAME ARGUMENTS...: status, output and errors of both
same()
{
    local name=$1 a b
    shift
    a=$("$CAISSON" "$@" 2>&1 <"$T/in"; echo "status $?")
    b=$("$full" "$@" 2>&1 <"$T/in"; echo "status $?")
    is "$name" "$a" "$b"
}

: >"$T/in"
same "no command"
same "help" help
same "a command that does not exist" frobnicate
same "an empty command" ""
same "a command with a typing error" craete
same "the help of a command" run --help
same "wrong usage" run --tiemout 3 -- true
same "wrong usage, as JSON" exec --json
same "a sandbox that does not exist" exec jail-1-x -- true
same "a name that does not exist" exec nobody -- true
same "an errno in words" run --workspace /proc/nothing -- true
same "an exit status" run -- sh -c 'exit 7'
same "a signal" run -- sh -c 'kill -TERM $$'
same "output and errors" run -c 'echo out; echo err >&2'
same "a policy that does not exist" run --policy "$T/none.json" -- true
same "an option behind --" run -- echo --policy

echo '{"commands":["true"]}' >"$T/in"
same "a policy from standard input" run --policy - -- ls
status "which is read once" 126 sh -c '"$1" run --policy - -- ls <"$2"' _ "$CAISSON" "$T/in"
echo words >"$T/in"
same "standard input" run --stdin -- cat

id=$(new)
same "exec by id" exec "$id" -- echo inside
same "exec by id, with options" exec "$id" --timeout 5s -c 'echo inside; exit 3'
same "options before the id" exec --timeout 5s "$id" -- echo inside
named=$(new --name "jail-box")
same "exec by a name that looks like an id" exec jail-box -- echo named
is "and that is the sandbox meant" "$("$CAISSON" exec jail-box -c 'echo "$?"')" 0
"$CAISSON" destroy "$named" >/dev/null

# Remote backends, by each of the ways to name one: refused alike, since none is set up.
unset E2B_API_KEY
same "a remote backend" run --backend e2b -- true
same "the same in one word" run --backend=e2b -- true
CAISSON_BACKEND=e2b same "named by the environment" run -- true
VERCEL=1 CAISSON_BACKEND='' same "inside Vercel" run -- true
mkdir -p "$XDG_CONFIG_HOME/caisson"
echo '{"backend":"e2b"}' >"$XDG_CONFIG_HOME/caisson/config.json"
CAISSON_BACKEND='' same "named by a configuration" run -- true
echo '{"backend":' >"$XDG_CONFIG_HOME/caisson/config.json"
same "a configuration that is wrong" run -- true
echo '{"env":["FROM=config"]}' >"$XDG_CONFIG_HOME/caisson/config.json"
same "a configuration with something else" run -c 'echo $FROM'
is "which is used" "$("$CAISSON" run -c 'echo $FROM')" config
rm "$XDG_CONFIG_HOME/caisson/config.json"

# Without HOME the user is looked up, as the C library of the system does it.
home() { env -u HOME "$@" run --workspace "$T/ws" -- sh -c 'pwd'; }
is "without HOME" "$(home "$CAISSON" 2>&1)" "$(home "$full" 2>&1)"

# caisson-full is found next to the program, whatever its name and the caller.
ln -s "$CAISSON" "$T/link"
is "by a link" "$("$T/link" version)" "$("$full" version)"
is "by another name" "$(exec -a other "$CAISSON" version)" "$("$full" version)"
is "with a closed standard input" "$("$CAISSON" version <&-)" "$("$full" version)"
mkdir "$T/alone"
cp "$CAISSON" "$T/alone/caisson"
cp "${CAISSON%/*}/caisson-keeper" "$T/alone/"
is "run does not need it" "$("$T/alone/caisson" run -- echo here)" here
is "nor does exec" "$("$T/alone/caisson" exec "$id" -- echo here)" here
if "$T/alone/caisson" version >/dev/null 2>&1; then
    skip "without the other program" "one is installed"
else
    status "without the other program" 1 "$T/alone/caisson" version
    like "it says what is missing" "$err" "caisson: cannot run caisson-full: No such file*"
    like "and what to do" "$err" "*link to it instead of copying it*"
fi
# A program whose loader is missing: the kernel says the same as for one that is not there.
printf '#!/nowhere/ld.so\n' >"$T/alone/caisson-full" && chmod 755 "$T/alone/caisson-full"
status "with a program that this system cannot load" 1 "$T/alone/caisson" version
like "it says what is missing" "$err" "caisson: cannot run caisson-full: *needs the GNU C library*"
rm "$T/alone/caisson-full"
