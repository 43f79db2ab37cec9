#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# setup.sh [--test] [--bench] [--accuracy] [--dist] [--kernels]: installs with apt what is missing, and only that.
#
#   (nothing)  what building iotape needs
#   --test     also what `make test` needs: programs to record, clang to prove
#              that the committed eBPF objects are current, file systems for images;
#              builds LevelDB's db_bench and an S3 server,
#              gets a reader of Iceberg tables, and one of Chrome traces
#   --bench    also what `make bench` needs: other tracers, programs to measure;
#              builds db_bench too, gets the sources of Lua
#   --accuracy also what `make accuracy` needs: MPI, PostgreSQL, RocksDB
#   --dist     also what `make dist` and `make test-dist` need: a compiler for the other
#              architecture, debootstrap, lintian
#   --kernels  also what `make test-kernels` needs: qemu, a compiler for arm64
#
# Without root and without sudo it says what is missing and goes on: what can run
# without it will.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1

want="gcc g++ make git"
bench= dbbench= s3= sshd= icebird=
for arg; do
	case $arg in
	--test) want+=" clang llvm libbpf-dev bpftool strace rsync sqlite3 fio python3 python3-zstandard attr acl fuse3 xfsprogs btrfs-progs zstd xz-utils babeltrace2 protobuf-compiler linux-perf"
		# What replays are tested with.
		want+=" stress-ng postmark dbench sysbench lmdb-utils python3-lmdb binutils e2fsprogs rocksdb-tools postgresql mariadb-server openmpi-bin" dbbench=1 s3=1 sshd=1 icebird=1
		want+=" redis-server redis-tools nats-server nginx-light curl stunnel4 openssl" # what flow follows data through
		want+=" iproute2 openssh-client" # hosts are network namespaces
		want+=" bubblewrap" # a sandbox of mount namespaces
		want+=" systemd systemd-container podman crun busybox-static" # units and containers
		want+=" nfs-ganesha nfs-ganesha-vfs libnfs-utils" # NFS clients of a mount
		# What the page of iotape serve is tested in.
		want+=" chromium fonts-dejavu-core"
		command -v npm >/dev/null || want+=" npm"
		command -v javac >/dev/null || want+=" default-jdk-headless"
		command -v rustc >/dev/null || want+=" rustc"
		[ "$(uname -m)" != x86_64 ] || want+=" gcc-multilib musl-tools" ;; # programs of 32 bits, and of another C library
	--bench) want+=" strace linux-perf bpftrace sqlite3 zstd xz-utils fio postmark postgresql" bench=1 dbbench=1 ;;
	--accuracy) want+=" openmpi-bin libopenmpi-dev postgresql rocksdb-tools" ;;
	--dist)
		want+=" binutils debootstrap lintian"
		case $(dpkg --print-architecture 2>/dev/null) in
		# The package without a version excludes gcc-multilib, which --test installs.
		amd64) want+=" g++-12-aarch64-linux-gnu binutils-aarch64-linux-gnu" ;;
		arm64) want+=" g++-12-x86-64-linux-gnu binutils-x86-64-linux-gnu" ;;
		esac ;;
	--kernels) want+=" qemu-system-x86 qemu-system-arm busybox-static kmod xz-utils debootstrap g++-12-aarch64-linux-gnu" ;;
	*) echo "usage: $0 [--test] [--bench] [--accuracy] [--dist] [--kernels]" >&2; exit 2 ;;
	esac
done

say() { echo "setup: $*"; }

missing=
for p in $want; do
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=" $p"
done
missing=${missing# }

if [ -n "$missing" ]; then
	sudo=
	if [ "$(id -u)" != 0 ]; then
		sudo=none
		command -v sudo >/dev/null && sudo -n true 2>/dev/null && sudo="sudo -n"
	fi
	if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
		say "this is no Debian; what is needed from its packages: $missing"
	elif [ "$sudo" = none ]; then
		say "cannot install without root or sudo: $missing"
	else
		log=$(mktemp)
		trap 'rm -f "$log"' EXIT
		install() { $sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=120 install --no-install-recommends $missing >"$log" 2>&1; }
		# The lists of a fresh machine may be absent or old: try, update, try again.
		if install || { $sudo apt-get -qq -o DPkg::Lock::Timeout=120 update >"$log" 2>&1; install; }; then
			say "installed $missing"
		else
			say "cannot install $missing: $(grep -m1 '^E:' "$log" || tail -n1 "$log")"
		fi
	fi
fi

command -v go >/dev/null || say "Go is missing: iotape needs Go $(sed -n 's/^go //p' go.mod) or later (https://go.dev/dl)"

if [ -n "$dbbench" ]; then
	say "$(scripts/build-dbbench.sh bin/db_bench 2>&1 | tail -n1)"
fi
if [ -n "$s3" ]; then
	say "$(scripts/build-s3-server.sh bin/versitygw 2>&1 | tail -n1)"
fi
if [ -n "$sshd" ]; then
	say "$(scripts/fetch-sshd.sh bin/sshd 2>&1 | tail -n1)"
fi
if [ -n "$icebird" ]; then
	say "$(scripts/fetch-icebird.sh bin/icebird 2>&1 | tail -n1)"
	say "$(scripts/fetch-trace-engine.sh bin/trace-engine 2>&1 | tail -n1)"
fi
if [ -n "$bench" ]; then
	say "$(scripts/fetch-lua.sh bin/lua.tar.gz 2>&1 | tail -n1)"
fi
exit 0
