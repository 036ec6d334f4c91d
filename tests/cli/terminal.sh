#!/bin/bash
# terminal: run, exec and shell as a person uses them: time limits, standard input, terminals.
# shellcheck disable=SC2016 # the sandbox's shell expands these, not ours
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"
cd "$T/ws" || exit 1

# ---- time limits: the first command runs beside all others and is waited for at the end
cs run -c 'sleep 31; exit 7' &
unlimited=$!
mkdir -p "$XDG_CONFIG_HOME/caisson"
echo '{"timeout": "300ms"}' >"$XDG_CONFIG_HOME/caisson/config.json"
status "a timeout of the configuration file holds for run" 124 cs run -- sleep 600
status "--timeout none overrides it" 0 cs run --timeout none -- sleep 0.5
rm "$XDG_CONFIG_HOME/caisson/config.json"
echo '{"timeout": "300ms"}' >policy.json
status "so does one of a policy file" 124 cs run --policy policy.json -- sleep 600

wait "$unlimited"
is "run has no time limit of its own" "$?" 7
