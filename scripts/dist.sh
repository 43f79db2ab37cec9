#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# dist.sh [DIR]: builds the archives and packages of this revision for amd64 and arm64 into DIR
# (dist). Two builds of one revision give the same bytes, wherever they are made; docs/packaging.md
# says how, and on which systems the results run.
set -eu -o pipefail
umask 022
cd "$(dirname "$0")/.."
out=$(realpath -m "${1:-dist}")
max_glibc=2.34 # of the oldest systems that are supported, see docs/packaging.md
package=github.com/iotape/iotape/internal/buildinfo

VERSION=$(sed -n 's/^const Version = "\(.*\)"$/\1/p' internal/buildinfo/buildinfo.go)
revision=$(git describe --always --exclude='*' --abbrev=12 --dirty=.modified)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export VERSION SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
host=$(go env GOHOSTARCH)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
rm -rf "$out"
mkdir -p "$out"

say() { echo "dist: $*"; }

# pack PACKAGER: a package for $ARCH.
pack() {
	local log
	log=$("$tmp/nfpm" package -f packaging/nfpm.yaml -p "$1" -t "$out/" 2>&1) || { echo "$log" >&2; exit 1; }
}

# build ARCH TRIPLET: the programs for an architecture, into $tmp/ARCH/bin. iotape needs libc, to look
# up users; iotape-full needs C++, for DuckDB. Of what that needs only libc and libgcc are left to the system: libstdc++ is found in a
# directory that has it for static linking only.
build() {
	local cc=$2-gcc-12 bin=$tmp/$1/bin lib=$tmp/lib-$1
	command -v "$cc" >/dev/null || { say "no $cc here: scripts/setup.sh --dist installs it" >&2; exit 1; }
	mkdir -p "$bin" "$lib"
	ln -s "$($cc -print-file-name=libstdc++.a)" "$lib/"
	local stamp="-s -w -buildid= -X $package.revision=$revision"
	"$cc" -O2 -c -o "$lib/arc4random.o" packaging/arc4random.c
	CGO_ENABLED=1 GOARCH=$1 CC=$cc go build -trimpath -buildvcs=false -o "$bin/" \
		-ldflags "$stamp -extldflags '-L$lib $lib/arc4random.o -Wl,--build-id=none'" ./cmd/iotape ./cmd/iotape-full
	CGO_ENABLED=0 GOARCH=$1 go build -trimpath -buildvcs=false -o "$bin/" -ldflags "$stamp" ./cmd/iotape-agent
	GLIBC=$("$2-objdump" -T "$bin/iotape-full" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n1)
	GLIBC=${GLIBC#GLIBC_}
	[ "$(printf '%s\n' "$max_glibc" "$GLIBC" | sort -V | tail -n1)" = "$max_glibc" ] ||
		{ say "iotape-full needs glibc $GLIBC, more than $max_glibc: build it on Debian 12, or see docs/packaging.md" >&2; exit 1; }
	export GLIBC
}

# stage ARCH: what goes into the packages beside the programs, into $tmp/ARCH.
stage() {
	local to=$tmp/$1 run=$tmp/$host/bin
	mkdir -p "$to"/{man,completions,systemd,doc,debian}
	"$run/iotape" man "$to/man"
	gzip -9n "$to"/man/*
	for shell in bash fish; do "$run/iotape" completion $shell >"$to/completions/iotape.$shell"; done
	"$run/iotape" completion zsh >"$to/completions/_iotape"
	"$run/iotape-agent" install --print --config /etc/iotape/agent.toml |
		sed 's|^ExecStart=[^ ]*|ExecStart=/usr/bin/iotape-agent|' >"$to/systemd/iotape-agent.service"
	cp packaging/*.service "$to/systemd/"
	cp -r README.md docs packaging/agent.toml "$to/doc/"
	gzip -9n <THIRD_PARTY_NOTICES >"$to/doc/THIRD_PARTY_NOTICES.gz"
	cp CHANGELOG.md "$to/doc/"
	printf 'iotape (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- The iotape authors <iotape@iotape.invalid>  %s\n' \
		"$VERSION" "$(date -uR -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$to/debian/changelog.gz"
	cp packaging/copyright "$to/debian/"
	cp packaging/lintian "$to/lintian"
}

# archive ARCH: the archive that needs no package manager.
archive() {
	local name=iotape-$VERSION-linux-$1 from=$tmp/$1
	mkdir "$tmp/$name"
	cp -r "$from"/{bin,man,completions,systemd,doc} LICENSE "$tmp/$name"
	gzip -d "$tmp/$name/doc/THIRD_PARTY_NOTICES.gz" && mv "$tmp/$name/doc/THIRD_PARTY_NOTICES" "$tmp/$name/"
	tar -C "$tmp" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=ustar -cf - "$name" |
		gzip -9n >"$out/$name.tar.gz"
}

go -C internal/tools build -buildvcs=false -o "$tmp/nfpm" github.com/goreleaser/nfpm/v2/cmd/nfpm
declare -A triplet=([amd64]=x86_64-linux-gnu [arm64]=aarch64-linux-gnu)
other=amd64
[ "$host" = arm64 ] || other=arm64
for arch in "$host" "$other"; do # the host's programs print the pages of both
	say "$arch, version $VERSION, revision $revision"
	build "$arch" "${triplet[$arch]}"
	stage "$arch"
	archive "$arch"
	export ARCH=$arch STAGE=$tmp/$arch
	pack deb
	pack rpm
	say "$arch needs glibc $GLIBC"
done
cd "$out"
sha256sum -- * >SHA256SUMS
cat SHA256SUMS
