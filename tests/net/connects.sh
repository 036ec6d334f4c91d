#!/bin/bash
# What must connect (cases 1 to 9): every program, however it looks names up, and without any variable.
# shellcheck disable=SC2016 # expanded inside
# shellcheck source=tests/net/lib.sh
. "${0%/*}/lib.sh"
cp "${RESOLVER:?set RESOLVER to the program that asks by itself}" "$WS/resolver"
NET=(--allow 'ok.test:443,80')
HTTP="server 93.184.216.10:80 host ok.test path /" HTTPS="server 93.184.216.10:443 host ok.test path /"
run() { "${IN[@]}" "${NET[@]}" -- "$@" 2>"$T/.get.err"; }

# ---- 1: no proxy variable, and none is needed ----
is "case 01: no proxy variable is set" "$(run env | grep -ci proxy)" 0
is "case 01: curl" "$(get https://ok.test/)" "$HTTPS"
has wget "case 01: wget" && is "case 01: wget" "$(run wget -qO- --ca-certificate=ca.pem https://ok.test/)" "$HTTPS"
is "case 01: bash by itself" "$(run bash -c 'exec 5<>/dev/tcp/ok.test/80
    printf "GET / HTTP/1.0\r\nHost: ok.test\r\n\r\n" >&5; grep -m1 server <&5')" "$HTTP"
is "case 01: a python socket" "$(try raw ok.test 80 'GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n' | grep server)" "$HTTP"
is "case 01: python urllib" "$(run /usr/bin/python3 -c 'import ssl, urllib.request as u
print(u.urlopen("https://ok.test/", context=ssl.create_default_context(cafile="ca.pem")).read().decode(), end="")')" "$HTTPS"
if "${IN[@]}" -- /usr/bin/python3 -c 'import requests' 2>/dev/null; then
    is "case 01: python requests" "$(run /usr/bin/python3 -c 'import requests
print(requests.get("https://ok.test/", verify="ca.pem").text, end="")')" "$HTTPS"
else
    skip "case 01: python requests" "this python has none"
fi
NET=(--allow other.test)
is "case 01: the control: with another rule it does not" "$(try raw ok.test 80 x)" "[Errno -2] Name or service not known"
NET=(--allow 'ok.test:443,80')

# ---- 2: a static program without an environment ----
is "case 02: env -i, static" "$(run env -i ./resolver plain ok.test 80)" "$HTTP"
is "case 02: the control: a name without a rule" "$(run env -i ./resolver plain other.test 80)" "no such name"

# ---- 3: how other runtimes ask ----
is "case 03: A and AAAA at once, with EDNS0 (Go)" "$(run ./resolver both ok.test 80)" "$HTTP"
is "case 03: by TCP" "$(run ./resolver tcp ok.test 80)" "$HTTP"
is "case 03: AAAA alone, of a name that has only IPv4" "$(run ./resolver six ok.test 80)" "$HTTP"
is "case 03: by TCP, a name without a rule" "$(run ./resolver tcp other.test 80)" "no such name"
if has node "case 03: node fetch"; then
    NET+=(--env NODE_EXTRA_CA_CERTS="$WS/ca.pem")
    is "case 03: node fetch" "$(run node -e \
        'fetch("https://ok.test/").then(r => r.text()).then(t => process.stdout.write(t), e => console.log(e.cause.code))')" "$HTTPS"
    is "case 03: node without a rule" "$(run node -e \
        'fetch("https://other.test/").then(r => r.text()).then(t => process.stdout.write(t), e => console.log(e.cause.code))')" ENOTFOUND
fi
NET=(--allow 'ok.test:443,80')
if has javac "case 03: java"; then
    cat >Get.java <<'J'
public class Get {
    public static void main(String[] a) throws Exception {
        try (var in = new java.net.URL(a[0]).openStream()) {
            System.out.print(new String(in.readAllBytes()));
        } catch (java.io.IOException e) {
            System.out.println(e.getClass().getSimpleName());
        }
    }
}
J
    is "case 03: java" "$(run java -Xshare:auto Get.java http://ok.test/)" "$HTTP"
    is "case 03: java without a rule" "$(run java -Xshare:auto Get.java http://other.test/)" UnknownHostException
fi

