#!/bin/bash
# Programs that a version manager put into the home: the one that PATH leads to runs inside too.
# shellcheck disable=SC2016 # expanded inside
# shellcheck source=tests/escape/lib.sh
. "${0%/*}/../escape/lib.sh"

# script FILE TEXT: a program that prints the text and its own path
script() { mkdir -p "$(dirname "$1")" && printf '#!/bin/sh\necho "%s $0"\n' "$2" >"$1" && chmod 755 "$1"; }
unset NVM_DIR PYENV_ROOT CARGO_HOME RUSTUP_HOME
H=$HOME W=$T/project
mkdir -p "$W" && cd "$W" || exit 1
script "$H/.nvm/versions/node/v20/bin/node" v20 && script "$H/.nvm/versions/node/v18/bin/node" v18
script "$H/bin/true" own && script "$H/bin/lonely" own && script "$H/.local/bin/mine" mine
mkdir -p "$H/.cargo/bin" "$H/.rustup/toolchains" "$H/.pyenv/shims" "$H/.pyenv/versions/3.12/bin"
printf '#!/bin/sh\ncat "$RUSTUP_HOME/settings" "$0"\n#%s\n' end >"$H/.cargo/bin/rustup" && chmod 755 "$H/.cargo/bin/rustup"
ln -s rustup "$H/.cargo/bin/cargo" && echo settings >"$H/.rustup/settings" && echo token >"$H/.cargo/credentials.toml"
script "$H/.pyenv/versions/3.12/bin/python" 3.12
printf '#!/bin/sh\nexec "%s/.pyenv/versions/3.12/bin/python" "$@"\n' "$H" >"$H/.pyenv/shims/python" && chmod 755 "$H/.pyenv/shims/python"
mkdir -p "$W/.venv/bin" && ln -s "$H/.pyenv/versions/3.12/bin/python" "$W/.venv/bin/python"
mkdir -p "$H/.local/share/uv/tools/t/bin" && script "$H/.local/share/uv/tools/t/bin/tool" tool
ln -s "$H/.local/share/uv/tools/t/bin/tool" "$H/.local/bin/tool" && mkdir "$H/.local/share/uv/credentials" && echo token >"$H/.local/share/uv/credentials/x"
sys=/usr/local/bin:/usr/bin:/bin
with() # PATH ARGUMENTS...: caisson run with that PATH
{
    local path=$1
    shift
    PATH=$path "$CAISSON" run "$@"
}

is "nvm: the version that PATH names" "$(with "$H/.nvm/versions/node/v20/bin:$sys" -- node 2>&1)" "v20 $H/.nvm/versions/node/v20/bin/node"
is "nvm: no other version" "$(with "$H/.nvm/versions/node/v20/bin:$sys" -c "node; ls $H/.nvm/versions/node" 2>&1)" "v20 $H/.nvm/versions/node/v20/bin/node"$'\n'v20
is "nvm: what it is in can only be read" "$(with "$H/.nvm/versions/node/v20/bin:$sys" -c "touch $H/.nvm/versions/node/v20/x || echo no" 2>/dev/null)" no
is "pyenv: a shim" "$(with "$H/.pyenv/shims:$sys" -- python 2>&1)" "3.12 $H/.pyenv/versions/3.12/bin/python"
is "a virtual environment of it" "$(with "$W/.venv/bin:$sys" -- python 2>&1)" "3.12 $W/.venv/bin/python"
is "rustup: its toolchains are found" "$(with "$H/.cargo/bin:$sys" -- cargo 2>&1 | head -n 1)" settings
is "cargo's token is not shown" "$(with "$H/.cargo/bin:$sys" -c "cat $H/.cargo/credentials.toml" 2>/dev/null)" ""
is "a link out of .local/bin" "$(with "$H/.local/bin:$sys" -- tool 2>&1)" "tool $H/.local/bin/tool"
is "without the tokens beside what it leads to" "$(with "$H/.local/bin:$H/.local/share/uv/tools/t/bin:$sys" -c "tool >/dev/null; cat $H/.local/share/uv/credentials/x" 2>/dev/null)" ""
is "a program in .local/bin" "$(with "$H/.local/bin:$sys" -- mine 2>&1)" "mine $H/.local/bin/mine"
is "a shell sees the directories of managers" "$(with "$H/.pyenv/shims:$H/.local/bin:$sys" -c 'python; echo "$PATH"' 2>&1)" \
    "3.12 $H/.pyenv/versions/3.12/bin/python"$'\n'"$H/.pyenv/shims:$sys"
