// SPDX-License-Identifier: Apache-2.0

package snia

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format/dataseries"
)

// callsText says which operation a call of the schema is, and which of its fields
// is which argument.
//
//go:embed calls.txt
var callsText string

// call is a line of it.
type call struct {
	name string
	op   event.Op
	typ  *dataseries.Type
	args []string // a field, "-", or the name of a structure in capitals
}

// calls returns the calls by their name in the schema, and the best one for each
// operation.
var calls = sync.OnceValues(func() (map[string]*call, map[event.Op]*call) {
	byName, byOp := map[string]*call{}, map[event.Op]*call{}
	for line := range strings.Lines(callsText) {
		w := strings.Fields(line)
		if len(w) == 0 || w[0] == "#" {
			continue
		}
		c := &call{name: w[0], op: event.ByName(w[1]), typ: theSchema().byCall[w[0]], args: w[2:]}
		byName[c.name] = c
		if c.name != "recv" && c.name != "send" { // recvfrom and sendto hold more
			byOp[c.op] = c
		}
	}
	return byName, byOp
})

// structure reports whether an argument stands for a structure.
func structure(arg string) bool { return arg[0] >= 'A' && arg[0] <= 'Z' }

const cString = "\x00" // names end with a NUL in these files

// isName reports whether a field is a C string.
func isName(field string) bool {
	switch field {
	case "given_pathname", "given_oldpathname", "given_newpathname", "given_oldname", "given_newname",
		"target_pathname", "xattr_name", "argument", "environment":
		return true
	}
	return false
}
