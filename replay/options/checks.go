// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"strings"
)

// Checks says what a replay compares with the recording.
type Checks uint8

// What can be compared.
const (
	CheckReturns Checks = 1 << iota // return values and error numbers
	CheckData                       // the bytes of every read, and the names and values of attributes
	CheckStat                       // what stat said, as far as it can be reproduced
	CheckDirs                       // what directory listings said
	CheckTree                       // the files in the end

	CheckAll  Checks = CheckReturns | CheckData | CheckStat | CheckDirs | CheckTree
	CheckNone Checks = 0
)

var checkNames = []struct {
	name string
	c    Checks
}{{"returns", CheckReturns}, {"data", CheckData}, {"stat", CheckStat}, {"dirs", CheckDirs}, {"tree", CheckTree},
	{"all", CheckAll}, {"none", CheckNone}}

// ParseChecks reads names with commas between them: returns, data, stat, dirs, tree,
// all and none.
func ParseChecks(s string) (Checks, error) {
	var c Checks
names:
	for _, name := range strings.Split(s, ",") {
		for _, n := range checkNames {
			if n.name == name {
				c |= n.c
				continue names
			}
		}
		return 0, fmt.Errorf("%q cannot be verified: returns, data, stat, dirs and tree can, and all or none of them",
			name)
	}
	return c, nil
}
