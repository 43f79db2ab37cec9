// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/internal/team"
	"github.com/iotape/iotape/replay/execute"
	"github.com/iotape/iotape/replay/schedule"
)

// Join makes this process a member of the team whose hub is at an address, and does its
// part. Name is what the hub calls it; "" leaves that to the hub.
func Join(ctx context.Context, hub, secretFile, name string) error {
	w, err := team.Join(ctx, hub, secretFile, name)
	if err != nil {
		return err
	}
	defer w.Close()
	kind, b, err := w.Receive()
	if err != nil {
		return fmt.Errorf("the hub at %s: %w", hub, err)
	}
	var t task
	if kind != kindPart || json.Unmarshal(b, &t) != nil {
		return fmt.Errorf("the hub at %s does not say what to do", hub)
	}
	go w.Ping()
	ended := make(chan struct{})
	answer, err := t.do(ctx, w, ended)
	if err != nil {
		return errors.Join(err, w.Send(kindFail, []byte(err.Error())))
	}
	if err := w.Send(kindAnswer, answer); err != nil {
		return err
	}
	<-ended // the hub has all answers
	return nil
}

// do does the part, and passes on what the replay and the others say, the latter until
// the connection ends; then it closes ended.
func (t *task) do(ctx context.Context, w *team.Wire, ended chan<- struct{}) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	mine, theirs := os.NewFile(uintptr(pair[0]), "link"), os.NewFile(uintptr(pair[1]), "link")
	defer mine.Close()
	defer unix.Shutdown(pair[0], unix.SHUT_RDWR)
	defer theirs.Close()
	go func() {
		defer close(ended)
		for {
			kind, b, err := w.Receive()
			if err == nil && kind != kindSignal {
				err = errors.New("it said something that makes no sense")
			}
			if err != nil {
				cancel(fmt.Errorf("the hub: %w", err))
				return
			}
			_, _ = mine.Write(b) // the part may be done
		}
	}()
	passedOn := make(chan struct{})
	go func() {
		defer close(passedOn)
		b := make([]byte, 1024*schedule.RecordBytes)
		have := 0
		for {
			n, err := mine.Read(b[have:])
			if n == 0 || err != nil {
				return
			}
			have += n
			whole := have - have%schedule.RecordBytes
			if whole > 0 && w.Send(kindSignal, b[:whole]) != nil {
				return
			}
			have = copy(b, b[whole:have])
		}
	}()
	answer, err := execute.RunPart(ctx, t.Config, execute.Part{Index: t.Part, Members: t.Members, Link: theirs})
	if err != nil {
		return nil, errors.Join(context.Cause(ctx), err)
	}
	theirs.Close()
	<-passedOn // others may wait for the last that was done
	return answer, nil
}
