#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# build.sh OUT: builds the code that runs in recorded processes, as an ELF file without
# relocations (go generate).
set -eu
out=$(realpath "$1") work=$(mktemp -d)
cd "$(dirname "$0")"

trap 'rm -r "$work"' EXIT
target="clang-14 -target x86_64-linux-gnu -c"
$target -O2 -Wall -Werror -ffreestanding -fPIC -mgeneral-regs-only -fno-stack-protector -fcf-protection=none \
	-fno-jump-tables -fno-asynchronous-unwind-tables -fno-builtin -fno-vectorize -fno-slp-vectorize \
	-I../../../internal/bpf/include inproc.c -o "$work/c.o"
$target entry.S -o "$work/s.o"
ld -T inproc.lds --build-id=none -o "$work/inproc.elf" "$work/s.o" "$work/c.o"
if [ -n "$(readelf -Wr "$work/inproc.elf" | grep -v 'no relocations' | tr -d '\n')" ]; then
	echo "build.sh: the code has relocations" >&2
	exit 1
fi
llvm-strip-14 --strip-debug "$work/inproc.elf"
cp "$work/inproc.elf" "$out"
