#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make -j2 with gcc: twelve C files, a library and a program.
#
# usage: make-gcc.sh DIR prep|run
set -eu -o pipefail
umask 022
export LC_ALL=C TZ=UTC
cd "$1"
D=$PWD

prep() {
	mkdir work tmp
	cd work
	for i in {1..12}; do
		cat >"m$i.c" <<-C
			#include <stdio.h>
			#include "all.h"
			int m$i(int x) { char b[32]; snprintf(b, sizeof b, "%d", x * $i); return b[0] + x; }
		C
		echo "int m$i(int);"
	done >all.h
	{
		echo '#include "all.h"'
		echo '#include <stdio.h>'
		echo 'int main(void) { int s = 0;'
		for i in {1..12}; do echo "s += m$i(s);"; done
		echo 'printf("%d\n", s); return 0; }'
	} >main.c
	cat >Makefile <<-'M'
		.RECIPEPREFIX = >
		CFLAGS = -O1 -Wall
		OBJS = $(patsubst %,m%.o,1 2 3 4 5 6 7 8 9 10 11 12)
		out: prog
		> ./prog >$@
		prog: main.o libm12.a
		> $(CC) -o $@ $^
		libm12.a: $(OBJS)
		> ar rcs $@ $^
		$(OBJS) main.o: all.h
	M
}

run() {
	cd work
	TMPDIR=$D/tmp make -s -j2
}

"$2"
