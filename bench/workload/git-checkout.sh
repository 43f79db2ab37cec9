#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# git: to a branch that moved, removed and added files, back, and there again.
#
# usage: git-checkout.sh DIR prep|run
set -eu -o pipefail
umask 022
export LC_ALL=C TZ=UTC
cd "$1"
D=$PWD

export HOME=$D/home GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org
export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
export GIT_AUTHOR_DATE=2021-03-04T05:06:07Z GIT_COMMITTER_DATE=2021-03-04T05:06:07Z

# history makes the repository src: 60 files in 6 directories, five commits, two branches.
history() {
	mkdir home
	git init -q -b main src
	cd src
	for d in 1 2 3 4 5 6; do
		mkdir "d$d"
		for f in 1 2 3 4 5 6 7 8 9 10; do
			for l in 1 2 3 4 5 6 7 8 9; do echo "$d $f line $l"; done >"d$d/f$f"
		done
	done
	ln -s d1/f1 link
	git add -A
	git commit -qm start
	for c in 1 2 3; do
		for d in 1 2 3; do echo "change $c" >>"d$d/f$c"; done
		git commit -qam "change $c"
	done
	git checkout -q -b other HEAD~2
	git mv d4 moved
	git rm -q -r d5
	head -c 70000 /dev/urandom >blob
	chmod +x d6/f1
	git add -A
	git commit -qm other
	git checkout -q main
	cd ..
}

prep() { history; }

run() {
	cd src
	git checkout -q other
	git checkout -q main
	git checkout -q other
}

"$2"
