#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# git: init, add, commit, twice, then status and log.
#
# usage: git-basics.sh DIR prep|run
set -eu -o pipefail
umask 022
export LC_ALL=C TZ=UTC
cd "$1"
D=$PWD

export HOME=$D/home GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org
export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
export GIT_AUTHOR_DATE=2021-03-04T05:06:07Z GIT_COMMITTER_DATE=2021-03-04T05:06:07Z

prep() {
	mkdir home work work/sub
	for f in 1 2 3 4 5 6 7 8 9 10; do
		for l in 1 2 3 4 5 6 7 8; do echo "file $f line $l"; done >"work/f$f"
	done
	cp work/f1 work/sub/same
	head -c 50000 /dev/urandom >work/sub/blob
	ln -s f2 work/link
}

run() {
	cd work
	git init -q -b main
	git add -A
	git commit -qm first
	echo more >>f1
	rm f2
	git add -A
	git commit -qm second
	git status --short
	git log --oneline >../log
}

"$2"
