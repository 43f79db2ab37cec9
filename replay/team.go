// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/iotape/iotape/replay/execute"
	"github.com/iotape/iotape/replay/result"
)

// Team makes the calls of a replay in several processes, on one host or on many that have
// the same file system: each is a member, and makes the calls of some recorded processes.
//
// All members plan the whole replay, and in the same way; so each knows which of its tasks
// the others wait for, and sends them a record when those are done. They have no common
// clock.
type Team interface {
	// Run has each member do its part, by execute.RunPart with this configuration and a
	// link that carries what a member writes to all others, and returns what they answered.
	Run(ctx context.Context, config []byte) (answers []Answer, err error)
	// Size is how many members there are.
	Size() int
}

// Answer is what came of the part of a member of a team: what execute.RunPart returned.
type Answer struct {
	Member string // for the user
	Data   []byte
}

// runTeam has a team make the calls.
func runTeam(ctx context.Context, team Team, c *execute.Config) (*execute.Answer, error) {
	config, err := json.Marshal(c)
	if err != nil {
		return new(execute.Answer), err
	}
	answers, err := team.Run(ctx, config)
	if err != nil {
		return new(execute.Answer), err
	}
	all := &execute.Answer{Report: result.New()}
	for _, a := range answers {
		var one execute.Answer
		if err := json.Unmarshal(a.Data, &one); err != nil {
			return new(execute.Answer), fmt.Errorf("%s: its report: %w", a.Member, err)
		}
		if one.Report == nil || one.Report.Timing == nil {
			return new(execute.Answer), fmt.Errorf("%s: %w", a.Member, errors.New("it ended without a report"))
		}
		all.Join(&one, a.Member)
	}
	return all, nil
}
