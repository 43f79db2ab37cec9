// SPDX-License-Identifier: Apache-2.0

package result

// LeftOff counts what a replay did not make because it gives rights to whoever can reach it, or because only root may.
type LeftOff struct {
	SetID        uint64 `json:"set_id"`       // set-user-id and set-group-id bits: entries and calls with one
	Capabilities uint64 `json:"capabilities"` // likewise, of programs
	Devices      uint64 `json:"devices"`      // numbers of device nodes
	// Owners and Attributes are what only root can set: owners of files, and extended attributes that begin
	// with "trusted." or "security.". They are counted if another user replays.
	Owners     uint64 `json:"owners,omitempty"`
	Attributes uint64 `json:"attributes,omitempty"`
	// AccessLists counts access lists that were made without entries for other users and groups, which an ordinary
	// user's replay cannot name.
	AccessLists uint64 `json:"access_lists,omitempty"`
}

// Add adds what another part left off.
func (l *LeftOff) Add(o LeftOff) {
	l.SetID += o.SetID
	l.Capabilities += o.Capabilities
	l.Devices += o.Devices
	l.Owners += o.Owners
	l.Attributes += o.Attributes
	l.AccessLists += o.AccessLists
}
