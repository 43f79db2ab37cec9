// SPDX-License-Identifier: Apache-2.0

package view

import (
	"os"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/iotape/iotape/analyze/alarm"
	"github.com/iotape/iotape/model/aggregate"
)

// Live is a screen that shows read-outs as they come. Its methods may be called from any
// goroutine.
type Live struct {
	p    *tea.Program
	quit chan struct{}
	done chan struct{}
	err  error
}

// LiveOptions says what a screen shows.
type LiveOptions struct {
	Options
	Title   string // what is counted
	In, Out *os.File
}

// NewLive returns a screen. It takes the terminal with Start and gives it back with Close.
func NewLive(o *LiveOptions) *Live {
	l := &Live{quit: make(chan struct{}, 4), done: make(chan struct{})}
	m := newModel(o.Options, o.Title)
	m.quit = func() {
		select {
		case l.quit <- struct{}{}:
		default:
		}
	}
	l.p = tea.NewProgram(m, tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithoutSignalHandler())
	return l
}

// Start begins to draw.
func (l *Live) Start() {
	go func() {
		defer close(l.done)
		_, l.err = l.p.Run()
		close(l.quit)
	}()
}

// Quit has one each time that the user asks for the end, and is closed when there is no
// screen any more.
func (l *Live) Quit() <-chan struct{} { return l.quit }

// Show shows a read-out, which is the screen's from then on.
func (l *Live) Show(r *aggregate.IntervalSnapshot) { l.p.Send(r) }

// Say shows a line at the bottom.
func (l *Live) Say(line string) { l.p.Send(note(line)) }

// Alarm shows an alarm at the bottom.
func (l *Live) Alarm(a *alarm.Alarm) { l.p.Send(a) }

// Close gives the terminal back.
func (l *Live) Close() error {
	l.p.Quit()
	<-l.done
	return l.err
}

// note is a line for people.
type note string

// Init is tea.Model's.
func (m *model) Init() tea.Cmd { return nil }

// Update is tea.Model's.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case *aggregate.IntervalSnapshot:
		m.take(msg)
	case *alarm.Alarm:
		m.note(m.o.AlarmLine(msg), msg.On)
	case note:
		m.note(string(msg), false)
	case tea.KeyPressMsg:
		m.key(msg.String(), msg.Text)
	case tea.PasteMsg:
		if m.typing {
			m.key("", msg.Content)
		}
	}
	return m, nil
}

// View is tea.Model's.
func (m *model) View() tea.View {
	v := tea.NewView(strings.Join(m.draw(), "\n"))
	v.AltScreen = true
	v.WindowTitle = "iotape top"
	return v
}
