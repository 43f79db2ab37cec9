// SPDX-License-Identifier: Apache-2.0

package web_test

import (
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/iotape/iotape/analyze/report/suite"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/web"
	"github.com/iotape/iotape/web/viewmodel/viewmodeltest"
)

var chromium struct {
	once sync.Once
	ctx  context.Context
	end  func()
	err  error
}

func TestMain(m *testing.M) {
	status := testenv.RunWithOwnNetwork(m)
	if chromium.end != nil {
		chromium.end()
	}
	os.Exit(status)
}

// A tab is a page of a real browser, and what it said and asked for.
type tab struct {
	*testing.T
	ctx context.Context

	mu       sync.Mutex
	console  []string
	requests []string
}

// newTab opens a page. All tests share one browser.
func newTab(t *testing.T) *tab {
	t.Helper()
	testenv.NeedProgram(t, "chromium")
	chromium.once.Do(func() {
		dir, err := os.MkdirTemp("", "iotape-chromium-*")
		if err != nil {
			chromium.err = err
			return
		}
		ctx, stop := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath("chromium"), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(dir),
			chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))...)
		ctx, closing := chromedp.NewContext(ctx)
		chromium.ctx = ctx
		chromium.end = func() { closing(); stop(); os.RemoveAll(dir) }
		chromium.err = chromedp.Do(ctx, chromedp.Navigate("about:blank"))
	})
	if chromium.err != nil {
		t.Fatalf("chromium: %v", chromium.err)
	}
	// A context of the browser's own: no cookie of another test.
	ctx, closing := chromedp.NewContext(chromium.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(closing)
	b := &tab{T: t, ctx: ctx}
	// Without a time limit: the tab would end with it.
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	go func() {
		for m, err := range chromedp.Console(ctx) {
			if err != nil {
				return
			}
			b.mu.Lock()
			b.console = append(b.console, m.String())
			b.mu.Unlock()
		}
	}()
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	go func() {
		for e, err := range chromedp.Events(ctx, network.RequestWillBeSent) {
			if err != nil {
				return
			}
			b.mu.Lock()
			b.requests = append(b.requests, e.Request.URL)
			b.mu.Unlock()
		}
	}()
	return b
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.Fatal(err)
	}
}

// ask evaluates a script.
func ask[T any](b *tab, script string) T {
	b.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](script))
	if err != nil {
		b.Fatalf("%s: %v", script, err)
	}
	return v
}

