#!/bin/bash
# Ordinary programs that fail in a jail, each with the one line that says why: a table of programs, commands
# and lines. With the argument `user` a root caller becomes a user without account first.
# shellcheck disable=SC2016 # expanded inside
# shellcheck source=tests/escape/lib.sh
. "${0%/*}/../escape/lib.sh"
PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin

head -c 4M /dev/urandom >"$WS/big"
tar cf "$WS/big.tar" big
mkdir "$WS/pkg" && head -c 4M /dev/urandom >"$WS/pkg/data"
echo '{"name": "pkg", "version": "1.0.0"}' >"$WS/pkg/package.json"

# hint NAME PROGRAM WHAT WANT RUN-WORDS...: runs it, expects WANT as the notes of caisson about it
hint()
{
    local name=$1 program=$2 want=$3 got
    shift 3
    command -v "$program" >/dev/null || { skip "$name" "there is no $program here" && return; }
    got=$("${IN[@]}" "$@" 2>&1 >/dev/null </dev/null | grep -a '^caisson: run: ' | sed 's/^caisson: run: //')
    is "$name" "$got" "$want"
}

# ---- a full disk ----
disk='disk limit 1M; to allow more: --disk 2M'
small=(--disk 1M)
hint "dd" dd "$disk" "${small[@]}" -- dd if=big of=/tmp/x bs=64k
hint "tar" tar "$disk" "${small[@]}" -- tar xf big.tar -C /tmp
hint "tar and a pipe" tar "$disk" "${small[@]}" -c 'cat big.tar | tar x -C /tmp'
hint "cp" cp "$disk" "${small[@]}" -- cp big /tmp/
hint "cp of a directory" cp "$disk" "${small[@]}" -- cp -r pkg /tmp/
hint "a redirection" cat "$disk" "${small[@]}" -c 'cat big >/tmp/x'
hint "git" git "$disk" "${small[@]}" -c 'git init -q /tmp/r && git --git-dir=/tmp/r/.git --work-tree=. add big'
hint "python" python3 "$disk" "${small[@]}" -- /usr/bin/python3 -c 'open("/tmp/x", "wb").write(bytes(4000000))'
hint "npm" npm "$disk" "${small[@]}" -- npm pack --offline --no-update-notifier --pack-destination /tmp ./pkg
if /usr/bin/python3 -m pip --version >/dev/null 2>&1; then
    (cd "$WS" && /usr/bin/python3 - <<'END'
import zipfile
with zipfile.ZipFile("big-1.0-py3-none-any.whl", "w") as z:
    z.write("big", "big/blob")
    z.writestr("big-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: big\nVersion: 1.0\n")
    z.writestr("big-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    z.writestr("big-1.0.dist-info/RECORD", "")
END
    )
    hint "pip" python3 "$disk" "${small[@]}" -- /usr/bin/python3 -m pip install --no-index --target /tmp/t ./big-1.0-py3-none-any.whl
else
    skip "pip" "there is no pip here"
fi
hint "what fits has no line" tar "" --disk 64M -- tar xf big.tar -C /tmp

# ---- what a sandbox does not have ----
setuid='a set-uid program gets no rights in a sandbox; run what needs another user outside'
hint "sudo" sudo "denied exec 'sudo'; $setuid" -- sudo -n true
hint "su" su "denied exec 'su'; $setuid" -- su -c true
hint "ping" ping "denied syscall 'socket'; the sandbox has no raw sockets; test a TCP port instead" -- ping -c 1 127.0.0.1
hint "perf" perf "denied syscall 'perf_event_open'; perf_event_open is refused in the sandbox; measure outside" -- perf stat true
hint "perf record" perf "denied syscall 'perf_event_open'; perf_event_open is refused in the sandbox; measure outside" -- \
    perf record -o /tmp/p true
hint "screen" screen "denied write '/run/screen'; screen needs a directory of its own: mkdir -m 700 ~/.screen; export SCREENDIR=~/.screen" \
    -- screen -dmS x true
hint "with which it starts" screen "" -c 'mkdir -m 700 ~/.screen; export SCREENDIR=~/.screen; screen -dmS x true'
hint "tmux needs nothing" tmux "" -- tmux new-session -d true
hint "strace needs nothing" strace "" -- strace -o /dev/null true
hint "gdb needs nothing" gdb "" -- gdb -nx -batch -ex run --args /bin/true
socket=/var/run/docker.sock
hint "docker" docker "denied read '$socket'; no grant is offered: a service of the host answers there" \
    -- env -u DOCKER_HOST docker -H "unix://$socket" ps
hint "systemctl" systemctl "denied read '/run/dbus'; no grant is offered: a service of the host answers there" -- systemctl status

# ---- what only a root caller has outside ----
mounts='mounts are fixed when a sandbox is opened: --workspace and --read add directories, --nested permits mounts inside'
shared='set-id bits are refused in a sandbox of root; leave out --shared'
if [ "$ROOT" = yes ]; then
    hint "mount" mount "denied syscall 'mount'; $mounts" -- mount -t tmpfs none /tmp
    hint "git init --shared" git "denied syscall 'chmod'; $shared" -- git init -q --shared /tmp/s
else
    hint "mount, which this user may not outside either" mount "" -- mount -t tmpfs none /tmp
    hint "git init --shared works for a user" git "" -- git init -q --shared /tmp/s
fi
hint "without --shared it works" git "" -- git init -q /tmp/s

# ---- a git config that git would run programs from ----
git init -q "$WS/repo"
git -C "$WS/repo" -c user.name=a -c user.email=a@b.test commit -q --allow-empty -m x
config=$WS/repo/.git/config
before=$(cat "$config")
for change in 'config alias.co checkout' 'config core.editor vi' 'remote add origin https://ok.test/x'; do
    IN=(cs run --workspace "$WS/repo" --timeout 300s)
    hint "git $change" git "'$config': .git/config: git runs programs that it names
denied write '$config'; to allow it: --write $config" -c "git $change"
    is "git $change: the config is as it was" "$(cat "$config")" "$before"
done
IN=(cs run --workspace "$WS/repo" --write "$config" --timeout 300s)
hint "with that option it works" git "" -- git config alias.co checkout
is "and stays" "$(git -C "$WS/repo" config alias.co)" checkout
IN=(cs run --workspace "$WS" --timeout 300s)
status "the config of a new repository" 0 "${IN[@]}" -c 'git init -q new && git -C new config core.editor vi'
like "says which key it was" "$err" "*new/.git/config': .git/config: git runs programs that it names (core.editor)
*was quarantined: it is now *"

# ---- a command that does not end in time ----
status "a command that waits after a refused file" 124 "${IN[@]}" --timeout 3s -c 'cat /root/x.txt; sleep 600'
like "the reason is printed" "$err" "*its timeout passed*
caisson: run: denied read '/root/x.txt'; *"
status "and after a limit" 124 "${IN[@]}" --timeout 3s --disk 1M -c 'cp big /tmp/; sleep 600'
like "with the option" "$err" "*its timeout passed*
caisson: run: $disk"
status "one that was refused nothing" 124 "${IN[@]}" --timeout 1s -- sleep 600
is "has one line" "$err" "caisson: run: the command was ended: its timeout passed (--timeout)"
