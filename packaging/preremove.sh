#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Before a removal (dpkg: remove, rpm: 0), not before an upgrade.
set -e
case $1 in
remove | 0)
	[ ! -d /run/systemd/system ] || systemctl disable --now iotape-agent.service iotape-collector.service \
		iotape-archive.service || true ;;
esac
