#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# generate-check.sh: runs the generators and fails if that changes, adds or
# leaves unexplained any generated file: then what is in the tree was not what
# the sources say. The new files are left in place, ready to be committed.
#
# eBPF objects depend on the compiler. They are compared only where clang is the
# version that made the committed ones.
set -eu -o pipefail
cd "$(dirname "$0")/.."
want_clang=14

sums() {
	find event/numbers_gen.go record/internal/bpf/include/operations.gen.h docs/ops.md \
		record \( -name '*_bpf*.go' -o -name '*_bpf*.o' -o -name '*.gen.h' -o -name '*_gen.go' -o -name 'inproc_*.o' -o -name ops.md \) -type f -print0 2>/dev/null |
		LC_ALL=C sort -zu | xargs -0r sha256sum || true
}

before=$(sums)
packages=./event/...
if ! command -v clang >/dev/null; then
	echo "generate-check: eBPF objects not compared: no clang here (scripts/setup.sh --test installs it)"
elif ! clang --version | grep -q "version $want_clang\."; then
	echo "generate-check: eBPF objects not compared: they were made with clang $want_clang, here is $(clang --version | sed -n 's/.*clang version \([0-9.]*\).*/\1/p')"
else
	packages+=" ./record/..."
fi
# shellcheck disable=SC2086
go generate $packages
changed=$(diff <(echo "$before") <(sums) | sed -n 's/^[<>] [0-9a-f]*  //p' | sort -u) || true

# What a fresh clone would lack: generated files that git does not hold.
untracked=
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
	while read -r _ f; do
		[ -z "$f" ] || git ls-files --error-unmatch "$f" >/dev/null 2>&1 || untracked+=" $f"
	done < <(sums)
fi
if [ -n "$changed" ]; then
	echo "generate-check: not what the sources say, now regenerated:" $changed >&2
fi
if [ -n "$untracked" ]; then
	echo "generate-check: not in git:$untracked" >&2
fi
[ -z "$changed$untracked" ]
