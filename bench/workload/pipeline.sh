#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A shell and its children: pipes, redirections, here-documents, appending, tee, subshells.
#
# usage: pipeline.sh DIR prep|run
set -eu -o pipefail
umask 022
export LC_ALL=C TZ=UTC
cd "$1"

prep() {
	for i in {1..3000}; do echo "$((i * 7919 % 1000)) word$((i % 37)) $i"; done >words
}

run() {
	sort -n words | uniq -w 3 | tee sorted | wc -l >count
	grep word3 words | cut -d ' ' -f 2 | sort | uniq -c | sort -rn >top
	cat >doc <<-'T'
		a here-document
		of two lines
	T
	tr a-z A-Z <doc >>doc.upper
	for i in 1 2 3; do echo "turn $i"; done >>log
	(
		mkdir -p sub
		cd sub
		echo inside >in
		cat ../doc in | sed 's/e/E/g' >both
	) 2>err
	{ echo out; echo oops >&2; } >both.out 2>&1
	ls nowhere >ls.out 2>ls.err || echo "status $?" >status
	exec 5>five 6<words
	echo first >&5
	read -r line <&6
	echo "$line" >&5
	exec 5>&- 6<&-
	cat <(head -n 3 words) <(tail -n 3 words) >ends
	head -c 300000 /dev/zero | tr '\0' z | tee z1 z2 | md5sum >z.sum
	seq 50 | while read -r n; do echo "$n" >>squares; done
	(sleep 0.05; echo late >late) &
	xargs -P 2 -n 4 sh -c 'cat "$@" | wc -c >"x.$$"' sh < <(echo words doc log five words doc log five)
	wait
	set -o noclobber
	{ echo no >log; } 2>/dev/null || true
}

"$2"
