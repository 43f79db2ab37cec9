// SPDX-License-Identifier: Apache-2.0

// Package rundir has the sockets on which running iotapes answer other iotapes: it finds the
// directories of these sockets, which only their user can enter, makes sockets there, and
// finds those of other processes.
package rundir
