package hosts

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"iotape/replay"
)

// Options say who the members are. Names is needed.
type Options struct {
	// Names are the hosts, one for each member.
	Names []string
	// Launch is how to run a command on a host: words in which {host} stands for its
	// name and {command}, a word of its own, for the command. With {n}, the number of
	// members, it is run once and has to start as many. "" runs them all here.
	Launch string
	// Listen is where members reach the hub; "" is a port of the loopback device.
	Listen string
	// Secret is a file that is the same on all hosts; "" makes one, for hosts that share
	// the directory for temporary files.
	Secret string
	// Wait is how long members may take to join; 0 is half a minute.
	Wait time.Duration
	// Program is iotape on the hosts; "" is the running one.
	Program string
}

// Team is the hub. It makes one replay.
type Team struct {
	o     Options
	words []string
	tls   *tls.Config
	own   string // secret that is to be removed
}

var _ replay.Team = (*Team)(nil)

// New checks the options. The Team is to be closed.
func New(o *Options) (*Team, error) {
	t := &Team{o: *o, words: strings.Fields(cmp.Or(o.Launch, "{command}"))}
	if len(t.o.Names) == 0 || slices.Contains(t.o.Names, "") {
		return nil, errors.New("a team needs names of hosts")
	}
	if !slices.Contains(t.words, "{command}") {
		return nil, fmt.Errorf("launch %q has no word {command}", o.Launch)
	}
	if _, err := exec.LookPath(t.words[0]); err != nil && t.words[0] != "{command}" {
		return nil, fmt.Errorf("launch %q: %s: %w", o.Launch, t.words[0], errors.Unwrap(err))
	}
	t.o.Listen = cmp.Or(o.Listen, "127.0.0.1:0")
	if host, _, err := net.SplitHostPort(t.o.Listen); err != nil {
		return nil, fmt.Errorf("listen on %q: %w", o.Listen, err)
	} else if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return nil, fmt.Errorf("listen on %q: name an address that the hosts reach", o.Listen)
	}
	t.o.Wait = cmp.Or(o.Wait, silence)
	var err error
	if t.o.Program == "" {
		if t.o.Program, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	if t.o.Secret == "" {
		if t.own, err = makeSecret(); err != nil {
			return nil, err
		}
		t.o.Secret = t.own
	}
	secret, err := readSecret(t.o.Secret)
	if err == nil {
		t.tls, err = tlsOf(secret)
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// Close removes the secret that New made.
func (t *Team) Close() error {
	if t.own == "" {
		return nil
	}
	return os.Remove(t.own)
}

// Size is how many members there are.
func (t *Team) Size() int { return len(t.o.Names) }

// member is one as the hub sees it.
type member struct {
	*wire
	name   string
	ready  bool
	answer []byte
}

// task is what a member is told.
type task struct {
	Part   int             `json:"part"`
	Of     int             `json:"of"`
	Config json.RawMessage `json:"config"`
}

// Run launches the members, has them do their parts, and ends them.
func (t *Team) Run(ctx context.Context, config []byte) ([]replay.Answer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l, err := net.Listen("tcp", t.o.Listen)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	var launched sync.WaitGroup
	defer launched.Wait()
	defer cancel(nil) // before waiting for them
	t.launch(ctx, l.Addr().String(), &launched, cancel)
	members, err := t.joined(ctx, l)
	defer func() {
		for _, m := range members {
			m.conn.Close()
		}
	}()
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() {
		for _, m := range members {
			m.conn.Close()
		}
	})
	defer stop()
	for i, m := range members {
		b, err := json.Marshal(task{i, len(members), config})
		if err == nil {
			err = m.send(kindPart, b)
		}
		if err != nil {
			return nil, fmt.Errorf("host %s: %w", m.name, err)
		}
		go m.ping()
	}
	if err := t.relay(ctx, members, cancel); err != nil {
		return nil, err
	}
	answers := make([]replay.Answer, len(members))
	for i, m := range members {
		answers[i] = replay.Answer{Member: m.name, Data: m.answer}
	}
	return answers, nil
}

// launch starts the members. One that ends before its time ends them all.
func (t *Team) launch(ctx context.Context, hub string, running *sync.WaitGroup, cancel context.CancelCauseFunc) {
	names := t.o.Names
	once := slices.ContainsFunc(t.words, func(w string) bool { return strings.Contains(w, "{n}") })
	if once {
		names = names[:1]
	}
	for _, name := range names {
		command := []string{t.o.Program, "replay-host", "--hub", hub, "--secret", t.o.Secret}
		if !once {
			command = append(command, "--name", name)
		}
		var argv []string
		for _, w := range t.words {
			if w == "{command}" {
				argv = append(argv, command...)
				continue
			}
			argv = append(argv, strings.NewReplacer("{host}", name, "{n}", strconv.Itoa(len(t.o.Names))).Replace(w))
		}
		if once {
			name = argv[0]
		}
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.WaitDelay = 5 * time.Second
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		var said bytes.Buffer
		cmd.Stderr = &limited{w: &said, left: 4096}
		running.Go(func() {
			if err := cmd.Run(); err != nil {
				if line, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n"); line != "" {
					err = fmt.Errorf("%w: %s", err, line)
				}
				cancel(fmt.Errorf("host %s: its replayer ended: %w", name, err))
			}
		})
	}
}