// until waits for a condition of the page.
func (b *tab) until(script string) {
	b.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !ask[bool](b, script) {
		if time.Now().After(deadline) {
			b.Fatalf("never: %s\nconsole: %v\npage: %s", script, b.console, ask[string](b, "document.body.innerText"))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

const idle = `document.getElementById("scene").getAttribute("aria-busy") === "false"`

// loaded waits until everything is there.
func (b *tab) loaded() {
	b.Helper()
	b.until(`document.getElementById("scene").dataset.done === "true"`)
	b.until(idle)
}

func (b *tab) open(server *httptest.Server) {
	b.Helper()
	b.do(chromedp.EmulateViewport(1200, 900), chromedp.Navigate(server.URL+"/?token="+token))
	b.loaded()
}

// shown is how long a window the picture shows, in ns, once it has settled.
func (b *tab) shown() float64 {
	b.Helper()
	time.Sleep(50 * time.Millisecond)
	b.until(idle)
	return ask[float64](b, `(w => w[1] - w[0])(document.getElementById("scene").dataset.shown.split(" ").map(Number))`)
}

// coloured counts the points of the picture, right of the labels, that are not empty.
func (b *tab) coloured() float64 {
	b.Helper()
	b.until(idle)
	time.Sleep(50 * time.Millisecond) // a frame
	return ask[float64](b, `(c => { const s = devicePixelRatio, g = new OffscreenCanvas(c.width, `+
		`c.height).getContext("2d", { willReadFrequently: true }); g.drawImage(c, 0, 0); const d = `+
		`g.getImageData(190 * s, 0, c.width - 190 * s, c.height).data; let n = 0; for (let i = 3; i < d.length; i += `+
		`4) if (d[i] > 128) n++; return n; })(document.getElementById("marks"))`)
}

// quiet fails if the page complained, or asked anybody but its server.
func (b *tab) quiet(origin string) {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.console {
		b.Errorf("console: %s", m)
	}
	for _, r := range b.requests {
		if !strings.HasPrefix(r, origin) && r != "about:blank" {
			b.Errorf("a request to %s", r)
		}
	}
	if len(b.requests) == 0 {
		b.Error("no request was seen: this test sees nothing")
	}
}

// TestOwnNetwork: what makes Chromium break off is not in sight.
func TestOwnNetwork(t *testing.T) {
	testenv.NeedRoot(t)
	list, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 || list[0].Flags&(net.FlagLoopback|net.FlagUp) != net.FlagLoopback|net.FlagUp {
		t.Errorf("the tests see %v", list)
	}
}

func TestPage(t *testing.T) {
	server := serve(t, viewmodeltest.Tape(t, 2000, "db"))
	b := newTab(t)
	b.open(server)
	labels := ask[string](b, `[...document.querySelectorAll("#labels .label")].map(e => e.innerText).join("; ")`)
	if labels = strings.Join(strings.Fields(labels), " "); !strings.Contains(labels, "db 100") ||
		!strings.Contains(labels, "reader 200") {
		t.Errorf("labels: %q", labels)
	}
	if n := b.coloured(); n < 1000 {
		t.Errorf("the picture has %v points", n)
	}
	for _, id := range suite.IDs() {
		// The sections of stacks and of block devices are of tapes that have some.
		if id != "stacks" && id != "block" && !ask[bool](b, fmt.Sprintf("!!document.getElementById(%q)", id)) {
			t.Errorf("no section %s", id)
		}
	}

	// Rows without calls in sight can be left out: the whole has some of all.
	b.do(chromedp.Click(chromedp.CSS("#busy")))
	if n := ask[float64](b, `document.querySelectorAll("#labels .label").length`); n != 4 {
		t.Errorf("%v rows with calls", n)
	}
	b.do(chromedp.Click(chromedp.CSS("#busy")))

	// Zoom: by button, by wheel, by keyboard, and back.
	whole := b.shown()
	b.do(chromedp.Click(chromedp.CSS("#zoom-in")))
	if got := b.shown(); got > whole*0.6 {
		t.Errorf("a button zooms from %v to %v ns", whole, got)
	}
	ask[any](b, `void document.getElementById("port").dispatchEvent(new WheelEvent("wheel", { deltaY: -200, ctrlKey: `+
		`true, clientX: 700, clientY: 300, bubbles: true, cancelable: true }))`)
	wheel := b.shown()
	if wheel > whole*0.3 {
		t.Errorf("the wheel zooms to %v of %v ns", wheel, whole)
	}
	b.do(chromedp.Focus(chromedp.CSS("#port")), chromedp.KeyEvent("++++++"))
	keys := b.shown()
	if keys > wheel/32 {
		t.Errorf("six keys zoom from %v to %v ns", wheel, keys)
	}
	if n := b.coloured(); n < 1000 {
		t.Errorf("zoomed in, the picture has %v points", n)
	}
	b.do(chromedp.KeyEvent("0"))
	if got := b.shown(); got < whole*0.99 || got > whole*1.01 {
		t.Errorf("all of it is %v, not %v ns", got, whole)
	}
	b.quiet(server.URL)
}

// From the whole to all that is known of one call, with the keyboard alone.
func TestSelect(t *testing.T) {
	server := serve(t, viewmodeltest.Tape(t, 200, "db"))
	b := newTab(t)
	b.open(server)
	b.do(chromedp.Focus(chromedp.CSS("#port")))
	for range 8 { // rows with several calls in one place are zoomed into
		b.do(chromedp.KeyEvent("\r"))
		time.Sleep(30 * time.Millisecond)
		b.until(idle)
	}
	b.until(`!document.getElementById("event").hidden`)
	b.do(chromedp.KeyEvent("]"))
	b.until(`!!document.querySelector("#event pre.hex") && document.querySelector("#event ` +
		`pre.hex").textContent.includes("00000000  3c 62 3e 63")`)
	text := ask[string](b, `document.getElementById("event").textContent`)
	for _, want := range []string{"write(3", "<b>content</b>", "All fields", "offset"} {
		if !strings.Contains(text, want) {
			t.Errorf("the event does not say %q: %.500s", want, text)
		}
	}
	first := ask[string](b, `document.getElementById("selected").textContent`)
	ask[any](b, `void [...document.querySelectorAll("#event button")].find(x => `+
		`x.textContent.includes("similar")).click()`)
	b.until(`!!document.querySelector("#event table")`)
	if n := ask[float64](b, `document.querySelectorAll("#event table tr").length`); n < 20 {
		t.Errorf("%v similar events", n)
	}
	b.do(chromedp.Focus(chromedp.CSS("#port")), chromedp.KeyEvent("]"))
	b.until(fmt.Sprintf(`document.getElementById("selected").textContent !== %q`, first))
	b.do(chromedp.KeyEvent("["))
	b.until(fmt.Sprintf(`document.getElementById("selected").textContent === %q`, first))
	b.do(chromedp.KeyEvent("\u001b"))
	b.until(`document.getElementById("event").hidden`)
	b.quiet(server.URL)
}

func TestSearchAndTable(t *testing.T) {
	server := serve(t, viewmodeltest.Tape(t, 200, "db"))
	b := newTab(t)
	b.open(server)
	b.do(chromedp.SendKeys(chromedp.CSS("#filter"), "op = fsync\r"))
	b.until(`document.getElementById("event").textContent.includes("fsync(3")`)
	first := ask[string](b, `document.getElementById("selected").textContent`)
	b.do(chromedp.SendKeys(chromedp.CSS("#filter"), "\r"))
	b.until(fmt.Sprintf(`document.getElementById("selected").textContent !== %q`, first))
	b.do(chromedp.SetValue(chromedp.CSS("#filter"), "op ="), chromedp.SendKeys(chromedp.CSS("#filter"), "\r"))
	b.until(`document.getElementById("found").textContent.length > 10 && ` +
		`!document.getElementById("found").textContent.includes("looking")`)
	b.do(chromedp.Click(chromedp.CSS("#table summary")))
	b.until(`document.querySelectorAll("#calls tbody tr").length > 10`)
	ask[any](b, `void document.querySelector("#calls tbody button").click()`)
	b.until(`document.getElementById("event").textContent.includes("All fields")`)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.console { // the filter that is wrong was answered with 400
		if !strings.Contains(m, "400") {
			t.Errorf("console: %s", m)
		}
	}
}

// Whatever things are called, the page shows it and runs nothing.
func TestHostileNames(t *testing.T) {
	tape := viewmodeltest.Tape(t, 100, viewmodeltest.Hostile)
	server := serve(t, tape, viewmodeltest.Tape(t, 100, "other"))
	b := newTab(t)
	b.open(server)
	for seq := range 5 { // names in paths, content, hosts, comm
		ask[any](b, fmt.Sprintf(`void fetch("api/event?tape=0&seq=%d").then(r => r.json())`, seq))
	}
	b.do(chromedp.SendKeys(chromedp.CSS("#filter"), "failed\r"))
	b.until(`document.getElementById("event").textContent.includes("onerror")`)
	ask[any](b, `void document.querySelectorAll("details").forEach(d => { d.open = true; })`)
	b.until(`document.querySelectorAll("#calls tbody tr").length > 10`)
	time.Sleep(200 * time.Millisecond)
	if title := ask[string](b, "document.title"); strings.Contains(title, "owned") &&
		!strings.Contains(title, "<script>") {
		t.Errorf("title: %q", title)
	}
	if ask[bool](b, `document.title === "owned" || !!document.querySelector("img") || `+
		`document.querySelectorAll("script").length !== 2`) {
		t.Error("names became markup")
	}
	b.quiet(server.URL)
}

// A file shows the same without a server.
func TestFileInBrowser(t *testing.T) {
	for name, tape := range map[string]*trace.Tape{"hostile": viewmodeltest.Tape(t, 500, viewmodeltest.Hostile)} {
		s := openScene(t, tape)
		if err := s.Order(); err != nil {
			t.Fatal(err)
		}
		p, _, err := suite.Collect(t.Context(), tape, nil)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), name+".html")
		writeFile(t, path, func(f *os.File) error { return web.WriteFile(f, p, s) })
		b := newTab(t)
		b.do(chromedp.EmulateViewport(1200, 900), chromedp.Navigate("file://"+path))
		b.until(idle)
		if n := b.coloured(); n < 1000 {
			t.Errorf("the picture has %v points", n)
		}
		whole := b.shown()
		b.do(chromedp.Focus(chromedp.CSS("#port")), chromedp.KeyEvent("+++\r"))
		if got := b.shown(); got > whole/7 {
			t.Errorf("zoomed from %v to %v ns", whole, got)
		}
		b.until(`document.getElementById("event").textContent.includes("iotape serve")`)
		if !ask[bool](b, `!!document.getElementById("durability") && document.title !== "owned" && `+
			`!document.querySelector("img")`) {
			t.Error("sections are missing, or names became markup")
		}
		b.quiet("file://")
	}
}

func writeFile(t *testing.T, path string, write func(*os.File) error) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := write(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func (b *tab) emulate(p emulation.SetEmulatedMediaParams) {
	b.Helper()
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, p); err != nil {
		b.Fatal(err)
	}
}

// Light, dark, printed.
func TestLooks(t *testing.T) {
	server := serve(t, viewmodeltest.Tape(t, 200, "a rather long name of a program that nobody would give"))
	b := newTab(t)
	b.open(server)
	centre := `(c => { const g = new OffscreenCanvas(c.width, c.height).getContext("2d", { willReadFrequently: true ` +
		`}); g.drawImage(c, 0, 0); return [...g.getImageData(c.width / 2, c.height - 8, 1, 1).data].join(); ` +
		`})(document.getElementById("overview"))`
	background := `getComputedStyle(document.body).backgroundColor`
	light, lit := ask[string](b, background), ask[string](b, centre)
	b.emulate(emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme",
		Value: "dark"}}})
	b.until(fmt.Sprintf("%s !== %q && %s !== %q", background, light, centre, lit))

	b.emulate(emulation.SetEmulatedMediaParams{Media: "print"})
	if ask[bool](b, `getComputedStyle(document.querySelector(".tools")).display !== "none" || `+
		`getComputedStyle(document.getElementById("marks")).display === "none"`) {
		t.Error("printed, buttons are there or the picture is not")
	}
	b.quiet(server.URL)
}