# ---- 4: names below one ----
NET=(--allow '*.ok.test:443,80')
is "case 04: a name below" "$(get https://www.ok.test/)" "server 93.184.216.10:443 host www.ok.test path /"
is "case 04: and further down" "$(get https://deep.sub.ok.test/)" "server 93.184.216.10:443 host deep.sub.ok.test path /"
holds "case 04: the control: not the name itself" ! get https://ok.test/

# ---- 5: spellings ----
NET=(--allow 'ok.test:443,80')
is "case 05: upper case" "$(get -H 'Host: OK.Test' http://OK.Test/)" "server 93.184.216.10:80 host OK.Test path /"
is "case 05: upper case, TLS" "$(get https://OK.TEST/ | cut -d' ' -f1,2)" "server 93.184.216.10:443"
is "case 05: a dot at the end" "$(get http://ok.test./)" "server 93.184.216.10:80 host ok.test. path /"
is "case 05: a dot at the end, TLS" "$(get https://ok.test./ | cut -d' ' -f1,2)" "server 93.184.216.10:443"
NET=(--allow OK.Test.:80)
is "case 05: in the rule" "$(get http://ok.test/)" "$HTTP"

# ---- 6: CNAMEs ----
NET=(--allow cdn.ok.test:443)
is "case 06: a chain of names" "$(get https://cdn.ok.test/)" "server 93.184.216.16:443 host cdn.ok.test path /"
holds "case 06: the control: its end is not allowed by that" ! get https://pop.edge.test/

# ---- 7: addresses that change ----
NET=(--allow rotate.test:80)
before=$(served ' rotate.test /small')
# More than all buffers on the way hold, and nobody takes the rest before the others have come through.
is "case 07: a long transfer goes on while addresses change" "$(run bash -c 'curl -sS http://rotate.test/bytes/200000000 |
        { head -c 1000; until [ -e through ]; do sleep 0.1; done; cat; } | wc -c &
    for n in 1 2 3; do curl -sS http://rotate.test/small >>seen || echo failed; sleep 1.1; done # an answer is kept for a second
    [ -n "$(jobs -r)" ] || echo "it was too short"; touch through; wait')" 200000000
holds "case 07: others were reached meanwhile" test "$(sort -u seen | wc -l)" -ge 3
holds "case 07: each by a connection of its own" test $(($(served ' rotate.test /small') - before)) -eq 3

# ---- 8: IPv6 ----
NET=(--allow 'six.test:443,80')
is "case 08: a name that has only IPv6" "$(get https://six.test/)" "server 2a00:200::16:443 host six.test path /"
is "case 08: for who only asks for A" "$(run ./resolver plain six.test 80)" "server 2a00:200::16:80 host six.test path /"

# ---- 9: package managers and git ----
chmod -R a+rX "$WORLD/www" 2>/dev/null
mirror=$WORLD/www/ok.test/mirror
mkdir -p "$mirror"
NET=(--allow 'ok.test:443,80')
if has git "case 09: git"; then
    export GIT_CONFIG_GLOBAL=/dev/null
    (git init -q -b main "$T/repo" && cd "$T/repo" && echo one >file && git add file &&
        git -c user.name=t -c user.email=t@t commit -qm one && git clone -q --bare . "$mirror/repo.git" &&
        cd "$mirror/repo.git" && git update-server-info) >/dev/null
    run git clone -q http://ok.test/mirror/repo.git cloned
    is "case 09: git over http" "$(cat "$WS/cloned/file" 2>&1)" one
    run git -c http.sslCAInfo="$WS/ca.pem" clone -q https://ok.test/mirror/repo.git cloned2
    is "case 09: git over https" "$(cat "$WS/cloned2/file" 2>&1)" one
    holds "case 09: the control: from another host" ! run git clone -q http://other.test/mirror/repo.git cloned3
    if [ -e "$WORLD/ssh_key" ] && has ssh "case 09: git over ssh"; then
        cp "$WORLD/ssh_key" "$WORLD/ssh_known" "$WS/" && chmod 600 "$WS/ssh_key"
        SSH="ssh -i ssh_key -o UserKnownHostsFile=ssh_known -o BatchMode=yes"
        NET=(--allow ssh.test:22 --env "GIT_SSH_COMMAND=$SSH -i $WS/ssh_key -o UserKnownHostsFile=$WS/ssh_known")
        # shellcheck disable=SC2086
        is "case 09: ssh" "$(run $SSH tester@ssh.test echo hello)" hello
        run git clone -q "ssh://tester@ssh.test$mirror/repo.git" cloned4
        is "case 09: git over ssh" "$(cat "$WS/cloned4/file" 2>&1)" one
        NET=(--allow ssh.test:443 --env "GIT_SSH_COMMAND=$SSH")
        holds "case 09: the control: ssh on a port without a rule" ! run git clone -q "ssh://tester@ssh.test$mirror/repo.git" cloned5
    else
        [ -e "$WORLD/ssh_key" ] || skip "case 09: git over ssh" "there is no sshd here"
    fi
