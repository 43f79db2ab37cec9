// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"

	"github.com/iotape/iotape/internal/team"
	"github.com/iotape/iotape/replay"
	"github.com/iotape/iotape/replay/schedule"
)

// Team is the hub. It makes one replay.
type Team struct{ hub *team.Hub }

var _ replay.Team = (*Team)(nil)

// Options say who the members are: see package team. Command and Helper are not needed.
type Options = team.Options

// New checks the options. The Team is to be closed.
func New(o *Options) (*Team, error) {
	mine := *o
	mine.Command, mine.Helper = "replay-host", "replayer"
	hub, err := team.New(&mine)
	if err != nil {
		return nil, err
	}
	return &Team{hub}, nil
}

// Close forgets a secret that New made up.
func (t *Team) Close() error { return t.hub.Close() }

// Size is how many members there are.
func (t *Team) Size() int { return t.hub.Size() }

// member is one as the hub sees it.
type member struct {
	*team.Member
	ready  bool
	answer []byte
}

// What is sent, beside what package team sends.
const (
	kindPart   = 'C' // hub: what to do, JSON
	kindSignal = 'S' // both: records of schedule.RecordBytes
	kindAnswer = 'A' // member: its report
	kindFail   = 'F' // member: why there is none
)

// task is what the hub sends a member to do.
type task struct {
	Part    int             `json:"part"`
	Members []string        `json:"members"` // all parts', in their order
	Config  json.RawMessage `json:"config"`
}

// Run launches the members, has them do their parts, and ends them.
func (t *Team) Run(ctx context.Context, config []byte) ([]replay.Answer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	joined, end, err := t.hub.Gather(ctx, cancel)
	if err != nil {
		return nil, err
	}
	defer end()
	defer cancel(nil) // before waiting for them
	members, names := make([]*member, len(joined)), make([]string, len(joined))
	for i, m := range joined {
		members[i], names[i] = &member{Member: m}, m.Name
	}
	for i, m := range members {
		b, err := json.Marshal(task{i, names, config})
		if err == nil {
			err = m.Send(kindPart, b)
		}
		if err != nil {
			return nil, fmt.Errorf("host %s: %w", m.Name, err)
		}
	}
	if err := t.relay(ctx, members, cancel); err != nil {
		return nil, err
	}
	answers := make([]replay.Answer, len(members))
	for i, m := range members {
		answers[i] = replay.Answer{Member: m.Name, Data: m.answer}
	}
	return answers, nil
}

// relay passes on what members say until all have answered.
func (t *Team) relay(ctx context.Context, members []*member, cancel context.CancelCauseFunc) error {
	var mu sync.Mutex // of the members' states
	var reading sync.WaitGroup
	for i, m := range members {
		reading.Go(func() {
			for m.answer == nil {
				kind, b, err := m.Receive()
				switch {
				case err != nil:
					var late net.Error
					if errors.As(err, &late) && late.Timeout() {
						err = fmt.Errorf("nothing was heard of it for %v", team.Silence)
					} else if errors.Is(err, io.EOF) {
						err = errors.New("it ended without a report")
					}
					cancel(fmt.Errorf("host %s: %w", m.Name, err))
					return
				case kind == kindFail:
					cancel(fmt.Errorf("host %s: %s", m.Name, b))
					return
				case kind == kindAnswer:
					m.answer = b
				case kind == kindSignal && len(b)%schedule.RecordBytes == 0:
					if b = t.control(&mu, members, m, b); len(b) == 0 {
						continue
					}
					for k, o := range members {
						if k != i {
							_ = o.Send(kindSignal, b) // its own reader says what is wrong
						}
					}
				default:
					cancel(fmt.Errorf("host %s: it said something that makes no sense", m.Name))
					return
				}
			}
		})
	}
	reading.Wait()
	if slices.ContainsFunc(members, func(m *member) bool { return m.answer == nil }) {
		return context.Cause(ctx)
	}
	return nil
}

// control acts on the records that are for the hub, and returns the others.
func (t *Team) control(mu *sync.Mutex, members []*member, m *member, b []byte) (rest []byte) {
	for r := range slices.Chunk(b, schedule.RecordBytes) {
		if binary.LittleEndian.Uint32(r) != schedule.ControlQueue {
			rest = append(rest, r...)
			continue
		}
		mu.Lock()
		m.ready = true
		all := !slices.ContainsFunc(members, func(m *member) bool { return !m.ready })
		mu.Unlock()
		if all {
			begin := binary.LittleEndian.AppendUint32(nil, schedule.ControlQueue)
			begin = binary.LittleEndian.AppendUint64(begin, schedule.Go)
			for _, o := range members {
				_ = o.Send(kindSignal, begin)
			}
		}
	}
	return rest
}
