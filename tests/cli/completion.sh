#!/bin/bash
# Completion: what `completion reply` says may follow, and the scripts of zsh and fish in these
# shells, where they are installed. usage.sh tests bash.
top=$(cd "${0%/*}/../.." && pwd)
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

# reply WORD...: the words that may stand for the last one
reply() { cs completion reply -- "$@" | cut -f 1 | tr '\n' ' '; }

is "every command" "$(cs completion reply -- "" | cut -f 1)" "$(cs completion words)"
is "with its description" "$(cs completion reply -- vers)" $'version\tprint the version'
is "commands that begin with" "$(reply pa)" "pause "
is "options" "$(reply run --works)" "--workspace "
is "options with their help" "$(cs completion reply -- ls x --no)" $'--nofollow\trefuse symlinks in the path'
is "all of them" "$(reply list -)" "--quiet --json --help "
is "choices" "$(reply run --keep "")" "head tail both "
is "of net" "$(reply run --net a)" "all "
is "backends" "$(reply create --backend d)" "dagger docker "
is "package managers are those that the library knows" "$(reply run --packages "")" \
    "$(cs run --packages nonsense -- true 2>&1 | sed -n 's/^hint: known package managers: //p' | tr -d ,) "
is "of a command" "$(reply exec x --package-manager gem)" "gem "
is "a value that is a file" "$(reply run --policy "")" ""
is "words of policy" "$(reply policy "")" "check import schema "
is "words of aside" "$(reply aside r)" "restore "
is "shells" "$(reply completion "")" "bash zsh fish "
is "operations of why" "$(reply why x "")" "read write delete exec net "
is "commands for help" "$(reply help ver)" "version "
is "nothing after --" "$(reply run -- l)" ""
is "nothing for an unknown command" "$(reply nonsense "")" ""
id=$(cs create --workspace ws --name works)
is "sandboxes by id and name" "$(reply exec "")" "$id works "
is "after an option with a value" "$(reply ps --json wo)" "works "
is "once" "$(reply read works "")" ""
is "several where several may be given" "$(reply destroy works wo)" "works "
is "not for run" "$(reply run wo)" ""
cs destroy works
is "none" "$(reply exec "")" ""

# The scripts name the program as the user typed it.
mkdir bin && ln -s "$CAISSON" bin/caisson
[ -e "${CAISSON%/*}/caisson-full" ] && ln -s "${CAISSON%/*}/caisson-full" bin/caisson-full
export PATH=$T/bin:$PATH
for shell in zsh fish; do
    status "completion $shell" 0 cs completion $shell
    is "prints the file" "$out" "$(cat "$top/completions/caisson.$shell")"
done
if command -v zsh >/dev/null; then
    cs completion zsh >_caisson
    is "zsh: the script parses" "$(zsh -fn _caisson 2>&1)" ""
    # the functions of zsh that the script calls print what they get
    cat >drive.zsh <<'Z'
compdef() { print -r -- "compdef $*"; }
_describe() { print -rl -- "${(@P)2}"; }
_files() { print files; }
source ./_caisson
words=(caisson pa) CURRENT=2
_caisson
words=(caisson run --keep "") CURRENT=4
_caisson
words=(caisson run --policy "") CURRENT=4
_caisson
Z
    is "zsh: it completes" "$(zsh -f drive.zsh 2>&1)" "compdef _caisson caisson
pause:suspend a sandbox
head:keep
tail:keep
both:keep
files"
else
    skip "zsh completes" "no zsh on this host"
fi
if command -v fish >/dev/null; then
    cs completion fish >caisson.fish
    is "fish: the script parses" "$(fish -n caisson.fish 2>&1)" ""
    touch some.json
    is "fish: it completes commands" "$(fish -N -c 'source caisson.fish; complete -C "caisson pa"')" $'pause\tsuspend a sandbox'
    is "fish: it completes values" "$(fish -N -c 'source caisson.fish; complete -C "caisson run --keep t"' | cut -f 1)" tail
    like "fish: it completes files" "$(fish -N -c 'source caisson.fish; complete -C "caisson run --policy some"')" "some.json*"
else
    skip "fish completes" "no fish on this host"
fi
