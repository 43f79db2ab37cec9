// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
)

// Part says which member of how many one is.
type Part struct {
	Index   int
	Members []string // their names
	// Link leads to the other members: a socket, on which records of schedule.RecordBytes
	// are sent and received. When all members have sent schedule.Ready, each of them must
	// get schedule.Go. All other records go to all other members.
	Link *os.File `json:"-"`
}

// RunPart does the part of a member, with the configuration that a Team got. It returns an
// Answer as JSON.
func RunPart(ctx context.Context, config []byte, part Part) ([]byte, error) {
	var c Config
	if err := json.Unmarshal(config, &c); err != nil {
		return nil, fmt.Errorf("the team's configuration: %w", err)
	}
	if part.Index < 0 || part.Index >= len(part.Members) || part.Link == nil {
		return nil, fmt.Errorf("part %d of %d", part.Index, len(part.Members))
	}
	c.Part = &part
	a, err := Run(ctx, &c, nil, func(Progress) {})
	if err != nil {
		return nil, err
	}
	return json.Marshal(a)
}
