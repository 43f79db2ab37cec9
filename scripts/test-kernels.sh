#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test-kernels.sh [--write] [KERNEL...]: boots the kernels of Debian's suites in emulated
# machines, tries there what recording needs of a kernel (test-kernels-inside.sh), and prints
# a table; with --write also to docs/kernels.md. A KERNEL is a suite, or SUITE/arm64. It fails
# if something that this script expects of a kernel does not work. A machine has one processor, so
# as many run at a time as there are processors. With IOTAPE_CI=1 it fails where it would skip.
#
# The kernels come from Debian's packages, by private lists of apt; bin/kernels keeps them.
# Nothing is installed. The machines of this architecture have this machine's files, read only (9p),
# those of arm64 a small Debian system.
set -eu -o pipefail
cd "$(dirname "$0")/.."
write=
[ "${1:-}" = --write ] && { write=1; shift; }
suites=("$@")
[ $# -gt 0 ] || suites=(trixie/arm64 sid bookworm trixie bullseye) # the slowest first
# What the kernels of a suite cannot have, by Linux's version (docs/kernels.md).
declare -A without=([bullseye]="ebpf interpose" [trixie/arm64]=interpose)

skip() { echo "test-kernels: skipped: $1"; [ -z "${IOTAPE_CI:-}" ] || exit 1; exit 0; }
# need PACKAGE PROGRAM...: skips if a program is missing.
need() {
	local package=$1 program
	shift
	for program in "$@"; do
		command -v "$program" >/dev/null || skip "$program is missing (apt-get install $package)"
	done
}
PATH=$PATH:/usr/sbin:/sbin
[ "$(uname -m)" = x86_64 ] || skip "the machines are emulated on x86-64"
need "kmod xz-utils apt" apt-get dpkg-deb depmod modprobe xz
for suite in "${suites[@]}"; do
	case $suite in
	*/arm64) need qemu-system-arm qemu-system-aarch64 && need g++-12-aarch64-linux-gnu aarch64-linux-gnu-g++-12 && need debootstrap debootstrap ;;
	*) need qemu-system-x86 qemu-system-x86_64 ;;
	esac
done

kernels=$PWD/bin/kernels
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$kernels"

# apt_of SUITE COMMAND...: apt with lists of this suite and architecture alone.
apt_of() {
	local suite=${1%/*} arch dir=$tmp/apt/$1 command=$2
	arch=$(arch_of "$1")
	shift 2
	mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
	touch "$dir/status"
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $suite main" >"$dir/list"
	"$command" -qq -o Dir::Etc::SourceList="$dir/list" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::State::Lists="$dir/lists" -o Dir::Cache="$dir/cache" -o Dir::State::status="$dir/status" \
		-o APT::Architecture="$arch" -o APT::Architectures="$arch" -o APT::Sandbox::User= "$@"
}
arch_of() { case $1 in */*) echo "${1#*/}" ;; *) echo amd64 ;; esac; }

