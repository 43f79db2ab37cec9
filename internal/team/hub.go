// SPDX-License-Identifier: Apache-2.0

package team

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
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
)

// Options say who the members are. Names and Command are needed.
type Options struct {
	// Names are the hosts, one for each member.
	Names []string
	// Launch is how to run a command on a host: words in which {host} stands for its
	// name and {command}, a word of its own, for the command. With {n}, the number of
	// members, it is run once and has to start as many. "" runs them all here.
	Launch string
	// Listen is where members reach the hub; "" is a port of the loopback device.
	Listen string
	// Secret is a file that is the same on all hosts; "" makes one up, see the package's
	// page.
	Secret string
	// Wait is how long members may take to join; 0 is half a minute.
	Wait time.Duration
	// Program is iotape on the hosts; "" is the running one.
	Program string
	// Command is the subcommand that joins, Helper what it is to the user.
	Command, Helper string
}

// Hub launches teams, one after the other.
type Hub struct {
	o      Options
	words  []string
	once   bool // one launcher starts all
	tls    *tls.Config
	memory *os.File // that has the secret
	input  []byte   // secret for the standard input of members
	secret string   // that members are told to use
}

// New checks the options. The Hub is to be closed.
func New(o *Options) (*Hub, error) {
	h := &Hub{o: *o, words: strings.Fields(cmp.Or(o.Launch, "{command}"))}
	if len(h.o.Names) == 0 || slices.Contains(h.o.Names, "") {
		return nil, errors.New("a team needs names of hosts")
	}
	if !slices.Contains(h.words, "{command}") {
		return nil, fmt.Errorf("launch %q has no word {command}", o.Launch)
	}
	if _, err := exec.LookPath(h.words[0]); err != nil && h.words[0] != "{command}" {
		return nil, fmt.Errorf("launch %q: %s: %w", o.Launch, h.words[0], errors.Unwrap(err))
	}
	h.once = slices.ContainsFunc(h.words, func(w string) bool { return strings.Contains(w, "{n}") })
	h.o.Listen = cmp.Or(o.Listen, "127.0.0.1:0")
	if host, _, err := net.SplitHostPort(h.o.Listen); err != nil {
		return nil, fmt.Errorf("listen on %q: %w", o.Listen, err)
	} else if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return nil, fmt.Errorf("listen on %q: name an address that the hosts reach", o.Listen)
	}
	h.o.Wait = cmp.Or(o.Wait, Silence)
	var err error
	if h.o.Program == "" {
		if h.o.Program, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	var secret []byte
	switch {
	case o.Secret != "":
		h.secret = o.Secret
		secret, err = readSecret(o.Secret)
	case h.once: // launchers do not give everybody their standard input
		secret = []byte(rand.Text())
		h.memory, h.secret, err = memorySecret(secret)
	default:
		secret = []byte(rand.Text())
		h.secret, h.input = FromInput, append(slices.Clone(secret), '\n')
	}
	if err == nil {
		h.tls, err = tlsOf(secret)
	}
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// Close forgets a secret that New made up.
func (h *Hub) Close() error {
	if h.memory == nil {
		return nil
	}
	return h.memory.Close()
}

// Size is how many members there are.
func (h *Hub) Size() int { return len(h.o.Names) }

// Names are the members' names.
func (h *Hub) Names() []string { return h.o.Names }

// grace is how long members may take to end by themselves.
const grace = 5 * time.Second

// Member is one as the hub sees it.
type Member struct {
	*Wire
	Name string
}

// Gather launches the members and returns them when all have joined, in the order of their
// names. When ctx is cancelled their connections are closed; cancel is called if one ends
// before its time, with what it said. The function that is returned ends them all.
func (h *Hub) Gather(ctx context.Context, cancel context.CancelCauseFunc) (members []*Member, end func(), err error) {
	l, err := net.Listen("tcp", h.o.Listen)
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	launching, stop := context.WithCancelCause(ctx)
	var launched sync.WaitGroup
	left := h.launch(launching, l.Addr().String(), &launched, func(err error) { cancel(err); stop(err) })
	joined, err := h.joined(launching, l, left)
	hangUp := func() {
		for _, m := range joined {
			m.Close()
		}
	}
	done := context.AfterFunc(ctx, hangUp)
	end = func() {
		done()
		hangUp()
		ended := make(chan struct{})
		go func() {
			launched.Wait()
			close(ended)
		}()
		select { // members end when they are alone
		case <-ended:
		case <-launching.Done():
		case <-time.After(grace):
		}
		stop(nil)
		<-ended
	}
	if err != nil {
		stop(err)
		end()
		return nil, nil, err
	}
	for _, m := range joined {
		go m.Ping()
	}
	return joined, end, nil
}

// launcher is one that has ended, and found nothing wrong.
type launcher struct {
	host, said string
}

// launch starts the members. A launcher that fails before its time ends them all; one that
// does not is told of.
func (h *Hub) launch(ctx context.Context, hub string, running *sync.WaitGroup,
	cancel context.CancelCauseFunc) <-chan launcher {
	names := h.o.Names
	if h.once {
		names = names[:1]
	}
	left := make(chan launcher, len(names))
	for _, name := range names {
		command := []string{h.o.Program, h.o.Command, "--hub", hub, "--secret", h.secret}
		if !h.once {
			command = append(command, "--name", name)
		}
		var argv []string
		for _, w := range h.words {
			if w == "{command}" {
				argv = append(argv, command...)
				continue
			}
			argv = append(argv, strings.NewReplacer("{host}", name, "{n}", strconv.Itoa(len(h.o.Names))).Replace(w))
		}
		if h.once {
			name = argv[0]
		}
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.WaitDelay = 5 * time.Second
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		if h.input != nil {
			cmd.Stdin = bytes.NewReader(h.input)
		}
		var said bytes.Buffer
		cmd.Stderr = &limited{w: &said, left: 4096}
		running.Go(func() {
			err := cmd.Run()
			line, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n")
			if line != "" {
				line = ": " + line
			}
			if err == nil || errors.Is(err, exec.ErrWaitDelay) { // which says that something it started lives on
				left <- launcher{name, line}
				return
			}
			cancel(fmt.Errorf("host %s: its %s ended: %w%s", name, h.o.Helper, err, line))
		})
	}
	return left
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

// lateJoin is how long after its launcher's end a member may join.
const lateJoin = time.Second

// joined waits for all members, but not for one whose launcher has left. Those who connect
// are greeted beside each other: one that says nothing keeps nobody waiting.
func (h *Hub) joined(ctx context.Context, l net.Listener, left <-chan launcher) (members []*Member, err error) {
	end := time.Now().Add(h.o.Wait)
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	_ = l.(*net.TCPListener).SetDeadline(end)
	come := make(chan *Member)
	var greeted sync.WaitGroup
	greeting, over := context.WithCancel(ctx)
	defer func() {
		over()
		l.Close()
		greeted.Wait()
	}()
	const most = 1024 // connections at a time that have not said who they are
	room := make(chan struct{}, most)
	greeted.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			select {
			case room <- struct{}{}:
			default:
				c.Close()
				continue
			}
			greeted.Go(func() {
				defer func() { <-room }()
				hangUp := context.AfterFunc(greeting, func() { c.Close() })
				m := h.greet(c, end)
				hangUp()
				if m == nil {
					c.Close()
					return
				}
				select {
				case come <- m:
				case <-greeting.Done():
					c.Close()
				}
			})
		}
	})
	late := time.NewTimer(time.Until(end))
	defer late.Stop()
	ended, overdue := map[string]int{}, make(chan launcher, len(h.o.Names)) // launchers, by host
	for len(members) < len(h.o.Names) {
		select {
		case m := <-come:
			if h.names(m, members) {
				members = append(members, m)
			} else {
				m.Close()
			}
		case gone := <-left:
			time.AfterFunc(lateJoin, func() { overdue <- gone })
		case gone := <-overdue:
			ended[gone.host]++
			if h.once {
				return members,
					fmt.Errorf("%s has ended, and %s did not join%s", gone.host, h.missing(members), gone.said)
			}
			if countOf(members, func(m *Member) bool { return m.Name == gone.host }) < ended[gone.host] {
				return members, fmt.Errorf("host %s: its %s did not join, and what launched it has ended%s",
					gone.host, h.o.Helper, gone.said)
			}
		case <-ctx.Done():
			return members, context.Cause(ctx)
		case <-late.C:
			return members, fmt.Errorf("%s did not join within %v", h.missing(members), h.o.Wait)
		}
	}
	slices.SortStableFunc(members, func(a, b *Member) int {
		return cmp.Compare(slices.Index(h.o.Names, a.Name), slices.Index(h.o.Names, b.Name))
	})
	return members, nil
}

