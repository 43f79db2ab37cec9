#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test-dist.sh DIR: installs the .deb of DIR (scripts/dist.sh) in fresh roots of Debian 12 and 13, and
# records, prints and replays there, as root and as an ordinary user; then purges it, which has to
# leave nothing. As root; the roots are made once, by debootstrap, in the cache directory.
set -eu -o pipefail
cd "$(dirname "$0")/.."
dir=$(realpath "${1:-dist}")
cache=${IOTAPE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/iotape}/roots
deb=$(ls "$dir"/iotape_*_"$(dpkg --print-architecture)".deb)
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
[ "$(id -u)" = 0 ] || { echo "test-dist: this needs root, to make the roots of Debian and to enter them" >&2; exit 1; }

say() { echo "test-dist: $*"; }

(cd "$dir" && sha256sum --quiet -c SHA256SUMS)
if command -v lintian >/dev/null; then
	lintian --allow-root --fail-on error,warning "$deb" && say "lintian finds nothing"
else
	say "lintian is not here, so it was not run (scripts/setup.sh --dist installs it)"
fi

tmp=$(mktemp -d)
trap 'rm -rf --one-file-system "$tmp"' EXIT
for suite in bookworm trixie; do
	if [ ! -d "$cache/$suite.base" ]; then
		mkdir -p "$cache"
		say "making a root of $suite"
		rm -rf --one-file-system "$cache/$suite.new"
		debootstrap --variant=minbase "$suite" "$cache/$suite.new" "$mirror" >"$tmp/log" 2>&1 || { tail -n 5 "$tmp/log" >&2; exit 1; }
		mv "$cache/$suite.new" "$cache/$suite.base"
	fi
	root=$tmp/$suite
	cp -a "$cache/$suite.base" "$root"
	cp "$deb" "$root/iotape.deb"
	cp scripts/test-dist-inside.sh "$root/inside.sh"
	# In a mount namespace of its own, with another root: in a chroot an ordinary user may make no
	# user namespace, which a replay needs.
	unshare --mount --propagation private bash -eu -c '
		mount --bind "$1" "$1"
		cd "$1"
		for d in proc sys dev; do mount --rbind /$d $d; done
		mkdir -p old
		pivot_root . old
		umount -l /old
		rmdir /old
		exec /bin/bash /inside.sh' - "$root" || { say "$suite: failed" >&2; exit 1; }
	rm -rf --one-file-system "$root"
	say "$suite: installed, recorded, printed, replayed, purged"
done
