#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test-kernels.sh [--write] [SUITE...]: boots the kernels of Debian's suites in emulated
# machines, tries there what recording needs of a kernel (test-kernels-inside.sh), and prints
# a table; with --write also to docs/kernels.md. It fails if something that this script
# expects of a kernel does not work.
#
# The machines have this machine's files, read only (9p). Their kernels come from Debian's
# packages, by private lists of apt; bin/kernels keeps them. Nothing is installed.
set -eu -o pipefail
cd "$(dirname "$0")/.."
write=
[ "${1:-}" = --write ] && { write=1; shift; }
suites=("$@")
[ $# -gt 0 ] || suites=(bookworm trixie)

skip() { echo "test-kernels: skipped: $1"; exit 0; }
[ "$(uname -m)" = x86_64 ] || skip "the kernels are those of x86-64"
for program in qemu-system-x86_64 apt-get dpkg-deb depmod modprobe xz; do
	PATH=$PATH:/usr/sbin:/sbin command -v $program >/dev/null ||
		skip "$program is missing (apt-get install qemu-system-x86 kmod xz-utils)"
done
busybox=$(command -v busybox) || skip "busybox is missing (apt-get install busybox-static)"
ldd "$busybox" >/dev/null 2>&1 && skip "busybox needs libraries (apt-get install busybox-static)"
PATH=$PATH:/usr/sbin:/sbin

kernels=$PWD/bin/kernels
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$kernels"

# apt_of SUITE COMMAND...: apt with lists of this suite alone.
apt_of() {
	local suite=$1 dir=$tmp/$1 command=$2
	shift 2
	mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $suite main" >"$dir/list"
	"$command" -qq -o Dir::Etc::SourceList="$dir/list" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::State::Lists="$dir/lists" -o Dir::Cache="$dir/cache" -o APT::Sandbox::User= "$@"
}

# initrd DIR: the machine's first program, and the modules by which it finds its root.
initrd() {
	local modules version root=$tmp/initrd
	modules=$(echo "$1"/lib/modules/*) version=$(basename "$1"/lib/modules/*)
	rm -rf "$root"
	mkdir -p "$root"/{bin,dev,proc,sys,mnt,modules}
	cp "$busybox" "$root/bin/busybox"
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
		mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=262144 root /mnt || poweroff -f
		mount -t proc p /mnt/proc; mount -t sysfs s /mnt/sys; mount --move /dev /mnt/dev
		mkdir -p /mnt/dev/pts /mnt/dev/shm; mount -t devpts d /mnt/dev/pts; mount -t tmpfs t /mnt/dev/shm
		mount -t tracefs t /mnt/sys/kernel/tracing; mount -t cgroup2 c /mnt/sys/fs/cgroup
		for d in /var/tmp /run /root; do mount -t tmpfs -o mode=1777 t /mnt$d; done
		ifconfig lo 127.0.0.1 up
		run=$(sed 's/.* run=//' /proc/cmdline)
		chroot /mnt /usr/bin/env -i HOME=/root TMPDIR=/var/tmp PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
			TERM=dumb /bin/bash $run </mnt/dev/null >/mnt/dev/ttyS1 2>&1
		sync; sleep 0.2; poweroff -f
	INIT
	chmod +x "$root/init"
	(cd "$root" && find . | "$busybox" cpio -o -H newc 2>/dev/null | gzip -1)
}

# prepare SUITE: prints the folder with the suite's newest kernel.
prepare() {
	local package dir
	apt_of "$1" apt-get update >&2 || return 1
	package=$(apt_of "$1" apt-cache depends linux-image-amd64 | awk '/Depends:/ { print $2; exit }')
	[ -n "$package" ] || return 1
	dir=$kernels/$package
	if [ ! -e "$dir/initrd.gz" ]; then
		rm -rf "$tmp/new" && mkdir -p "$tmp/new/deb"
		(cd "$tmp/new/deb" && apt_of "$1" apt-get download "$package") >&2 || return 1
		dpkg-deb -x "$tmp"/new/deb/*.deb "$tmp/new"
		[ -e "$tmp/new/lib" ] || ln -s usr/lib "$tmp/new/lib"
		mkdir -p "$dir"
		cp "$tmp"/new/boot/vmlinuz-* "$dir/vmlinuz"
		initrd "$tmp/new" >"$dir/initrd.new" && mv "$dir/initrd.new" "$dir/initrd.gz"
	fi
	echo "$dir"
}

# boot DIR OUTPUT: runs the tests in a machine with this kernel. The processor is emulated,
# since virtual machines here may have no other (no_timer_check is for that). It has one core: with
# two, the kernel panicked once while one core changed code (a static key) that the other ran.
boot() {
	timeout "${BOOT_SECONDS:-900}" qemu-system-x86_64 -M q35 -accel tcg -cpu max -m 2560 -smp 1 \
		-kernel "$1/vmlinuz" -initrd "$1/initrd.gz" \
		-append "console=ttyS0 panic=1 quiet no_timer_check run=$PWD/scripts/test-kernels-inside.sh" \
		-virtfs local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap \
		-serial "file:$2.console" -serial "file:$2" -display none -no-reboot -nic none >&2
}

go build -o bin/iotape ./cmd/iotape
CGO_ENABLED=0 go build -o bin/iotape-agent ./cmd/iotape-agent
CGO_ENABLED=0 go test -c -o bin/ebpf.test ./record/capture/ebpf

for suite in "${suites[@]}"; do
	dir=$(prepare "$suite") || skip "the kernel of $suite cannot be had from deb.debian.org"
	echo "test-kernels: $suite: ${dir##*/}" >&2
	boot "$dir" "$tmp/$suite.out" || true
	tr -d '\r' <"$tmp/$suite.out" | sed 's/^/    /' >&2
	if ! grep -q '^DONE' "$tmp/$suite.out"; then
		echo "test-kernels: $suite: the machine did not come to the end of the tests" >&2
		tail -20 "$tmp/$suite.out.console" >&2
	fi
done

# The table: a row for each thing that was tried, a column for each kernel.
table() {
	local suite feature
	printf '| what |'
	for suite in "${suites[@]}"; do
		printf ' %s: %s |' "$suite" "$(sed -n 's/^KERNEL //p' "$tmp/$suite.out" | tr -d '\r')"
	done
	printf '\n|---|'
	for suite in "${suites[@]}"; do printf -- '---|'; done
	echo
	sed -n 's/^\(ok\|FAIL\)\t\([^\t]*\).*/\2/p' "$tmp/${suites[-1]}.out" | tr -d '\r' | while read -r feature; do
		printf '| %s |' "$feature"
		for suite in "${suites[@]}"; do
			printf ' %s |' "$(tr -d '\r' <"$tmp/$suite.out" | awk -F'\t' -v f="$feature" \
				'$2 == f { print $1 == "ok" ? "yes" : "no: " $3; found = 1 } END { if (!found) print "not tried" }')"
		done
		echo
	done
}
table
if [ -n "$write" ]; then
	sed -i '/^<!-- table -->/q' docs/kernels.md
	{ echo; table; } >>docs/kernels.md
fi
! grep -l '^FAIL' "$tmp"/*.out >/dev/null && [ "$(grep -l '^DONE' "$tmp"/*.out | wc -l)" = "${#suites[@]}" ]
