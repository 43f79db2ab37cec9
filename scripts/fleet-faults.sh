#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# fleet-faults.sh [AGENTS [TESTS]]: what can go wrong in a fleet, with so many agents (1000 if not
# given), and prints the balance after each fault. As root; make test runs it with 50.
# IOTAPE_FLEET_LOG=DIR keeps what the programs said.
set -eu -o pipefail
cd "$(dirname "$0")/.."
export IOTAPE_FLEET_AGENTS=${1:-1000}
ulimit -n "$(ulimit -H -n)"
# One fault at a time: what is tested is faults, not how busy two processors can be.
exec go test -count=1 -parallel 1 -timeout 60m -v -run "${2:-.}" ./e2e/fleet
