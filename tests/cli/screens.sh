#!/bin/bash
# screens.sh [caller|user] [--update]: the first hour of a new user, played in tmux with the program of
# an unpacked archive. Each screen is compared with tests/cli/screens/NAME.txt; --update writes these
# files. With the argument `user` a root caller becomes a user without account first.
#
# ARCHIVE is the archive of `make dist`. Without it one is packed from the build directory BUILD.
# What is awaited is a prompt or a line on the screen, never a time: a screen that does not come is
# ended by the time limit of the runner, and then printed.
# shellcheck disable=SC2016 # expanded by the shell on the screen
here=$(cd "${0%/*}" && pwd)
who=caller update=
for word; do
    case $word in
    caller | user) who=$word ;;
    --update) update=yes ;;
    *) echo "usage: ${0##*/} [caller|user] [--update]" >&2 && exit 2 ;;
    esac
done
command -v tmux >/dev/null || { echo "1..0 # SKIP needs tmux" && exit 0; }

# ---- an archive, for either user ----
if [ -z "${ARCHIVE_READY-}" ]; then
    place=$(mktemp -d /tmp/csn-archive.XXXXXX) && chmod 755 "$place" || exit 1
    trap 'rm -rf "$place"' EXIT
    if [ -n "${ARCHIVE-}" ]; then
        cp "$ARCHIVE" "$place/caisson.tar.gz" || exit 1
    else
        "$here/../../tools/stage" "${BUILD:?set BUILD or ARCHIVE}" "$place/caisson-dev" &&
            tar -C "$place" -cf - caisson-dev | gzip -1 >"$place/caisson.tar.gz" || exit 1
    fi
    drop=()
    if [ "$who" = user ]; then
        [ "$(id -u)" -eq 0 ] || { echo "1..0 # SKIP the caller is an ordinary user already" && exit 0; }
        drop=(setpriv --reuid 65534 --regid 65534 --clear-groups --)
        "${drop[@]}" test -r "$0" || { echo "1..0 # SKIP a user cannot reach the script" && exit 0; }
    fi
    "${drop[@]}" env ARCHIVE_READY="$place/caisson.tar.gz" CAISSON="$place/none" bash "$0" "$who" ${update:+--update}
    exit
fi

# shellcheck source=tests/cli/lib.sh
. "$here/lib.sh"
H=$HOME
export XDG_STATE_HOME=$H/.local/state
mkdir -p "$H/Downloads" "$H/project" "$H/opt"
cp "$ARCHIVE_READY" "$H/Downloads/caisson.tar.gz"
CAISSON=$H/opt/bin/caisson

# ---- the screen ----
screen='' prompts=0 waits='' server=
pane() { tmux -S "$T/tmux" -f /dev/null "$@"; }
seen() { pane capture-pane -p -J -S - -t "$screen" "$@" | sed 's/ *$//'; }
last() { grep . | tail -n 1; }
leave()
{
    local code=$?
    [ -z "$server" ] || kill "$server"
    pane kill-server 2>/dev/null
    (exit "$code")
    finish
}
trap leave EXIT
trap 'fail "$screen: there is no $waits" "$(seen)"; exit 1' TERM INT
# await PATTERN FILTER: until a line has the pattern
await()
{
    until seen | $2 | grep -Eq -- "$1"; do
        pane list-panes -t "$screen" >/dev/null 2>&1 || { fail "$screen: the shell ended before $waits" && exit 1; }
        sleep 0.03
    done
}
see() { waits="line $1" && await "$1" cat; }
# The next prompt, which has its number. It is not always at the start of a line: a program may leave one unfinished.
back() { prompts=$((prompts + ${1-1})) waits="prompt $prompts" && await "(^|[^0-9])$prompts\\\$\$" last; }
say() { key -l -- "$1" && key Enter; }
key() { pane send-keys -t "$screen" "$@"; }
play() # COMMAND...: one after the other
{
    local line
    for line; do say "$line" && back; done
}
begin() # NAME [DIRECTORY]: a new shell
{
    local old=$screen
    screen=$1 prompts=1
    set -- "${2-$H/project}" env -i HOME="$H" PATH="$H/opt/bin:/usr/bin:/bin" LC_ALL=C.UTF-8 TERM=screen SHELL=/bin/bash \
        XDG_RUNTIME_DIR="$XDG_RUNTIME_DIR" XDG_STATE_HOME="$XDG_STATE_HOME" HISTFILE= PS1='\#$ ' bash --norc --noprofile -i
    if [ -z "$old" ]; then
        pane new-session -d -x 120 -y 50 -s s -n "$screen" -c "$@"
    else
        pane new-window -d -n "$screen" -c "$@"
        pane kill-window -t "$old"
    fi
    back 0
}

