#!/bin/bash
# import, export and tars, in both directions; write --tar is all or nothing.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"
id=$(new --backend local)
w=$T/ws
mkdir -p in/sub
echo 1 >in/one && echo 2 >in/sub/two && ln -s one in/link && mkfifo in/fifo && chmod 750 in/one

status "import" 0 cs import "$id" in there
is "files, directories and links" "$(cd "$w/there" && find . | sort | tr '\n' ' ')" ". ./link ./one ./sub ./sub/two "
is "links stay links" "$(readlink "$w/there/link")" one
is "modes stay" "$(stat -c %a "$w/there/one")" 750
is "nothing on stdout" "$out" ""
is "nothing on stderr when it is no terminal" "$err" ""
json "import --json" "$(cs import "$id" in again --json)" 'v["ok"] is True and v["entries"] >= 3 and v["bytes"] >= 4'
status "import of nothing" 1 cs import "$id" nowhere x
status "import outside" 1 cs import "$id" in ../outside
status "export" 0 cs export "$id" there out
is "all of it" "$(cd out && find . | sort | tr '\n' ' ')" ". ./link ./one ./sub ./sub/two "
status "export of nothing" 1 cs export "$id" none out2
status "export outside" 1 cs export "$id" ../.. out2

cs export "$id" there - >t.tar
is "export - writes a tar" "$(tar tf t.tar | sed 's,^\./,,;s,/$,,' | grep . | grep -v '^\.$' | sort | tr '\n' ' ')" "link one sub sub/two "
cs import "$id" - fromtar <t.tar
is "import - reads it" "$(cat "$w/fromtar/sub/two")" 2
status "export - with --json" 2 cs export "$id" there - --json

tar cf many.tar -C in one sub
cs write "$id" --tar <many.tar
is "write --tar" "$(cat "$w/one" "$w/sub/two" | tr '\n' ' ')" "1 2 "
cs write "$id" below --tar <many.tar
is "below a path" "$(cat "$w/below/sub/two")" 2
json "write --tar --json" "$(cs write "$id" x --tar --json <many.tar)" 'v["ok"] is True'
echo changed >in/one
tar cf bad.tar -C in one sub
python3 - <<'X'
import io, tarfile
with tarfile.open("bad.tar", "a") as t:
    i = tarfile.TarInfo("../../evil"); i.size = 4
    t.addfile(i, io.BytesIO(b"evil"))
X
cs write "$id" --tar <bad.tar 2>"$T/e"
is "a tar that leaves is refused" "$?" 1
is "and nothing of it is written" "$(cat "$w/one")" 1
head -c 700 many.tar >cut.tar
cs write "$id" --tar <cut.tar 2>"$T/e"
is "so is one that is cut" "$?" 1
echo garbage | cs write "$id" --tar 2>"$T/e"
is "and one that is none" "$?" 1
