#!/bin/bash
# What one types to look around, archives, terminals, debuggers, processes, small servers.
# shellcheck source=tests/works/lib.sh disable=SC2016
. "${0%/*}/lib.sh"

# ---- who and where ----
works "id, whoami, getent: one user with a name, a home and a shell" "id whoami getent" '
[ "$(id -u)" != 0 ] && [ "$(whoami)" = "$(id -un)" ] && id -gn
getent passwd "$(id -u)" | grep -q ":$HOME:" && getent group "$(id -g)" && getent hosts localhost
[ "$(getent passwd root | cut -d: -f3)" = 0 ] && [ ~ = "$HOME" ] && [ -x "$(getent passwd "$(id -u)" | cut -d: -f7)" ]'
works "the environment agrees with the user" "bash" '
[ "${USER:-$(id -un)}" = "$(id -un)" ] && [ "${LOGNAME:-$(id -un)}" = "$(id -un)" ] && [ -x "${SHELL:-/bin/sh}" ]
[ "$PWD" = "$(pwd -P)" ] && [ -w "$HOME" ] && [ -w "${TMPDIR:-/tmp}" ] && [ "$(umask)" = 0022 ]'
status "a caller that ignores SIGCHLD has a jail too" 0 env --ignore-signal=CHLD "$CAISSON" run --workspace "$T/ws" -c true
is "PATH has no directory that is not there, and keeps its order" \
    "$(PATH=/nowhere/bin:/home/me/bin:$T/ws:/usr/bin:/bin cs run --workspace "$T/ws" -c 'echo "$PATH"')" \
    "$T/ws:/usr/bin:/bin"
is "a PATH of nothing else becomes the usual one" \
    "$(PATH=/nowhere/bin "$CAISSON" run --workspace "$T/ws" -- sh -c 'echo "$PATH"')" \
    /usr/local/bin:/usr/bin:/bin
is "what the configuration says is not changed" \
    "$(USER=me cs run --workspace "$T/ws" --env USER --env SHELL=/x --env PATH=/y:/bin -c 'echo "$USER $SHELL $PATH"')" \
    "me /x /y:/bin"
is "a workspace may lie over a private place" \
    "$(cs run --workspace "$T/ws:/var" -c 'pwd; touch it && rm it && echo written; ls -d /var/tmp' 2>/dev/null | tr '\n' ' ')" \
    "/var written "
is "a share has its place wherever that is, and what leads to it cannot be written to" \
    "$(cs run --workspace "$T/ws:/new/deep/place" -c 'pwd; touch it && rm it && echo written; for d in / /new /new/deep; do touch "$d/x" || echo no; done; ls /new' 2>/dev/null | tr '\n' ' ')" \
    "/new/deep/place written no no no deep "
mkdir -p "$T/ws/one" "$T/ws/two" && echo text >"$T/ws/file"
is "two shares beside each other, one of them a file" \
    "$(cs run --workspace "$T/ws/one:/new/one" --workspace "$T/ws/two:/home/me/two:ro" --read "$T/ws/file" -- sh -c 'ls /new /home; touch one ../../home/me/two/no 2>/dev/null || echo no; cat "$0"' "$T/ws/file" 2>/dev/null | tr '\n' ' ')" \
    "/home: me sandbox  /new: one no text "
