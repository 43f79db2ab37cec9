// SPDX-License-Identifier: Apache-2.0

// Zoom measures how long a browser waits when it zooms in a tape: it starts iotape serve,
// asks for windows of all sizes in random places, as large as a large screen shows, and
// prints the quantiles.
//
//	zoom IOTAPE TAPE
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	windows = 500
	columns = 1000
	rows    = 50
	goal    = 100 * time.Millisecond
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: zoom IOTAPE TAPE")
		os.Exit(2)
	}
	good, err := measure(os.Args[1], os.Args[2])
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "zoom:", err)
		os.Exit(2)
	case !good:
		os.Exit(1)
	}
}

// page is a server that runs.
type page struct {
	http.Client
	base *url.URL
	cmd  *exec.Cmd
}

func start(iotape, tape string) (*page, error) {
	p := &page{cmd: exec.Command(iotape, "serve", tape)}
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("no address: %w", err)
	}
	if p.base, err = url.Parse(strings.TrimSpace(line)); err != nil {
		return nil, err
	}
	if p.Jar, err = cookiejar.New(nil); err != nil {
		return nil, err
	}
	answer, err := p.Get(p.base.String())
	if err != nil {
		return nil, err
	}
	return p, answer.Body.Close()
}

// ask gets JSON; v may be nil. It returns how many bytes came.
func (p *page) ask(path string, v any) (int, error) {
	answer, err := p.Get(p.base.Scheme + "://" + p.base.Host + path)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, answer.Status)
	}
	if err == nil && v != nil {
		err = json.Unmarshal(b, v)
	}
	return len(b), err
}

func measure(iotape, tape string) (good bool, err error) {
	began := time.Now()
	p, err := start(iotape, tape)
	if err != nil {
		return false, err
	}
	defer func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		_ = p.cmd.Wait()
		if u, ok := p.cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			fmt.Printf("serve: %.1f s of CPU, at most %d MiB in memory\n", float64(u.Utime.Nano()+u.Stime.Nano())/1e9,
				u.Maxrss>>10)
		}
	}()
	fmt.Printf("the page is there after %.1f s\n", time.Since(began).Seconds())
	var state struct {
		Ordered, Done bool
	}
	for ordered := false; !state.Done; time.Sleep(200 * time.Millisecond) {
		if _, err := p.ask("/api/state", &state); err != nil {
			return false, err
		}
		if state.Ordered && !ordered {
			ordered = true
			fmt.Printf("causes after %.1f s\n", time.Since(began).Seconds())
		}
	}
	fmt.Printf("all sections after %.1f s\n", time.Since(began).Seconds())
	var about struct {
		From int64 `json:"from_ns"`
		To   int64 `json:"to_ns"`
		Rows []struct {
			From int64 `json:"from_ns"`
			To   int64 `json:"to_ns"`
		}
	}
	if _, err := p.ask("/api/about", &about); err != nil {
		return false, err
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	var took []time.Duration
	bytes := 0
	for range windows {
		length := max((about.To-about.From)>>rnd.IntN(24), 1000)
		from := about.From + rnd.Int64N(about.To-about.From-length+1)
		var list []string // the rows that are busy there
		for i, r := range about.Rows {
			if r.From <= from+length && r.To >= from && len(list) < rows {
				list = append(list, fmt.Sprint(i))
			}
		}
		began := time.Now()
		n, err := p.ask(fmt.Sprintf("/api/window?from=%d&to=%d&columns=%d&arrows=1&rows=%s", from, from+length,
			columns, strings.Join(list, ",")), nil)
		if err != nil {
			return false, err
		}
		took, bytes = append(took, time.Since(began)), max(bytes, n)
	}
	slices.Sort(took)
	at := func(q float64) time.Duration { return took[int(q*float64(len(took)-1))] }
	fmt.Printf("%d windows over HTTP: p50 %v, p90 %v, p99 %v, longest %v (goal: p99 < %v); at most %d KiB\n", len(took),
		at(.5).Round(10*time.Microsecond), at(.9).Round(10*time.Microsecond), at(.99).Round(10*time.Microsecond),
		at(1).Round(10*time.Microsecond), goal, bytes>>10)
	return at(.99) < goal, nil
}
