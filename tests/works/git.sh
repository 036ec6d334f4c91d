#!/bin/bash
# git: everything that a day with a repository needs.
# shellcheck source=tests/works/lib.sh disable=SC2016
. "${0%/*}/lib.sh"

repo='
git config --global user.name A && git config --global user.email a@example.org
git config --global init.defaultBranch main && git config --global advice.detachedHead false
git init -q r && cd r && echo 1 >f && git add f && git commit -qm one
'
works "git: init, commit, status, log without a pager" git "$repo"'
[ -z "$(git status --porcelain)" ] && [ "$(git --no-pager log --format=%s)" = one ] && git log --stat'
works "git: a commit without any configuration says what is missing" git '
git init -q . && touch f && git add f
if git commit -qm x 2>err; then git log -1 --format=%ae | grep @; else grep -q "tell me who you are" err; fi'
works "git: branch, merge, conflict" git "$repo"'
git switch -qc b && echo 2 >f && git commit -qam two && git switch -q main
echo 3 >g && git add g && git commit -qm three && git merge -q -m merged b && [ "$(cat f)" = 2 ]
git switch -qc c && echo c >f && git commit -qam c && git switch -q main && echo d >f && git commit -qam d
! git merge -q c && git merge --abort'
works "git: rebase, also interactive, and cherry-pick" git "$repo"'
git switch -qc b && echo 2 >g && git add g && git commit -qm two && git switch -q main
echo 3 >h && git add h && git commit -qm three && git switch -q b && git rebase -q main
[ "$(git log --format=%s | tr "\n" " ")" = "two three one " ]
GIT_SEQUENCE_EDITOR="sed -i -e 1s/pick/reword/" GIT_EDITOR="sed -i -e s/two/zwei/" git rebase -qi HEAD~1
git log -1 --format=%s | grep -q zwei && git switch -q main && git cherry-pick b >/dev/null'
works "git: stash, reset, restore, clean, tag, bisect" git "$repo"'
echo 2 >f && git stash -q && [ "$(cat f)" = 1 ] && git stash pop -q && [ "$(cat f)" = 2 ]
git reset -q --hard && touch x && git clean -qfd && [ ! -e x ] && git tag -a v1 -m v1 && git describe
for i in 2 3 4; do echo $i >f && git commit -qam $i; done
git bisect start HEAD v1 >/dev/null && git bisect run sh -c "[ \$(cat f) -lt 3 ]" >out && grep -q "first bad" out'
works "git: worktree" git "$repo"'
git worktree add -q ../w -b w && cd ../w && echo w >f && git commit -qam w && cd ../r && git worktree remove ../w'
works "git: submodule of a local repository" git "$repo"'
cd .. && git init -q top && cd top
git -c protocol.file.allow=always submodule --quiet add "$PWD/../r" sub && git commit -qm sub && [ "$(cat sub/f)" = 1 ]'
works "git: clone by hard links, by file URL, bare; fetch and push" git "$repo"'
cd .. && git clone -q r c1 && git clone -q "file://$PWD/r" c2 && git clone -q --bare r b.git
cd c1 && git remote set-url origin ../b.git && echo 2 >f && git commit -qam two && git push -q origin main
cd ../c2 && git remote set-url origin ../b.git && git pull -q && [ "$(cat f)" = 2 ] && git clone -q --depth 1 "file://$PWD/../b.git" ../c3'
works "git: gc, repack, fsck" git "$repo"'
for i in $(seq 2 21); do echo $i >f && git commit -qam $i; done
git gc -q --prune=now && git repack -adq && git fsck --strict && [ "$(git rev-list --count HEAD)" = 21 ]'
works "git: hooks run, diff and apply, archive, blame" "git tar" "$repo"'
printf "#!/bin/sh\ntouch ../ran\n" >.git/hooks/pre-commit && chmod +x .git/hooks/pre-commit
echo 2 >f && git diff >../p && git checkout -q f && git apply ../p && git commit -qam two && [ -e ../ran ]
git archive HEAD | tar tf - | grep -qx f && git blame f >/dev/null
git format-patch -q -1 -o ../m && git reset -q --hard HEAD~1 && git am -q ../m/* && [ "$(cat f)" = 2 ]'
works "git: large files, executable bits, links, names in UTF-8" git "$repo"'
head -c 20000000 /dev/urandom >big && printf "#!/bin/sh\n" >x && chmod +x x && ln -s x l && touch "grün ü"
git add -A && git commit -qm more && git rm -q big x l "grün ü" && git commit -qm less && git checkout -q HEAD~1
[ -x x ] && [ -L l ] && [ -e "grün ü" ]'
works "git: credential and editor prompts fail fast" git "$repo"'
! timeout 20 git -c http.proxy= ls-remote https://localhost:1/x 2>/dev/null
! GIT_EDITOR=false git commit -q --allow-empty'