works "hostname, and it resolves" "hostname python3" '
[ "$(hostname)" = "$(uname -n)" ] && python3 -c "import socket; socket.gethostbyname(socket.gethostname())"'
works "date with a time zone, locale" "date locale" '
[ "$(TZ=Asia/Tokyo date -d @0 +%H)" = 09 ] && locale -a | grep -q C && locale && [ "$(LC_ALL=C.UTF-8 locale charmap)" = UTF-8 ]'
works "ls -la / and find /: no error outside of the host's directories" "ls find" '
ls -la / && find / -path /usr -prune -o -path /opt -prune -o -path /proc -prune -o -path /var/lib/dpkg -prune -o -print >all &&
grep -qx /etc all && grep -qx /etc/passwd all && grep -qx /dev/null all'
works "df and du" "df du" 'df -h . /tmp ~ / && df >/dev/null && du -sh . /tmp'
works "ps sees its own processes only" ps '
sleep 9 & ps aux | grep -q "[s]leep 9" && ps -ef >/dev/null && [ "$(ps -e | wc -l)" -lt 20 ] && kill %1
[ "$(ps -o user= -p $$)" = "$(id -un)" ]'
works "top, free, uptime, vmstat" "top free uptime" 'top -b -n1 >/dev/null && free -m && uptime'
works "nproc, taskset, lscpu" "nproc taskset" '
[ "$(nproc)" -ge 1 ] && taskset -c 0 nproc | grep -qx 1 && grep -q processor /proc/cpuinfo'
works "pgrep, pkill, pstree, killall" "pgrep pkill" '
sleep 777 & for n in $(seq 1200); do ! pgrep -x sleep || break; sleep 0.05; done # a fork has its name after its exec
[ "$n" -lt 1200 ] && pkill -x sleep && ! wait %1'
works "ldd and file" ldd 'ldd /bin/ls | grep -q libc && { ! command -v file || file /bin/ls | grep ELF; }'
works "ip and ss: loopback and nothing else" "ip ss" '
ip -br addr | grep -q "^lo .*127.0.0.1/8 ::1/128" && [ "$(ip -br link | wc -l)" = 1 ] && ss -ltn && ss -xl'
works "dpkg -l, -L, -S and update-alternatives" dpkg '
dpkg -l dpkg | grep -q ^ii && dpkg -L dpkg | grep -q bin/dpkg && dpkg -S bin/dpkg && update-alternatives --get-selections'
works "mandoc" mandoc '
printf ".TH X 1\n.SH NAME\nx - y\n" >x.1 && mandoc x.1 | grep -q "x - y"'
works "man" man '
printf ".TH X 1\n.SH NAME\nx \\- y\n" >x.1 && MANPAGER=cat man ./x.1 >out && grep -q NAME out'

# ---- files and archives ----
works "tar with gzip, bzip2, xz, zstd" "tar gzip" '
mkdir d && echo x >d/f && ln -s f d/l && ln d/f d/h
for z in gzip bzip2 xz zstd; do
    command -v $z >/dev/null || continue
    tar --$z -cf a.tar d && mkdir o && tar -xf a.tar -C o && [ "$(cat o/d/l)" = x ] && rm -r o
done'
works "zip and unzip" "zip unzip" 'echo x >f && zip -q a.zip f && rm f && unzip -q a.zip && [ "$(cat f)" = x ]'
works "rsync" rsync 'mkdir a && echo x >a/f && rsync -aHAX a/ b/ && [ "$(cat b/f)" = x ]'
works "cp -a, mv across directories and file systems, ln, install, mktemp" "cp mv ln" '
mkdir a b && echo x >a/f && cp -a a c && mv a/f b/ && mv b/f /tmp/f && mv /tmp/f ~/f && mv ~/f . && ln f g && ln -s f s
[ "$(stat -c %h f)" = 2 ] && [ "$(cat s)" = x ] && install -m 755 f x && mktemp && mktemp -d && mktemp -p .'
works "mkfifo, flock, truncate, fallocate, sync, dd" "mkfifo flock dd" '
mkfifo p && (echo x >p &) && [ "$(cat p)" = x ] && flock lock true && truncate -s 1G sparse && [ "$(du -k sparse | cut -f1)" = 0 ]
fallocate -l 1M full && dd if=/dev/zero of=z bs=1M count=3 conv=fsync 2>/dev/null && sync z'
works "chmod, umask, touch -d, stat, chown to oneself" "stat touch" '
touch -d "2001-02-03 UTC" f && [ "$(stat -c %Y f)" = 981158400 ] && chmod 640 f && [ "$(stat -c %a f)" = 640 ]
chown "$(id -u):$(id -g)" f && umask 077 && touch g && [ "$(stat -c %a g)" = 600 ] && [ "$(stat -c %U g)" = "$(id -un)" ]'
works "python3: ids of other users are refused as outside, with EPERM" python3 '
cat >p.py <<"P"
import errno, os
open("f", "w").close()
own = {"u": os.getuid(), "g": os.getgid()}
calls = [("chown", "ug", ["f"]), ("lchown", "ug", ["f"]), ("fchown", "ug", [os.open("f", os.O_RDWR)]),
         ("setreuid", "uu", []), ("setregid", "gg", []), ("setresuid", "uuu", []), ("setresgid", "ggg", [])]
