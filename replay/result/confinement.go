// SPDX-License-Identifier: Apache-2.0

package result

import "slices"

// Confinement is by which means the process that made the calls was confined, beside its own
// mounts, which it always has.
type Confinement struct {
	InForce []string `json:"in_force"`
	Missing []string `json:"missing"` // with the reason
}

// Add adds means.
func (c *Confinement) Add(o Confinement) {
	c.InForce = append(c.InForce, o.InForce...)
	c.Missing = append(c.Missing, o.Missing...)
}

// Join adds those of another process: what one lacks is not in force.
func (c *Confinement) Join(o Confinement) {
	if len(c.InForce)+len(c.Missing) == 0 {
		*c = Confinement{slices.Clone(o.InForce), slices.Clone(o.Missing)}
		return
	}
	c.InForce = slices.DeleteFunc(c.InForce, func(s string) bool { return !slices.Contains(o.InForce, s) })
	for _, s := range o.Missing {
		if !slices.Contains(c.Missing, s) {
			c.Missing = append(c.Missing, s)
		}
	}
}