// limited keeps the first bytes of what is written.
type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	n := min(len(b), l.left)
	l.left -= n
	_, err := l.w.Write(b[:n])
	return len(b), err
}

// joined waits for all members.
func (t *Team) joined(ctx context.Context, l net.Listener) (members []*member, err error) {
	end := time.Now().Add(t.o.Wait)
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	_ = l.(*net.TCPListener).SetDeadline(end)
	for len(members) < len(t.o.Names) {
		c, err := l.Accept()
		if cause := context.Cause(ctx); cause != nil {
			return members, cause
		}
		if err != nil {
			return members, fmt.Errorf("%s did not join within %v", t.missing(members), t.o.Wait)
		}
		_ = c.SetDeadline(end)
		conn := tls.Server(c, t.tls)
		if conn.Handshake() != nil {
			c.Close() // somebody else
			continue
		}
		m := &member{wire: newWire(conn)}
		kind, name, err := m.receive()
		if err != nil || kind != kindJoin {
			c.Close()
			continue
		}
		_ = c.SetDeadline(time.Time{})
		if m.name = string(name); m.name == "" {
			m.name = fmt.Sprintf("%d (%s)", len(members)+1, c.RemoteAddr())
		} else if !slices.Contains(t.o.Names, m.name) || slices.ContainsFunc(members, func(o *member) bool { return o.name == m.name }) && countOf(t.o.Names, m.name) < 2 {
			c.Close()
			continue
		}
		members = append(members, m)
	}
	slices.SortStableFunc(members, func(a, b *member) int {
		return cmp.Compare(slices.Index(t.o.Names, a.name), slices.Index(t.o.Names, b.name))
	})
	return members, nil
}

func countOf(names []string, name string) (n int) {
	for _, s := range names {
		if s == name {
			n++
		}
	}
	return n
}

// missing names who has not joined.
func (t *Team) missing(members []*member) string {
	var names []string
	for _, name := range t.o.Names {
		if !slices.ContainsFunc(members, func(m *member) bool { return m.name == name }) {
			names = append(names, name)
		}
	}
	if len(names) == 0 || strings.Contains(t.o.Launch, "{n}") {
		return fmt.Sprintf("%d of %d members", len(t.o.Names)-len(members), len(t.o.Names))
	}
	return "host " + strings.Join(names, ", ")
}

// relay passes on what members say until all have answered.
func (t *Team) relay(ctx context.Context, members []*member, cancel context.CancelCauseFunc) error {
	var mu sync.Mutex // of the members' states
	var reading sync.WaitGroup
	for i, m := range members {
		reading.Go(func() {
			for m.answer == nil {
				kind, b, err := m.receive()
				switch {
				case err != nil:
					var late net.Error
					if errors.As(err, &late) && late.Timeout() {
						err = fmt.Errorf("nothing was heard of it for %v", silence)
					} else if errors.Is(err, io.EOF) {
						err = errors.New("it ended without a report")
					}
					cancel(fmt.Errorf("host %s: %w", m.name, err))
					return
				case kind == kindFail:
					cancel(fmt.Errorf("host %s: %s", m.name, b))
					return
				case kind == kindAnswer:
					m.answer = b
				case kind == kindSignal && len(b)%replay.RecordBytes == 0:
					if b = t.control(&mu, members, m, b); len(b) == 0 {
						continue
					}
					for k, o := range members {
						if k != i {
							_ = o.send(kindSignal, b) // its own reader says what is wrong
						}
					}
				default:
					cancel(fmt.Errorf("host %s: it said something that makes no sense", m.name))
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
	for r := range slices.Chunk(b, replay.RecordBytes) {
		if binary.LittleEndian.Uint32(r) != replay.ControlLane {
			rest = append(rest, r...)
			continue
		}
		mu.Lock()
		m.ready = true
		all := !slices.ContainsFunc(members, func(m *member) bool { return !m.ready })
		mu.Unlock()
		if all {
			begin := binary.LittleEndian.AppendUint32(nil, replay.ControlLane)
			begin = binary.LittleEndian.AppendUint64(begin, replay.Go)
			for _, o := range members {
				_ = o.send(kindSignal, begin)
			}
		}
	}
	return rest
}
