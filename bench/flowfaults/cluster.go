// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/iotape/iotape/analyze/flow"
	"github.com/iotape/iotape/trace"
)

// scenario is a cluster, and the one thing that it does wrong.
type scenario struct {
	Shape   string // pipeline, replication, broadcast, logs, requests
	Hosts   int
	Form    string // of messages on connections
	Kind    string // of the bytes in them
	Content string // what the tapes have of it: full, hash, signature
	Fault   string // "" for none
	Seed    uint64
}

func (s *scenario) String() string {
	return fmt.Sprintf("%s of %d hosts, %s, %s, content %s, seed %d", s.Shape, s.Hosts, s.Form, s.Kind, s.Content,
		s.Seed)
}

const (
	leastShown = 32 // bytes that tell a message from others

	messages = 24
	keys     = 8 // of requests
)

// cluster is the nodes of a scenario. An output @N is a connection to node N.
type cluster struct {
	*scenario
	dir     string
	nodes   []node
	faulty  int   // node
	message int   // that it does wrong
	first   []int // nodes that have to end before the others begin
}

// build lays a scenario out.
func build(s *scenario, dir string) *cluster {
	c := &cluster{scenario: s, dir: dir, nodes: make([]node, s.Hosts), faulty: s.Hosts - 1}
	for i := range c.nodes {
		c.nodes[i] = node{In: "listen", Form: s.Form, Level: i % 4, Kind: s.Kind, Seed: s.Seed}
	}
	store := func(i int) string { return filepath.Join(dir, fmt.Sprintf("store%d", i)) }
	c.nodes[0].In, c.nodes[0].Count = "make", messages
	last := s.Hosts - 1
	switch s.Shape {
	case "pipeline", "logs":
		for i := range last {
			c.nodes[i].Outs = []string{fmt.Sprintf("@%d", i+1)}
		}
		c.nodes[last].Outs = []string{store(last)}
		c.faulty = 1 + int(s.Seed)%last
		if s.Shape == "logs" {
			c.nodes[0].Outs, c.nodes[1].In = []string{store(0)}, store(0)
			c.first = []int{0}
		}
	case "replication", "broadcast":
		c.nodes[0].Outs = []string{"@1"}
		if s.Shape == "replication" {
			c.nodes[1].Outs = []string{store(1)}
		}
		for i := 2; i < s.Hosts; i++ {
			c.nodes[1].Outs = append(c.nodes[1].Outs, fmt.Sprintf("@%d", i))
			c.nodes[i].Outs = []string{store(i)}
		}
		if c.faulty = 1 + int(s.Seed)%last; c.faulty == 1 {
			c.nodes[1].Out = int(s.Seed) % len(c.nodes[1].Outs)
		}
	case "requests":
		c.nodes[0] = node{In: "ask", Count: keys, Outs: []string{"@1"}, Form: s.Form, Kind: s.Kind, Seed: s.Seed}
		c.nodes[1].In, c.nodes[1].Outs = "serve", []string{store(1)}
	}
	for i := range c.nodes {
		if out := c.nodes[i].Outs[0]; out[0] == '/' {
			c.nodes[i].Verify = out
		}
	}
	c.message = 6 + int(s.Seed*7)%(messages-10)
	if s.Shape == "requests" {
		c.message = int(s.Seed) % keys
	}
	if s.Fault == "cut" {
		for c.nodes[c.faulty].Verify == "" {
			c.faulty++
		}
	} else {
		c.nodes[c.faulty].Fault, c.nodes[c.faulty].Message = s.Fault, c.message
	}
	return c
}

// running is a node that is recorded.
type running struct {
	cmd   *exec.Cmd
	stdin io.Closer
	out   *bufio.Scanner
	err   bytes.Buffer
}