for name, kinds, first in calls:
    call = getattr(os, name)
    call(*first, *[-1] * len(kinds))
    call(*first, *[own[k] for k in kinds])
    for i in range(len(kinds)):
        ids = [4242 if i == n else -1 for n in range(len(kinds))]
        try:
            call(*first, *ids)
            raise SystemExit(f"{name} {ids}: allowed")
        except OSError as e:
            assert e.errno == errno.EPERM, f"{name} {ids}: {e}"
P
python3 p.py'
works "tar: an archive with owners of another machine" tar '
mkdir d && echo x >d/f && tar --owner=4242 --group=4243 -cf a.tar d && mkdir o && tar -xf a.tar -C o && [ "$(cat o/d/f)" = x ]
! tar --same-owner -xf a.tar -C o 2>err && grep -q "uid 4242, gid 4243: Operation not permitted" err'
works "fakeroot: owners that only it remembers" fakeroot '
[ "$(fakeroot sh -c "touch f && chown 12:34 f && stat -c %u:%g f")" = 12:34 ]'
works "grep, sed -i, awk, sort, xargs -P, find -exec, diff" "grep sed awk xargs find diff" '
seq 100 | sort -R | sort -n | awk "{ s += \$1 } END { print s }" | grep -qx 5050 && echo a >f && sed -i s/a/b/ f && grep -q b f
seq 20 | xargs -P 4 -n 1 sh -c "echo \$0" | wc -l | grep -qx 20 && find . -name f -exec grep -l b {} + | grep -q f
! diff -u f <(echo c) >p && grep -q "^+c" p'
works "patch" patch '
printf "a\nb\n" >f && printf "a\nc\n" >g && ! diff -u f g >p && patch -s f p && cmp f g'
works "sqlite3" sqlite3 'sqlite3 x.db "create table t(a); insert into t values(5); select a from t" | grep -qx 5'
works "vi in ex mode" ex 'echo a >f && ex -s f +%s/a/b/ +x && grep -q b f'
works "ed" ed 'printf "a\nhello\n.\nw f\nq\n" | ed -s && grep -q hello f'

# ---- keys and the network of one machine ----
works "openssl: keys, digests, a certificate" openssl '
openssl genrsa -out k 2048 && openssl req -x509 -new -key k -subj /CN=x -days 1 -out c && openssl rand -hex 8 && openssl dgst -sha256 c'
works "ssh-keygen" ssh-keygen 'ssh-keygen -q -t ed25519 -N "" -f k && ssh-keygen -lf k.pub && ssh -V'
works "gpg: a key and a signature" "gpg gpg-agent" '
gpg -q --batch --passphrase "" --quick-gen-key a@example.org default default never && echo x >f && gpg -q --batch --detach-sign f && gpg -q --verify f.sig'
works "curl to a server on loopback, by name, v4 and v6" "curl python3" '
echo hi >f
python3 -m http.server --bind :: 8125 >/dev/null 2>&1 &
for i in $(seq 600); do curl -s http://localhost:8125/f >/dev/null && break; sleep 0.1; done
for h in localhost 127.0.0.1 "[::1]"; do curl -sS "http://$h:8125/f" | grep -q hi; done
kill %1'
works "localhost is both of its addresses: a server on ::1 alone is found by that name" python3 '
cat >s.py <<"P"
import socket
s = socket.socket(socket.AF_INET6)
try:
    s.bind(("::1", 0))
