#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# After an installation or an upgrade. Nothing is started: that is the administrator's.
set -e
[ ! -d /run/systemd/system ] || systemctl daemon-reload