// start records a node.
func (c *cluster) start(ctx context.Context, iotape string, i int) (*running, error) {
	arg, err := json.Marshal(&c.nodes[i])
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r := &running{cmd: exec.CommandContext(ctx, iotape, "record", "--no-index", "--backend", "ptrace",
		"--content", c.Content, "-o", c.tape(i), "--", self, nodeWord, string(arg))}
	r.cmd.Stderr = &r.err
	if r.stdin, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.out = bufio.NewScanner(out)
	return r, r.cmd.Start()
}

func (c *cluster) tape(i int) string { return filepath.Join(c.dir, fmt.Sprintf("%d.tape", i)) }

// says waits for a line that begins with a word, and returns what is behind it.
func (r *running) says(word string) (string, error) {
	for r.out.Scan() {
		if rest, ok := strings.CutPrefix(r.out.Text(), word); ok {
			return strings.TrimSpace(rest), nil
		}
	}
	return "", fmt.Errorf("a node ended without %q: %s", word, r.err.String())
}

// end waits for the end of a node and its recording.
func (r *running) end() error {
	r.stdin.Close()
	for r.out.Scan() {
		continue
	}
	if err := r.cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, r.err.String())
	}
	return nil
}

// run runs the cluster, and records each node.
func (c *cluster) run(ctx context.Context, iotape string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, i := range c.first {
		if r, err := c.start(ctx, iotape, i); err != nil {
			return err
		} else if err := c.finish(r); err != nil {
			return err
		}
	}
	nodes := make([]*running, len(c.nodes))
	ports := make([]string, len(c.nodes))
	for i := len(c.nodes) - 1; i >= 0; i-- {
		if slices.Contains(c.first, i) {
			continue
		}
		n := &c.nodes[i]
		for k, out := range n.Outs {
			var to int
			if _, err := fmt.Sscanf(out, "@%d", &to); err == nil {
				n.Outs[k] = "127.0.0.1:" + ports[to]
			}
		}
		var err error
		if nodes[i], err = c.start(ctx, iotape, i); err != nil {
			return err
		}
		if n.In == "listen" || n.In == "serve" {
			if ports[i], err = nodes[i].says("port"); err != nil {
				return err
			}
		}
	}
	return c.finish(slices.DeleteFunc(nodes, func(r *running) bool { return r == nil })...)
}

// finish waits until all nodes are done, cuts off the file that is to be, and has the nodes end.
func (c *cluster) finish(nodes ...*running) error {
	for _, r := range nodes {
		if _, err := r.says("done"); err != nil {
			return err
		}
	}
	if len(nodes) > 1 && c.Fault == "cut" {
		if err := os.Truncate(c.nodes[c.faulty].Verify, 3*messageBytes); err != nil {
			return err
		}
	}
	for _, r := range nodes {
		if err := r.end(); err != nil {
			return err
		}
	}
	return nil
}

// verdict is what flow said of a cluster.
type verdict struct {
	Found  bool     // the fault, by its name, with the right host and message
	Said   bool     // that something cannot be compared, which is as good where nothing is decoded
	Others []string // findings that are not of the fault
	Text   string   // everything, the same for all orders of the tapes
}

// names are what flow calls the faults.
var names = map[string]flow.Problem{
	"lost": flow.Lost, "truncated": flow.Truncated, "duplicated": flow.Duplicated, "reordered": flow.Reordered,
	"changed": flow.Changed, "stale": flow.Stale, "cut": flow.Truncated,
}

