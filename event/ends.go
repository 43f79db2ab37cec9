// SPDX-License-Identifier: Apache-2.0

package event

// Ends says of which sockets a record of an operation has the ends (package event/socket).
type Ends uint8

// The rules.
const (
	EndsNever       Ends = iota
	EndsOfDatagrams      // of those for datagrams, which get an address by the first that they send
	EndsAlways
)

// TellsEnds returns of which of its sockets a record of the operation has the ends: of all
// where it makes them, gives them an address or a peer, or brings them from elsewhere.
func (op Op) TellsEnds() Ends {
	switch op.Like() {
	case OpSocket, OpSocketpair, OpBind, OpConnect, OpListen, OpAccept, OpAccept4, OpRecvmsg, OpRecvmmsg, OpPidfdGetfd:
		return EndsAlways
	case OpSendto, OpSendmsg, OpSendmmsg:
		return EndsOfDatagrams
	}
	return EndsNever
}