except OSError:
    raise SystemExit(0)  # a host without IPv6
s.listen()
socket.create_connection(("localhost", s.getsockname()[1])).close()
got = {a[4][0] for a in socket.getaddrinfo("localhost", 80, type=socket.SOCK_STREAM)}
assert got == {"127.0.0.1", "::1"}, got
P
python3 s.py'
works "curl to anywhere else says so, at once" curl '! timeout 60 curl -sS http://example.org 2>err && cat err && grep -qi "resolve" err'

# ---- terminals and jobs ----
works "script -qc" script 'script -qec "test -t 0 && stty size && tty" /dev/null | grep -q /dev/pts/'
works "bash -i: job control on a terminal" "bash script" '
script -qec "bash --norc -i" /dev/null >out 2>&1 <<"E"
sleep 60 &
jobs
kill %1
wait
echo do""ne
exit
E
! grep -i "no job control\|cannot set terminal" out && grep -q "Running.*sleep 60" out && tr -d "\r" <out | grep -q "done$"'
works "tmux" tmux '
tmux -L x new-session -d "echo hi >f; sleep 600" && for i in $(seq 600); do [ -s f ] && break; sleep 0.1; done; [ -s f ] && tmux -L x ls && tmux -L x kill-server'
works "screen, in a directory of its own" screen 'mkdir -pm 700 ~/.screen && export SCREENDIR=~/.screen && screen -dm sh -c "echo hi >f" && for i in $(seq 600); do [ -s f ] && break; sleep 0.1; done; [ -s f ]'
works "setsid, nohup, timeout, stdbuf, sleep" "setsid nohup timeout" '
setsid -w true && nohup true && timeout 9 sleep 0.01 && stdbuf -oL echo x | grep -q x
st=0; timeout 0.05 sleep 9 || st=$?; [ $st = 124 ]'
works "nice, renice, ionice, chrt" "nice renice ionice chrt" '
more=$(($(nice) + 1)) && [ $more -le 19 ] || more=19 # whoever runs this may be nice already
[ "$(nice -n 1 nice)" = $more ] && renice -n $more -p $$ && ionice -c 3 true && chrt -b 0 true'
works "ulimit and prlimit, downwards" prlimit '
ulimit -n 256 && [ "$(ulimit -n)" = 256 ] && ulimit -c 0 && ulimit -s 4096 && bash -c "ulimit -s" | grep -qx 4096 && prlimit --nofile=64 true'
works "traps and signals to groups" bash '
bash -c "trap \"exit 7\" TERM; kill -TERM \$\$; sleep 9" || [ $? = 7 ]
setsid bash -c "sleep 50 & kill -TERM -\$\$" || [ $? = 143 ]'
works "100 processes at once" bash 'for i in $(seq 100); do sleep 0.3 & done; wait'

# ---- debuggers ----
works "gdb: a program and a running child" "gdb gcc" '
echo "#include <unistd.h>
int x = 5; int main(void) { for (;;) { x++; usleep(1000); } }" >p.c && gcc -g -o p p.c
gdb -q -batch -ex "break main" -ex run -ex "print x" -ex kill ./p | grep -q "= 5"
./p & until [ "$(readlink /proc/$!/exe)" = "$PWD/p" ]; do sleep 0.05; done
gdb -q -batch -ex "print x" -p $! | grep -q "^.1 = "; kill %1'
works "strace: a program with its children, and attached" strace '
strace -f -o t sh -c "echo a; cat /dev/null" && grep -q execve t && strace -c -o t3 true && grep -q "% time" t3
sleep 600 & p=$!
strace -o t2 -p $p & s=$!
for i in $(seq 600); do [ -s t2 ] && break; sleep 0.1; done
kill $p && wait $s || true; grep -q "SIGTERM" t2'
works "valgrind" "valgrind gcc" '
echo "int main(void) { return 0; }" >p.c && gcc -g -o p p.c && valgrind -q --error-exitcode=3 ./p'
works "busybox" busybox 'busybox sh -c "busybox ls / | busybox grep -q usr"'