# unpack SUITE PACKAGE DIR: a package's files.
unpack() {
	mkdir -p "$3/deb"
	(cd "$3/deb" && apt_of "$1" apt-get download "$2") >&2 && dpkg-deb -x "$3"/deb/*.deb "$3" && rm -r "$3/deb"
}

# initrd DIR BUSYBOX: the machine's first program, and the modules by which it finds its root.
initrd() {
	local version root=$tmp/initrd
	version=$(basename "$1"/lib/modules/*)
	rm -rf "$root"
	mkdir -p "$root"/{bin,dev,proc,sys,mnt,modules}
	cp "$2" "$root/bin/busybox"
	depmod -b "$1" "$version"
	for module in virtio_pci 9pnet_virtio 9p fuse; do
		modprobe -d "$1" -S "$version" --show-depends $module | awk '$1 == "insmod" { print $2 }'
	done | awk '!seen[$0]++' | while read -r file; do
		local name
		name=$(basename "${file%.xz}")
		case $file in
		*.xz) xz -dc "$file" >"$root/modules/$name" ;;
		*) cp "$file" "$root/modules/$name" ;;
		esac
		echo "$name" >>"$root/order"
	done
	cat >"$root/init" <<-'INIT'
		#!/bin/busybox sh
		/bin/busybox --install -s /bin
		mount -t proc p /proc; mount -t sysfs s /sys; mount -t devtmpfs d /dev
		for m in $(cat /order); do insmod /modules/$m; done
		share() { mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,$3 $1 $2; }
		share root /mnt ro,cache=loose || poweroff -f
		mount -t proc p /mnt/proc; mount -t sysfs s /mnt/sys; mount --move /dev /mnt/dev
		mkdir -p /mnt/dev/pts /mnt/dev/shm; mount -t devpts d /mnt/dev/pts; mount -t tmpfs t /mnt/dev/shm
		mount -t tracefs t /mnt/sys/kernel/tracing; mount -t cgroup2 c /mnt/sys/fs/cgroup
		for d in /var/tmp /run /root; do mount -t tmpfs -o mode=1777 t /mnt$d; done
		mkdir /mnt/run/out; share out /mnt/run/out rw || poweroff -f
		grep -q ' arm64=' /proc/cmdline && { mkdir /mnt/run/source; share source /mnt/run/source ro,cache=loose; }
		ifconfig lo 127.0.0.1 up
		run=$(sed 's/.* run=//' /proc/cmdline)
		chroot /mnt /usr/bin/env -i HOME=/root TMPDIR=/var/tmp PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
			TERM=dumb /bin/bash $run </mnt/dev/null >/mnt/run/out/said 2>&1
		sync; sleep 0.2; poweroff -f
	INIT
	chmod +x "$root/init"
	(cd "$root" && find . | "$static_busybox" cpio -o -H newc 2>/dev/null | gzip -1)
}

# prepare SUITE: prints the folder with the suite's newest kernel.
prepare() {
	local arch package dir busybox=$static_busybox new=$tmp/new
	arch=$(arch_of "$1")
	apt_of "$1" apt-get update >&2 || return 1
	package=$(apt_of "$1" apt-cache depends "linux-image-$arch" | awk '/Depends:/ { print $2; exit }')
	[ -n "$package" ] || return 1
	dir=$kernels/$package
	if [ ! -e "$dir/initrd.gz" ]; then
		rm -rf "$new" && unpack "$1" "$package" "$new" || return 1
		[ -e "$new/lib" ] || ln -s usr/lib "$new/lib"
		if [ "$arch" != amd64 ]; then
			unpack "$1" busybox-static "$tmp/busybox-$arch" || return 1
			busybox=$(find "$tmp/busybox-$arch" -path "*bin/busybox" -type f)
		fi
		mkdir -p "$dir"
		cp "$new"/boot/vmlinuz-* "$dir/vmlinuz"
		initrd "$new" "$busybox" >"$dir/initrd.new" && mv "$dir/initrd.new" "$dir/initrd.gz"
	fi
	echo "$dir"
}

# arm64_root SUITE: the files of machines of arm64. The packages are unpacked only.
arm64_root() {
	local root=$kernels/_root-$1-arm64 # go looks into no directory with such a name
	if [ ! -e "$root/done" ]; then
		rm -rf "$root"
		debootstrap --foreign --arch=arm64 --variant=minbase --include=python3-minimal "$1" "$root" http://deb.debian.org/debian >"$tmp/debootstrap" 2>&1 ||
			{ tail -1 "$tmp/debootstrap" >&2; return 1; }
		rm -rf "$root"/{debootstrap,var/cache/apt,proc,sys} # the two can be links to this machine's
		mkdir "$root"/{proc,sys}
		echo root:x:0:0:root:/root:/bin/bash >"$root/etc/passwd"
		touch "$root/done"
	fi
	echo "$root"
}

# boot SUITE DIR OUTPUT: runs the tests in a machine with this kernel. The processor is emulated,
# since virtual machines here may have no other (no_timer_check is for that). It has one core: with
# two, the kernel panicked once while one core changed code (a static key) that the other ran.
boot() {
	mkdir -p "$3"
	local root=/ here=$PWD bin=$PWD/bin machine=(qemu-system-x86_64 -M q35 -cpu max) console=ttyS0
	if [ "$(arch_of "$1")" = arm64 ]; then
		machine=(qemu-system-aarch64 -M virt -cpu "max,pauth-impdef=on" -virtfs "local,path=$PWD,mount_tag=source,security_model=none,readonly=on,multidevs=remap")
		console=ttyAMA0 here=/run/source bin=/run/source/bin/arm64
		root=$(arm64_root "${1%/*}") || return 1
	fi
	timeout "${BOOT_SECONDS:-900}" "${machine[@]}" -accel tcg -m 2560 -smp 1 -kernel "$2/vmlinuz" -initrd "$2/initrd.gz" \
		-append "console=$console panic=1 quiet no_timer_check $(arch_of "$1")= run=$here/scripts/test-kernels-inside.sh $bin ${without[$1]:-}" \
		-virtfs "local,path=$root,mount_tag=root,security_model=none,readonly=on,multidevs=remap" \
		-virtfs "local,path=$3,mount_tag=out,security_model=none,multidevs=remap" \
		-serial "file:$3/console" -display none -no-reboot -nic none >&2
}

# build ARCH DIR: the programs that the machines run.
build() {
	local env=(GOARCH="$1")
	[ "$1" = amd64 ] || env+=(CGO_ENABLED=1 CC=aarch64-linux-gnu-gcc-12 CXX=aarch64-linux-gnu-g++-12)
	env "${env[@]}" go build -buildvcs=false -o "$2/iotape" ./cmd/iotape
	env "${env[@]}" CGO_ENABLED=0 go build -buildvcs=false -o "$2/iotape-agent" ./cmd/iotape-agent
	env "${env[@]}" CGO_ENABLED=0 go test -buildvcs=false -c -o "$2/ebpf.test" ./record/capture/ebpf
}

static_busybox=$(command -v busybox) || skip "busybox is missing (apt-get install busybox-static)"
ldd "$static_busybox" >/dev/null 2>&1 && skip "busybox needs libraries (apt-get install busybox-static)"
say() { echo "test-kernels: $*" >&2; }
case " ${suites[*]} " in *"/arm64 "*) build arm64 bin/arm64 ;; esac
case " ${suites[*]} " in *[!4]" "*) build amd64 bin ;; esac

# run SUITE DIR: a machine, and what it said.
run() {
	local out=$tmp/out/$1 start=$SECONDS
	boot "$1" "$2" "$out" 2>"$tmp/qemu" || true
	say "$1: ${2##*/}, $((SECONDS - start)) s"
	sed 's/^/    /' "$out/said" >&2 || true
	if ! grep -q '^DONE' "$out/said"; then
		say "$1: the machine did not come to the end of the tests"
		tail -20 "$out/console" >&2
		tail -3 "$tmp/qemu" >&2
	fi
}