// greet hears who has connected; nil: nobody of the team.
func (h *Hub) greet(c net.Conn, end time.Time) *Member {
	if soon := time.Now().Add(greetTime); soon.Before(end) {
		end = soon
	}
	_ = c.SetDeadline(end)
	conn := tls.Server(c, h.tls)
	if conn.Handshake() != nil {
		return nil
	}
	w := NewWire(conn)
	kind, name, err := w.receive(end)
	if err != nil || kind != kindJoin {
		return nil
	}
	_ = c.SetDeadline(time.Time{})
	return &Member{Wire: w, Name: string(name)}
}

// names gives a member its name, and reports whether it is one that is waited for.
func (h *Hub) names(m *Member, members []*Member) bool {
	taken := func(name string) int {
		return countOf(members, func(o *Member) bool { return o.Name == name })
	}
	if rank, ok := strings.CutPrefix(m.Name, rankMark); ok {
		if i, err := strconv.Atoi(rank); err == nil && i >= 0 && i < len(h.o.Names) {
			m.Name = h.o.Names[i]
		} else {
			m.Name = ""
		}
	}
	if m.Name == "" { // the first that is free
		for _, name := range h.o.Names {
			if taken(name) < countOf(h.o.Names, func(s string) bool { return s == name }) {
				m.Name = name
				return true
			}
		}
	}
	return taken(m.Name) < countOf(h.o.Names, func(s string) bool { return s == m.Name })
}

func countOf[T any](list []T, is func(T) bool) (n int) {
	for _, v := range list {
		if is(v) {
			n++
		}
	}
	return n
}

// missing names who has not joined.
func (h *Hub) missing(members []*Member) string {
	var names []string
	for _, name := range h.o.Names {
		if !slices.ContainsFunc(members, func(m *Member) bool { return m.Name == name }) {
			names = append(names, name)
		}
	}
	if len(names) == 0 || h.once {
		return fmt.Sprintf("%d of %d members", len(h.o.Names)-len(members), len(h.o.Names))
	}
	return "host " + strings.Join(names, ", ")
}