# What differs from run to run and from host to host: directories, ids, times, ports, findings of doctor.
plain()
{
    sed -E -e "s,$H,/home/me,g; s,$T,/tmp,g; s/\b${port:-none}\b/PORT/g" -e 's/(^|[^0-9])[0-9]+\$( |$)/\1$\2/' \
        -e 's/jail-[0-9a-z]+-[0-9a-z]{8}/jail-ID/g' -e 's/20[0-9]{2}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}(:[0-9]{2})?/YYYY-MM-DD HH:MM/' \
        -e 's/ +[0-9]+\.[0-9]ms / N ms /; s/after [0-9]+ ms/after N ms/; s/ABI [0-9]+:.*/ABI N/' \
        -e '/^((memory|process|cpu) limit|network rules|idmap|overlay) |^ +-> /d'
}
shot() # [-e]: compares what is on the screen; -e: with colours
{
    local file=$here/screens/$screen.txt got
    got=$(seen "$@" | sed 's/\x1b/\\e/g' | plain)
    if [ -n "$update" ]; then
        printf '%s\n' "$got" >"$file" && pass "$screen: written"
    elif [ "$got" = "$(cat "$file" 2>/dev/null)" ]; then
        pass "$screen"
    else
        fail "$screen" "$(diff -u "$file" <(printf '%s\n' "$got"))"
    fi
}

# ---- the first minute ----
begin install "$H"
play 'tar -C opt --strip-components=1 -xzf Downloads/caisson.tar.gz' 'caisson version' 'cd project' \
    "caisson run -c 'id -un; pwd; ls -A ~'" 'caisson run -- false' 'echo $?'
shot
if ! reason=$("$CAISSON" run --backend jail -- true 2>&1); then
    [ "${CSN_MUST_WORK:-0}" != 0 ] && fail "a jail starts" "$reason" && exit 1
    skip "the other screens" "no jail here: ${reason%%$'\n'*}"
    exit 0
fi
unset CAISSON_BACKEND

mkdir -p "$H/data" && echo 1,2 >"$H/data/input.csv"
begin denial
play 'caisson run -- cat ~/data/input.csv' 'caisson run --read ~/data -- cat ~/data/input.csv' \
    'caisson run --read ~/data -- touch ~/data/new' 'caisson run --write ~/data -- touch ~/data/new' 'ls ~/data'
shot

begin network
say "caisson run -c 'curl -s http://files.example.test/; read -r answer; exit 6'"
see '^caisson: run: denied net'
say now
back
play 'caisson run -- getent hosts registry.npmjs.org' 'caisson run -- getent hosts pypi.org'
shot

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
begin loopback
mkdir "$T/site" && echo hello >"$T/site/index.html"
python3 -m http.server --bind 127.0.0.1 --directory "$T/site" "$port" >/dev/null 2>&1 &
server=$!
eventually curl -s "http://127.0.0.1:$port/"
play "caisson run -- curl -sS http://127.0.0.1:$port/" "caisson run --allow 127.0.0.1:$port -- curl -sS http://127.0.0.1:$port/" \
    "caisson run --host-port $port -- curl -sS http://127.0.0.1:$port/"
echo "registry=http://localhost:$port/" >"$H/.npmrc"
play "caisson run --packages npm -- curl -sS http://localhost:$port/"
rm "$H/.npmrc"
shot
kill "$server" && server=

# ---- stdin and terminal ----
begin stdin
play "printf 'b\\na\\n' | caisson run -- sort" 'printf "b\na\n" >names; caisson run -- sort <names' 'echo ignored | caisson run --no-stdin -- wc -c'
shot
begin terminal
say 'caisson run -- python3 -q'
see '^>>>' && say 'print(6*7)' && see '^42$' && key C-d
back
say "caisson run -c 'echo up; exec sleep 1000'"
see '^up$' && key C-c
back
play 'echo $?'
say "caisson run -c 'stty size; until [ \"\$(stty size)\" = \"40 110\" ]; do sleep 0.05; done; stty size'"
see '^50 120$' && pane resize-window -t "$screen" -x 110 -y 40
back
pane resize-window -t "$screen" -x 120 -y 50
shot
begin colours
play 'caisson run -- ls --color=auto -d .' 'caisson run -T -- ls --color=auto -d .'
shot -e
begin shell
say 'caisson shell'
see '\$$' && say 'echo inside >made; pwd; exit 3'
back
play 'echo $?; cat made'
shot