fi
if has npm "case 09: npm"; then
    mkdir -p "$T/package" "$mirror/npm/small-thing"
    echo '{"name":"small-thing","version":"1.0.0","main":"index.js"}' >"$T/package/package.json"
    echo 'module.exports = "installed"' >"$T/package/index.js"
    tar -C "$T" -czf "$mirror/npm/small-thing.tgz" package
    printf '{"name":"small-thing","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"small-thing","version":"1.0.0",
"dist":{"tarball":"http://ok.test/mirror/npm/small-thing.tgz","shasum":"%s"}}}}' \
        "$(sha1sum "$mirror/npm/small-thing.tgz" | cut -d' ' -f1)" >"$mirror/npm/small-thing/index.html"
    mkdir -p "$WS/npm" && echo 'registry=http://ok.test/mirror/npm/' >"$HOME/.npmrc" && cp "$HOME/.npmrc" "$WS/npm/.npmrc"
    echo '{}' >"$WS/npm/package.json"
    npm_install() { run bash -c 'cd npm && rm -rf node_modules package-lock.json && npm install --no-audit --no-fund --fetch-retries=0 small-thing >&2 && node -p "require(\"small-thing\")"'; }
    NET=(--allow ok.test:80)
    is "case 09: npm" "$(npm_install)" installed
    NET=(--packages npm)
    is "case 09: npm by its preset, which reads the user's npmrc" "$(npm_install)" installed
    rm "$HOME/.npmrc"
    holds "case 09: the control: without it the mirror is closed" ! npm_install
fi
if has pip "case 09: pip"; then
    mkdir -p "$mirror/simple/tiny" && (cd "$T" && mkdir -p wheel/tiny-1.0.dist-info && cd wheel &&
        echo 'said = "installed"' >tiny.py &&
        printf 'Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n' >tiny-1.0.dist-info/METADATA &&
        printf 'Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n' >tiny-1.0.dist-info/WHEEL &&
        printf 'tiny.py,,\ntiny-1.0.dist-info/METADATA,,\ntiny-1.0.dist-info/WHEEL,,\ntiny-1.0.dist-info/RECORD,,\n' >tiny-1.0.dist-info/RECORD &&
        /usr/bin/python3 -m zipfile -c "$mirror/tiny-1.0-py3-none-any.whl" tiny.py tiny-1.0.dist-info)
    echo '<a href="/mirror/tiny-1.0-py3-none-any.whl">tiny-1.0-py3-none-any.whl</a>' >"$mirror/simple/tiny/index.html"
    mkdir -p "$HOME/.config/pip" "$XDG_CONFIG_HOME/pip"
    printf '[global]\nindex-url = https://ok.test/mirror/simple/\n' | tee "$XDG_CONFIG_HOME/pip/pip.conf" >"$HOME/.config/pip/pip.conf"
    pip_install() { run bash -c 'rm -rf there && pip install -q --disable-pip-version-check --retries 0 --cert ca.pem -i https://ok.test/mirror/simple/ --target there tiny >&2 && PYTHONPATH=there /usr/bin/python3 -c "import tiny; print(tiny.said)"'; }
    NET=(--allow ok.test:443)
    is "case 09: pip" "$(pip_install)" installed
    NET=(--packages pip)
    is "case 09: pip by its preset, which reads pip.conf" "$(pip_install)" installed
    rm "$XDG_CONFIG_HOME/pip/pip.conf" "$HOME/.config/pip/pip.conf"
    holds "case 09: the control: without it the mirror is closed" ! pip_install
fi
