#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# After a removal. A purge (dpkg) also removes the configuration and the agent's spool. What a
# collector has collected stays, unless there is nothing of it.
set -e
[ ! -d /run/systemd/system ] || systemctl daemon-reload
if [ "$1" = purge ]; then
	rm -rf /etc/iotape /var/lib/iotape-agent
	rmdir /var/lib/iotape /var/lib/private/iotape 2>/dev/null || true
fi
