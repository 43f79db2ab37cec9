#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# demo.sh: records a git clone, shows what happened, replays it into a fresh
# directory and compares. Needs bin/iotape (make demo builds it) and git.
set -eu -o pipefail
cd "$(dirname "$0")/.."
iotape=$PWD/bin/iotape
[ -x "$iotape" ] || { echo "demo: bin/iotape is missing: make build" >&2; exit 2; }

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
mkdir bin
ln -s "$iotape" bin/iotape
PATH=$dir/bin:$PATH
export LC_ALL=C.UTF-8

step() {
	printf '\n$ %s\n' "$*"
	"$@"
}

# A small repository to clone.
export HOME=$dir GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=demo GIT_AUTHOR_EMAIL=demo@example.org GIT_COMMITTER_NAME=demo GIT_COMMITTER_EMAIL=demo@example.org
git init -q -b main repo
for i in 1 2 3 4 5; do
	mkdir -p "repo/dir$i"
	for j in 1 2 3 4 5 6 7 8; do seq "$i" "$((i * j * 50))" >"repo/dir$i/file$j.txt"; done
	git -C repo add -A
	git -C repo commit -qm "part $i"
done

step iotape record -o git.tape -- git clone -q --no-hardlinks repo work

printf '\n$ iotape print git.tape | grep dir1/file1\n'
iotape print git.tape | grep dir1/file1 | cut -c1-150

printf '\n$ iotape stat git.tape | sed 14q\n'
iotape stat git.tape | sed -n 1,14p

status=0
step iotape replay git.tape --into again --verify || status=$?

printf '\n$ diff -r work again%s/work\n' "$dir"
diff -r work "again$dir/work" || status=1
if [ $status = 0 ]; then
	printf '\nThe replay made the same files, and every call had the same result.\n'
else
	printf '\nThe replay differs (exit status %s).\n' $status
fi
exit $status
