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
is "all of them" "$(reply list -)" "--quiet --tree --forget --json --help "
is "choices" "$(reply run --keep "")" "head tail both "
is "of net" "$(reply run --net a)" "all "
is "backends" "$(reply create --backend d)" "dagger docker "
is "package managers are those that the library knows" "$(reply run --packages "")" \
    "$(cs run --packages nonsense -- true 2>&1 | sed -n 's/^hint: known package managers: //p' | tr -d ,) "
is "of a command" "$(reply exec x --package-manager gem)" "gem "
is "a value that is a file" "$(reply run --policy "")" ""
is "words of policy" "$(reply policy "")" "agent check import schema "
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
touch some.json
ln -s "$T/bin/caisson" "$HOME/caisson"
# line:completed, in every shell; a program may be named by a path below ~
# shellcheck disable=SC2088 # the shells expand it
lines=("caisson pa:caisson pause" "caisson run --keep t:caisson run --keep tail" "caisson run --keep=t:caisson run --keep=tail"
    "caisson run --policy so:caisson run --policy some.json" "caisson run --policy=so:caisson run --policy=some.json"
    "caisson run -- ls so:caisson run -- ls some.json" "caisson run -- some-pro:caisson run -- some-program"
    "~/caisson run --works:~/caisson run --workspace")
printf '#!/bin/sh\n' >bin/some-program && chmod 755 bin/some-program
if command -v zsh >/dev/null; then
    mkdir zsh && cs completion zsh >zsh/_caisson
    is "zsh: the script parses" "$(zsh -fn zsh/_caisson 2>&1)" ""
    # An interactive zsh on a terminal, in which the key TAB completes, prints the line, and empties it.
    cat >drive.zsh <<'Z'
zmodload zsh/zpty
zpty -b z zsh -f -i
zpty -w z "PS1=; fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D; zle -N tab; bindkey '^I' tab
    tab() { zle complete-word; print -r -- \"<\$BUFFER>\"; zle kill-whole-line }; print RE''ADY"
zpty -r z seen '*READY*'
zpty -w -n z "$2"$'\t'
zpty -r z seen '*<*>*'
print -r -- "${${seen##*<}%>*}"
Z
    for line in "${lines[@]}"; do
        is "zsh: ${line%:*}" "$(zsh -f drive.zsh "$T/zsh" "${line%:*}")" "${line#*:} "
    done
else
    skip "zsh completes" "no zsh on this host"
fi
if command -v fish >/dev/null; then
    cs completion fish >caisson.fish
    is "fish: the script parses" "$(fish -n caisson.fish 2>&1)" ""
    for line in "${lines[@]}"; do
        is "fish: ${line%:*}" "$(fish -N -c "source caisson.fish; complete -C '${line%:*}'" | cut -f 1)" "${line##*[: ]}"
    done
    is "fish: descriptions" "$(fish -N -c 'source caisson.fish; complete -C "caisson pa"')" $'pause\tsuspend a sandbox'
    is "fish: of a program that is gone" "$(fish -N -c 'source caisson.fish; complete -C "./gone/caisson ru"' 2>&1)" ""
else
    skip "fish completes" "no fish on this host"
fi