// judge asks flow about the tapes, in an order. What is compressed need only be named, unless it is decoded.
func (c *cluster) judge(ctx context.Context, order []int, decode bool) (*verdict, error) {
	var tapes []*trace.Tape
	for _, i := range order {
		t, err := trace.Open(c.tape(i))
		if err != nil {
			return nil, err
		}
		defer t.Close()
		tapes = append(tapes, t)
	}
	f, err := flow.Load(ctx, tapes, &flow.Options{Decode: decode})
	if err != nil {
		return nil, err
	}
	v := &verdict{Said: slices.ContainsFunc(f.Notes(),
		func(s string) bool { return strings.Contains(s, "cannot be compared beyond here") })}
	var all []string
	for _, x := range f.Findings() {
		if !x.Problem.Wrong() && x.Problem != flow.Reordered {
			continue
		}
		at := x.Moves[0]
		if x.Problem == flow.Differing {
			at = x.Moves[len(x.Moves)-1]
		}
		tape, _ := f.Locate(f.Move(at).Event)
		host := order[tape]
		all = append(all, fmt.Sprintf("%s at %d, %d bytes", x.Problem, host, x.Bytes))
		switch {
		case x.Problem == names[c.Fault] && host == c.faulty && c.shows(f, &x):
			v.Found = true
		case c.Fault != "" && x.Problem == flow.Differing: // what follows of it
		default:
			v.Others = append(v.Others, fmt.Sprintf("%s: %s", x.Problem, x.Text))
		}
	}
	slices.Sort(all)
	v.Text = strings.Join(all, "\n")
	return v, nil
}

// shows reports whether a finding is about the message that the fault was at.
func (c *cluster) shows(f *flow.Flow, x *flow.Finding) bool {
	if c.Fault == "cut" {
		return strings.Contains(x.Text, c.nodes[c.faulty].Verify)
	}
	for _, id := range x.Moves {
		b, err := f.Bytes(id)
		if err != nil {
			return false
		}
		if len(b) == 0 {
			return true // no content in the tapes: the host has to do
		}
		if len(b) < leastShown {
			continue
		}
		for k := range 2*keys + messages {
			near := k == c.message || c.Fault == "reordered" && k == c.message+1 ||
				c.Shape == "requests" && k%keys == c.message
			if near && c.has(b, k) {
				return true
			}
		}
	}
	return false
}

// has reports whether bytes are of message k, as it was sent or as it was before it was compressed.
func (c *cluster) has(b []byte, k int) bool {
	kinds := []string{c.Kind}
	if compressors[c.Kind] != nil {
		kinds = append(kinds, "text")
	}
	return slices.ContainsFunc(kinds, func(kind string) bool {
		m := message(kind, c.Seed, k)
		if bytes.Contains(m, b) || bytes.Contains(b, m) {
			return true
		}
		name, each := strings.CutSuffix(c.Form, eachAlone)
		if !each {
			return false
		}
		m = compressed(compressors[name], m)
		return bytes.Contains(m, b) || bytes.Contains(b, m)
	})
}

// orders are those in which the tapes are given.
func (c *cluster) orders() [][]int {
	var up []int
	for i := range c.nodes {
		up = append(up, i)
	}
	down := slices.Clone(up)
	slices.Reverse(down)
	turned := append(slices.Clone(up[len(up)/2:]), up[:len(up)/2]...)
	return [][]int{up, down, turned}
}

// try runs a scenario, and asks flow in all orders.
func try(ctx context.Context, s *scenario, iotape, dir string) (*verdict, error) {
	dir, err := os.MkdirTemp(dir, "cluster")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	c := build(s, dir)
	if err := c.run(ctx, iotape); err != nil {
		return nil, fmt.Errorf("%s: %w", s, err)
	}
	v, err := c.judged(ctx, false)
	if err != nil || !s.recognised() {
		return v, err
	}
	decoded, err := c.judged(ctx, true)
	if err != nil {
		return nil, err
	}
	v.Found = (v.Found || v.Said) && decoded.Found
	for _, x := range decoded.Others {
		v.Others = append(v.Others, "decoded: "+x)
	}
	return v, nil
}

// judged asks flow in all orders.
func (c *cluster) judged(ctx context.Context, decode bool) (first *verdict, err error) {
	for _, order := range c.orders() {
		v, err := c.judge(ctx, order, decode)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.scenario, err)
		}
		if first == nil {
			first = v
		} else if v.Text != first.Text {
			first.Others = append(first.Others, fmt.Sprintf("another verdict for the order %v:\n%s\nwas\n%s", order,
				v.Text, first.Text))
		}
	}
	return first, nil
}