// A small window shows it, too.
func TestSmall(t *testing.T) {
	server := serve(t, viewmodeltest.Tape(t, 200, "a rather long name of a program that nobody would give"))
	for _, width := range []int64{320, 640} {
		b := newTab(t)
		b.do(chromedp.EmulateViewport(width, 500), chromedp.Navigate(server.URL+"/?token="+token))
		b.loaded()
		if over := ask[float64](b, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
			t.Errorf("at %d points, the page is %v too wide", width, over)
		}
		if n := b.coloured(); n < 100 {
			t.Errorf("at %d points, the picture has %v points", width, n)
		}
		b.quiet(server.URL)
	}
}

// Everything that can be used can be reached and has a name.
func TestAccessible(t *testing.T) {
	server := serve(t, viewmodeltest.Tape(t, 50, "db"))
	b := newTab(t)
	b.open(server)
	b.do(chromedp.SendKeys(chromedp.CSS("#filter"), "op = read\r"))
	b.until(`document.getElementById("event").textContent.includes("All fields")`)
	nameless := ask[string](b,
		`[...document.querySelectorAll("button, input, select, summary, [tabindex='0']")].filter(e => `+
			`!(e.textContent.trim() || e.getAttribute("aria-label") || e.labels && e.labels.length && `+
			`e.labels[0].textContent.trim())).map(e => e.outerHTML).join("\n")`)
	if nameless != "" {
		t.Errorf("without a name: %s", nameless)
	}
	if missing := ask[string](b,
		`[...document.querySelectorAll("[aria-labelledby], [aria-describedby]")].flatMap(e => `+
			`[e.getAttribute("aria-labelledby"), e.getAttribute("aria-describedby")]).filter(id => id && `+
			`!document.getElementById(id)).join()`); missing != "" {
		t.Errorf("labels that are not there: %s", missing)
	}
	if twice := ask[string](b,
		`(ids => ids.filter((x, i) => ids.indexOf(x) !== i).join())([...document.querySelectorAll("[id]")].map(e => `+
			`e.id))`); twice != "" {
		t.Errorf("ids that are there twice: %s", twice)
	}
	if ask[float64](b, `document.querySelectorAll("h1").length`) != 1 {
		t.Error("not one h1")
	}
	// Text and what is below it, in both schemes: WCAG's 4.5 to 1.
	for _, scheme := range []string{"light", "dark"} {
		b.emulate(emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme",
			Value: scheme}}})
		for _, name := range []string{"--fg", "--dim", "--c0", "--mark", "--failed"} {
			if ratio := ask[float64](b, fmt.Sprintf(contrast, name)); ratio < 4.5 {
				t.Errorf("%s, %s: a contrast of %.1f", scheme, name, ratio)
			}
		}
	}
}

// contrast is that of a colour to the background, as WCAG 2.1 defines it.
const contrast = `(() => {
  const css = getComputedStyle(document.documentElement), g = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const light = name => { g.fillStyle = css.getPropertyValue(name); g.fillRect(0, 0, 1, 1); const [r, gr, b] = [...g.getImageData(0, 0, 1, 1).data].map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * gr + 0.0722 * b; };
  const a = light(%q), b = light("--bg");
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
})()`
