#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test-dist-inside.sh: what test-dist.sh does in a fresh root of Debian.
set -eu -o pipefail
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
cd /

die() { echo "test-dist: $*" >&2; exit 1; }

# All files but those of dpkg itself.
files() {
	find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /var/lib/dpkg -o -path /var/log -o -path /var/cache \) -prune \
		-o ! -type d -printf '%p %y %s %m\n' -o -printf '%p d\n' | LC_ALL=C sort
}

useradd --create-home tester
files >/tmp/before
dpkg -i /iotape.deb >/tmp/install.log 2>&1 || die "the package cannot be installed: $(tail -n 3 /tmp/install.log)"
[ -n "$(iotape version --json)" ] && iotape-agent --version
! ldd "$(command -v iotape)" | grep 'not found' || die "a library is missing"
for f in man/man1/iotape-record.1.gz bash-completion/completions/iotape doc/iotape/copyright doc/iotape/THIRD_PARTY_NOTICES.gz; do
	[ -s "/usr/share/$f" ] || grep -rqs '^path-exclude' /etc/dpkg/dpkg.cfg.d || die "/usr/share/$f is missing"
done
grep -q '^ExecStart=/usr/bin/iotape-agent --config /etc/iotape/agent.toml$' /lib/systemd/system/iotape-agent.service ||
	die "the agent's unit starts something else"

cat >/tmp/try.sh <<'EOF'
set -eu
mkdir "$1" && cd "$1"
iotape record -o a.tape -- sh -c 'mkdir d && echo hello >d/a && mv d/a d/b && cat d/b' >out
grep -q '^hello$' out
iotape print a.tape | grep -q 'rename.*"d/a".*"d/b"'
iotape query a.tape "SELECT count(*) FROM events WHERE op = 'execve'" >/dev/null
iotape replay a.tape --into again --verify
[ "$(find again -name b -exec cat {} +)" = hello ]
EOF
chmod 755 /tmp/try.sh
sh /tmp/try.sh /root/try || die "as root: failed"
setpriv --reuid tester --regid tester --init-groups --reset-env sh /tmp/try.sh /home/tester/try || die "as an ordinary user: failed"
rm -rf /root/try /home/tester/try

dpkg --purge iotape >/tmp/purge.log 2>&1 || die "the package cannot be purged: $(tail -n 3 /tmp/purge.log)"
! grep -i warning /tmp/purge.log || die "purging warns"
files >/tmp/after
diff /tmp/before /tmp/after || die "purging left something, or took what is not the package's"
