#!/bin/bash
# followed.sh: a hint that was printed works when it is followed.
#
# Each case is a call that fails. Its hint adds an option ("--read DIR"), replaces one
# ("--deny-missing-ok denies ...") or removes one ("leave out --deny X"). The call is repeated as
# the hint says, until it succeeds or three hints did not help.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export CAISSON_BACKEND=jail
mkdir -p "$T/data" "$T/out" "$T/proj/.git/hooks" "$T/bin dir"
echo content >"$T/data/file"
echo secret >"$T/proj/.env"
printf '[core]\n' >"$T/proj/.git/config"
printf '#!/bin/sh\necho ran\n' >"$T/bin dir/tool" && chmod 755 "$T/bin dir/tool"

# Prints the arguments after the subcommand, changed as the hint in the text says, one a line.
apply_hint() # TEXT ARGUMENTS...
{
    python3 - "$@" <<'EOF'
import re, shlex, sys
text, args = sys.argv[1], sys.argv[2:]
end = args.index("--") if "--" in args else len(args)
m = (re.search(r"hint: (leave out )?(--[a-z-]+.*)", text) or
     re.search(r"denied .*?(?:; |: )(leave out )?(--[a-z-]+.*)", text))
if not m:
    sys.exit("no hint")
words = shlex.split(re.split(r" \(|;|, or ", m[2])[0])
option = words[0]
if m[1]:
    at = args.index(option)
    del args[at:at + 2]
elif option == "--deny-missing-ok":
    args[args.index("--deny")] = option
elif option in ("--force", "--create-workspace"):
    args.insert(end, option)
else:
    args[end:end] = words[:2]
print("\n".join(args))
EOF
}

# follows NAME SUBCOMMAND ARGUMENTS... [-- COMMAND...]
follows()
{
    local name=$1 verb=$2 text hints=0
    local -a args
    shift 2
    args=("$@")
    while ! "$CAISSON" "$verb" "${args[@]}" >"$T/.out" 2>"$T/.err" </dev/null; do
        text=$(grep -v '^touch\|^cat\|^ls\|^sh' "$T/.err")
        if [ $((++hints)) -gt 3 ] || ! text=$(apply_hint "$text" "${args[@]}" 2>&1); then
            fail "$name: the hint works" "caisson $verb ${args[*]}" "$(cat "$T/.err")"
            return
        fi
        mapfile -t args <<<"$text"
    done
    if [ $hints -eq 0 ]; then fail "$name: fails at first"; else pass "$name: the hint works"; fi
}

run() { local name=$1; shift; follows "$name" run --workspace "$T/proj" "$@"; }

run 'a file that is not granted' -- cat "$T/data/file"
run 'a directory that is not granted' -- ls "$T/data"
run 'a directory that is read-only' --read "$T/out" -- touch "$T/out/f"
run 'a file outside that would be made' -- touch "$T/out/g"
run 'a protected file' -- sh -c 'echo "[x]" >>.git/config'
run 'a denied file' --deny .env -- cat .env
run 'a denied file and a command' --deny .env --allow-command ls -- cat .env
run 'a command that is not listed' --allow-command ls -- true
run 'a denial of a path that is missing' --deny no-such-file -- true
run 'a program that is not granted' -- "$T/bin dir/tool"
follows 'a workspace that is missing' run --workspace "$T/made" -- touch f
cd /etc || exit 1
status 'a system directory is no default workspace' 125 cs run -- true
like 'and says how to name it' "$err" "*--workspace DIR ('.' for this one)"
status 'which works' 0 cs run --workspace . -- true
cd "$T" || exit 1
id=$(cs create --workspace "$T/proj") || exit 1
follows 'cleanup of a directory that existed' cleanup "$id"
cs destroy "$id"