is "so does make" "$(printf 'all:\n\t@python\n' >Makefile; with "$H/.pyenv/shims:$sys" -- make -s 2>&1)" "3.12 $H/.pyenv/versions/3.12/bin/python"
is "and a script of the project" "$(printf '#!/usr/bin/env python\n' >s.py; chmod 755 s.py; with "$H/.pyenv/shims:$sys" -- ./s.py 2>&1)" "3.12 $H/.pyenv/versions/3.12/bin/python"
is "a link that a command made leads to no program of the user's" \
    "$(ln -s "$H/.local/bin/mine" "$W/.venv/bin/evil"; with "$W/.venv/bin:$sys" -- evil 2>/dev/null; with "$W/.venv/bin:$sys" -c "ls $H/.local/bin" 2>/dev/null)" ""
is "a command of the system needs none" "$(with "$H/.nvm/versions/node/v20/bin:$H/.pyenv/shims:$sys" -- ls "$H" 2>/dev/null)" ""
is "a variable names the directory" "$(mv "$H/.pyenv" "$H/py"; PYENV_ROOT=$H/py with "$H/py/versions/3.12/bin:$sys" -c 'python; echo "$PYENV_ROOT"' 2>&1; mv "$H/py" "$H/.pyenv")" \
    "3.12 $H/py/versions/3.12/bin/python"$'\n'"$H/py"
status "one that is not below the home is not shared" 2 env PYENV_ROOT="$OUT" PATH="$OUT:$sys" "$CAISSON" run -- ls "$OUT"

status "a program that the sandbox does not have, and another of its name" 0 with "$H/bin:$sys" -- true
is "one line says which one runs" "$err" "caisson: run: true: /usr/bin/true runs inside, not $H/bin/true; --read $H/bin shows that one"
is "the option works" "$(with "$H/bin:$sys" --read "$H/bin" -- true 2>&1)" "own $H/bin/true"
status "without another it is not found" 127 with "$H/bin:$sys" -- lonely
like "with the option that shows it" "$err" "caisson: run: lonely: the sandbox does not show $H/bin/lonely; --read $H/bin does"$'\n'"*"
is "--env PATH decides" "$(with "$H/.nvm/versions/node/v20/bin:$sys" --env "PATH=$H/.nvm/versions/node/v18/bin:$sys" -- node 2>&1)" "v18 $H/.nvm/versions/node/v18/bin/node"
status "and leaves all of it out" 127 with "$H/.nvm/versions/node/v20/bin:$sys" --env "PATH=$OUT" -- node
is "a workspace that has it stays writable" "$(cd "$H" && with "$H/.nvm/versions/node/v20/bin:$sys" -c 'node >/dev/null && touch .nvm/versions/node/v20/x && echo yes' 2>/dev/null)" yes
id=$(PATH=$H/.pyenv/shims:$sys cs create --workspace "$W")
is "a sandbox that stays has them" "$(PATH=$H/.pyenv/shims:$sys cs exec "$id" -- python 2>&1)" "3.12 $H/.pyenv/versions/3.12/bin/python"
cs destroy "$id"
is "local is as before" "$(PATH=$H/bin:$sys cs run --backend local --workspace "$W" -- true 2>&1)" "own $H/bin/true"
