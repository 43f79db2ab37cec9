// SPDX-License-Identifier: Apache-2.0

package interpose

import (
	"bytes"
	"debug/elf"
	_ "embed" // the code
	"fmt"
	"sync"
)

//go:generate inproc/build.sh inproc_amd64.o

//go:embed inproc_amd64.o
var object []byte

// code is what runs in recorded processes: position-independent, beginning at offset 0.
type code struct {
	text    []byte
	symbols map[string]uint64 // offsets, by name

	// Offsets of inproc/entry.S.
	gatesEnd, common, commonSaved, flagsSaved, call, gate, gateEnd uint64
	again, committed, pendingChecked, restoreEnd                   uint64
	pass, passGate, passEnd, passDone, check, checkDone, checkEnd  uint64
	tracedWay, raw, trap, trapEnd, restorerEnd, settle, checking   uint64
	userBegin, userEnd, userFault                                  uint64
	arming, unarmed                                                uint64
	loader, loaderUnarmed, settling                                uint64
	loaderGatesEnd, announceEnd, loaderEnd                         uint64
	remote, remoteData, remoteName, remoteEnd                      uint64
	orphan, orphanEnd, restorer                                    uint64
}

// inproc returns the code.
var inproc = sync.OnceValues(loadCode)

func loadCode() (*code, error) {
	f, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		return nil, fmt.Errorf("read the code for processes: %w", err)
	}
	defer f.Close()
	c := &code{symbols: map[string]uint64{}}
	if c.text, err = f.Section(".text").Data(); err != nil {
		return nil, fmt.Errorf("read the code for processes: %w", err)
	}
	symbols, err := f.Symbols()
	if err != nil {
		return nil, fmt.Errorf("read the symbols of the code for processes: %w", err)
	}
	for _, s := range symbols {
		c.symbols[s.Name] = s.Value
	}
	for name, to := range map[string]*uint64{
		"gates_end": &c.gatesEnd, "common": &c.common, "common_saved": &c.commonSaved, "flags_saved": &c.flagsSaved,
		"call": &c.call, "gate": &c.gate, "gate_end": &c.gateEnd, "again": &c.again, "committed": &c.committed,
		"pending_checked": &c.pendingChecked, "restore_end": &c.restoreEnd,
		"pass": &c.pass, "pass_gate": &c.passGate, "pass_end": &c.passEnd, "pass_done": &c.passDone,
		"check": &c.check, "check_done": &c.checkDone, "check_end": &c.checkEnd, "traced_way": &c.tracedWay,
		"raw": &c.raw, "trap": &c.trap, "trap_end": &c.trapEnd, "restorer_end": &c.restorerEnd,
		"settle": &c.settle, "checking": &c.checking,
		"user_begin": &c.userBegin, "user_end": &c.userEnd, "user_fault": &c.userFault,
		"arming": &c.arming, "unarmed": &c.unarmed,
		"loader": &c.loader, "loader_unarmed": &c.loaderUnarmed, "settling": &c.settling,
		"loader_gates_end": &c.loaderGatesEnd, "announce_end": &c.announceEnd, "loader_end": &c.loaderEnd,
		"remote": &c.remote, "remote_data": &c.remoteData, "remote_name": &c.remoteName, "remote_end": &c.remoteEnd,
		"orphan": &c.orphan, "orphan_end": &c.orphanEnd, "restorer": &c.restorer,
	} {
		v, ok := c.symbols[name]
		if !ok {
			return nil, fmt.Errorf("the code for processes lacks %s", name)
		}
		*to = v
	}
	return c, nil
}
