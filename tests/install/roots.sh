#!/bin/bash
# roots.sh DIST DEB ROOTS: the archive of `make dist` and the packages of `make deb`, installed into fresh
# roots and used there, as root and as an ordinary user: Debian 12, a root with busybox and without
# glibc, and Debian 13, where the sources are compiled too. Takes minutes and needs root and a Debian
# mirror, which is the one that apt uses here. TAP.
#
# Everything is mounted in private mount namespaces. ROOTS keeps the new roots as archives.
# shellcheck disable=SC2016 # expanded by the shell in a root
set -u
dist=$(realpath "$1") deb=$(realpath "$2")
source=$(realpath "${0%/*}/../..")
mkdir -p "$3" && roots=$(realpath "$3") || exit 1
[ "$(id -u)" -eq 0 ] || { echo "1..0 # SKIP needs root"; exit 0; }
T=$(mktemp -d) && chmod 755 "$T" || exit 1
trap 'rm -rf "$T"' EXIT
n=0 failed=0

check() # NAME COMMAND...: it succeeds
{
    local name=$1
    shift
    n=$((n + 1))
    if "$@" >"$T/log" 2>&1; then
        echo "ok $n - $name"
    else
        failed=$((failed + 1))
        echo "not ok $n - $name"
        tail -n 30 "$T/log" | sed 's/^/# /'
    fi
}

# A mount over / and not a chroot: the kernel refuses user namespaces to a process in a chroot.
enter() # ROOT UID COMMAND...
{
    unshare -m sh -euc 'root=$1 uid=$2
        shift 2
        mount --bind "$root" "$root"
        cd "$root"
        mount -t proc proc proc
        mount --rbind /dev dev
        mount --rbind /sys sys
        mount -t tmpfs -o mode=1777 tmpfs tmp
        mount --move . /
        exec chroot --userspec="$uid:$uid" . "$@"' enter "$@"
}

homes() # ROOT
{
    mkdir -p "$1/home/user/ws" "$1/root/ws" && chmod 700 "$1/home/user" && chown -R 65534:65534 "$1/home/user"
}

in_home() # ROOT UID LINE
{
    local home=/root
    [ "$2" -eq 0 ] || home=/home/user
    enter "$1" "$2" /bin/env -i PATH=/usr/local/bin:/usr/bin:/usr/sbin:/bin HOME=$home DEBIAN_FRONTEND=noninteractive \
        /bin/sh -euc "cd $home/ws; $3"
}

debian() # SUITE NAME: a new root in $T/NAME
{
    local new="$T/$2" mirror
    if [ ! -f "$roots/$1.tar" ]; then
        mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Label: Debian' | head -n 1)
        unshare -m debootstrap --variant=minbase "$1" "$T/fresh-$1" "$mirror" || return 1
        tar -C "$T/fresh-$1" -cf "$roots/$1.tar.new" . && mv "$roots/$1.tar.new" "$roots/$1.tar" || return 1
        rm -rf "$T/fresh-$1"
    fi
    mkdir "$new" && tar -C "$new" -xf "$roots/$1.tar" && homes "$new"
}

busybox_root() # NAME
{
    local new="$T/$1" applet
    mkdir -p "$new"/{bin,dev,etc,opt,proc,sys,tmp} && cp "$(command -v busybox)" "$new/bin/busybox" || return 1
    for applet in echo env sh; do ln -s busybox "$new/bin/$applet"; done
    homes "$new"
}

# used ROOT PROGRAM PLACE: as both callers
used()
{
    local uid
    for uid in 0 65534; do
        check "$3: doctor finds all for uid $uid" in_home "$1" "$uid" "$2 doctor"
        check "$3: a command runs for uid $uid" in_home "$1" "$uid" "test \"\$($2 run -- echo it runs)\" = 'it runs'"
        check "$3: not as root for uid $uid" in_home "$1" "$uid" "$2 run -c 'test \"\$(id -u)\" -ne 0'"
        check "$3: with network rules for uid $uid" in_home "$1" "$uid" "$2 run --allow ok.test:443 -- true"
    done
}

unpack() { mkdir -p "$1/opt" && tar -C "$1/opt" -xzf "$dist"/caisson-*-linux-*.tar.gz && mv "$1"/opt/caisson-* "$1/opt/caisson"; }

# ---- Debian 12: the archive ----
check "a root of Debian 12" debian bookworm archive
check "the archive is unpacked" unpack "$T/archive"
used "$T/archive" /opt/caisson/bin/caisson "archive on Debian 12"
rm -rf "$T/archive"

# ---- Debian 12: the packages ----
check "another root of Debian 12" debian bookworm packages
cp "$deb"/*.deb "$T/packages/opt/"
check "the packages are installed" in_home "$T/packages" 0 \
    'apt-get update && apt-get install -y --no-install-recommends /opt/caisson_*.deb /opt/libcaisson0_*.deb'
used "$T/packages" caisson "packages on Debian 12"
check "the module of the library is found" in_home "$T/packages" 65534 \
    'echo content >file; id=$(caisson create); caisson export $id . ~/out; caisson destroy $id; test -s ~/out/file'
check "the packages are removed" in_home "$T/packages" 0 \
    'apt-get purge -y caisson libcaisson0 && ! find /usr /etc -name "*caisson*" | grep .'
rm -rf "$T/packages"

# ---- without glibc ----
check "a root with busybox" busybox_root small
check "the archive is unpacked there" unpack "$T/small"
for uid in 0 65534; do
    check "busybox: a command runs for uid $uid" in_home "$T/small" $uid \
        "test \"\$(/opt/caisson/bin/caisson run -- echo it runs)\" = 'it runs'"
    check "busybox: another command says what it needs for uid $uid" in_home "$T/small" $uid \
        'case $(/opt/caisson/bin/caisson version 2>&1) in *"GNU C library"*) ;; *) exit 1 ;; esac'
done
rm -rf "$T/small"

# ---- Debian 13 ----
check "a root of Debian 13" debian trixie next
check "the archive is unpacked there, too" unpack "$T/next"
used "$T/next" /opt/caisson/bin/caisson "archive on Debian 13"
mkdir "$T/next/opt/source"
tar -C "$source" --exclude='./build*' --exclude=./.git -cf - . | tar -C "$T/next/opt/source" -xf - --no-same-owner
check "packages to compile with" in_home "$T/next" 0 \
    'apt-get update && apt-get install -y --no-install-recommends make && cd /opt/source && tools/deps build'
check "it compiles without a warning" in_home "$T/next" 0 'cd /opt/source && make MESON_OPTIONS=-Dwerror=true'
check "it is installed" in_home "$T/next" 0 'cd /opt/source && make install'
used "$T/next" caisson "compiled on Debian 13"
check "an example compiles and runs" in_home "$T/next" 65534 \
    'cc -std=c11 -Wall -Werror /opt/source/examples/hello.c $(pkg-config --cflags --libs caisson) -o ~/hello && ~/hello'
check "it is uninstalled" in_home "$T/next" 0 \
    'cd /opt/source && make uninstall && ! find /usr/local -name "*caisson*" | grep .'

echo "1..$n"
echo "$((n - failed)) passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