# ---- work ----
printf '[user]\n\tname = Me\n\temail = me@example.test\n[init]\n\tdefaultBranch = main\n' >"$H/.gitconfig"
mkdir -p "$H/repo/src"
begin git "$H/repo/src"
play 'git init -q ..' 'echo "int main;" >main.c' 'caisson run -- git status' "caisson run --workspace auto -c 'git add . && git commit -qm first'" \
    "git log --format='%an <%ae>: %s'"
shot
mkdir -p "$H/.ssh" "$H/.aws" && echo secret | tee "$H/.ssh/id_ed25519" >"$H/.aws/credentials" && chmod -R go= "$H/.ssh" "$H/.aws"
begin keys "$H"
play 'caisson run -- cat .ssh/id_ed25519 .aws/credentials' 'caisson run --read ~/.ssh -- cat .ssh/id_ed25519'
shot
mkdir -p "$H/.nvm/versions/node/v20.1.0/bin" "$H/bin"
printf '#!/bin/sh\necho v20.1.0\n' | tee "$H/.nvm/versions/node/v20.1.0/bin/node" >"$H/bin/git"
chmod 755 "$H/.nvm/versions/node/v20.1.0/bin/node" "$H/bin/git"
begin versions
play 'PATH=~/.nvm/versions/node/v20.1.0/bin:$PATH' 'node' 'caisson run -- node' 'PATH=~/bin:$PATH' 'caisson run -- git --version | cut -c 1-11'
shot
begin aside
play "caisson run -c 'mkdir .vscode; echo {} >.vscode/tasks.json; echo ok >notes'" 'ls -A' 'caisson aside' 'caisson aside restore .vscode/tasks.json --yes' \
    "caisson run -c 'git init -q new; echo true >new/.git/hooks/pre-commit; echo true >new/.git/hooks/pre-push'" 'caisson aside' 'caisson aside clear --yes' 'caisson aside'
shot
begin log
play "caisson run -- cat /etc/shadow" 'caisson log' "caisson log --json | wc -l"
shot
begin sandbox
play 'caisson create --name work' 'caisson exec work -d -- sleep 1000' 'caisson list' 'caisson ps' 'caisson log work' 'caisson destroy work' 'caisson list' 'caisson ps' 'caisson destroy work'
shot
begin help
play 'caisson' 'echo $?' 'caisson help | head -n 5'
shot
begin typo
play 'caisson rnu -- true' 'echo $?' 'caisson run --workspce . -- true' 'caisson run --keep hed -- true' 'caisson run --timeout 5x -- true' 'caisson run --packages nmp -- true' \
    'caisson run' 'caisson run --read ~/nothing -- true' 'caisson run -- maek test' 'echo $?' 'caisson run --backend docke -- true' 'caisson exec wrkk -- true' 'echo $?'
shot

# ---- a project ----
mkdir "$H/app" && echo '{"name": "app"}' >"$H/app/package.json" && echo SECRET=1 >"$H/app/.env"
begin project "$H/app"
play 'caisson init' 'cat caisson.json' 'caisson run -- cat .env' 'caisson trust --list'
shot
mkdir "$H/cloned" && echo '{"read": ["../data"], "deny": ["**/*.key"], "profiles": {"test": {"timeout": "5m"}}}' >"$H/cloned/caisson.json"
begin trust "$H/cloned"
play 'caisson run -- cat ../data/input.csv'
say 'caisson trust'
see '\?.*$' && say y
back
play 'caisson run --profile test -- cat ../data/input.csv' 'caisson run --profile tset -- true' 'caisson untrust' 'caisson run -- true'
shot
begin ask "$H/project"
say 'caisson run --ask -- cat ~/data/input.csv'
see '\[N\]:$' && say o
back
say 'caisson run --ask -- cat ~/data/input.csv'
see '\[N\]:$' && say p
back
play 'cat caisson.json' 'caisson run -- cat ~/data/input.csv' 'caisson run --ask-file grants.json --no-project -- cat ~/data/input.csv' 'cat grants.json'
shot
begin import
printf '{"network": {"allowedDomains": ["example.test"], "deniedDomains": []}, "filesystem": {"denyRead": ["~/.ssh"], "allowWrite": ["."], "denyWrite": []}, "ignoreViolations": {"*": []}}\n' >"$H/project/srt.json"
play 'caisson policy import srt srt.json >mine.json' 'cat mine.json' 'caisson policy check mine.json'
shot
begin doctor
play 'caisson doctor'
shot
mkdir "$H/fresh"
begin cleanup
play 'caisson create --name old --workspace ~/fresh' 'caisson exec old -c "echo x >file; ls"' 'caisson cleanup old </dev/null' 'caisson cleanup old --force' 'ls -A ~/fresh' 'caisson destroy old' 'caisson destroy old'
shot