for suite in "${suites[@]}"; do
	dir=$(prepare "$suite") || skip "the kernel of $suite cannot be had from deb.debian.org"
	while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n || true; done
	say "$suite: ${dir##*/}"
	run "$suite" "$dir" &
done
wait

# said SUITE: what its machine said.
said() { cat "$tmp/out/$1/said"; }
# The table: a row for each thing that was tried, a column for each kernel.
table() {
	local suite feature
	printf '| what |'
	for suite in "${suites[@]}"; do printf ' %s: %s |' "$suite" "$(said "$suite" | sed -n 's/^KERNEL //p')"; done
	printf '\n|---|'
	for suite in "${suites[@]}"; do printf -- '---|'; done
	echo
	for suite in "${suites[@]}"; do said "$suite"; done | awk -F'\t' '/^(ok|FAIL|no)\t/ && !seen[$2]++ { print $2 }' |
		while read -r feature; do
			printf '| %s |' "$feature"
			for suite in "${suites[@]}"; do
				printf ' %s |' "$(said "$suite" | awk -F'\t' -v f="$feature" \
					'$2 == f { print $1 == "ok" ? "yes" : $1 == "no" ? "no: " $3 : "**fails**: " $3; found = 1 } END { if (!found) print "not tried" }')"
			done
			echo
		done
}
table
if [ -n "$write" ]; then
	sed -i '/^<!-- table -->/q' docs/kernels.md
	{ echo; table; } >>docs/kernels.md
fi
for suite in "${suites[@]}"; do
	said "$suite" | grep -q '^DONE' && ! said "$suite" | grep -q '^FAIL' || exit 1
done
