// SPDX-License-Identifier: Apache-2.0

// Package fleet tests agents and collectors as a fleet: the programs themselves, in
// network namespaces, and what goes wrong between them. After each fault the balance
// has to close: events made up = events stored + events declared lost, and no event
// is stored twice. The tests print it.
//
// IOTAPE_FLEET_AGENTS=1000 has them run with so many agents; scripts/fleet-faults.sh
// does that.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package fleet
