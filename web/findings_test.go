// SPDX-License-Identifier: Apache-2.0

package web_test

import (
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/iotape/iotape/analyze/report/suite"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/web"
	showing "github.com/iotape/iotape/web/serve"
)

// twoHosts returns the tapes of a client and a server, which changes some of what it passes on.
func twoHosts(t *testing.T) []*trace.Tape {
	t.Helper()
	testenv.NeedProgram(t, "go")
	dir := t.TempDir()
	cmd := exec.Command("go", "run", "-buildvcs=false", "../bench/flowtape", "-events", "12000", dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("flowtape: %v\n%s", err, out)
	}
	var tapes []*trace.Tape
	for _, name := range []string{"client.tape", "server.tape"} {
		tape, err := trace.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { tape.Close() })
		tapes = append(tapes, tape)
	}
	return tapes
}

// served is the page that iotape serve makes of tapes, with everything computed.
func served(t *testing.T, tapes []*trace.Tape) *httptest.Server {
	t.Helper()
	return started(t, openScene(t, tapes...),
		&web.Options{Title: "test", Token: token, Reports: showing.Reports(tapes, false)})
}

// The page of several hosts begins with what is wrong with the data that went between them.
func TestFindingsFirst(t *testing.T) {
	server := served(t, twoHosts(t))
	b := newTab(t)
	b.open(server)
	if !ask[bool](b, `!!(document.getElementById("findings").compareDocumentPosition(`+
		`document.getElementById("scene")) & Node.DOCUMENT_POSITION_FOLLOWING)`) {
		t.Error("the findings do not stand before the picture")
	}
	text := ask[string](b, `document.querySelector(".finding.wrong").textContent`)
	for _, want := range []string{"changed", "confidence", " differ", "→ "} {
		if !strings.Contains(text, want) {
			t.Errorf("got the finding %q, want %q in it", text, want)
		}
	}
	name := ask[string](b, `document.querySelector(".finding.wrong [data-event]").dataset.event`)
	ask[any](b, `void document.querySelector(".finding.wrong [data-event] button").click()`)
	b.until(`!document.getElementById("event").hidden`)
	tape, seq, _ := strings.Cut(name, ":")
	got := strings.ReplaceAll(ask[string](b, `document.getElementById("selected").textContent`), ",", "")
	if want := map[string]string{"1": "client", "2": "server"}[tape]; !strings.HasPrefix(got, "Event "+seq+" of ") ||
		!strings.Contains(got, want) {
		t.Errorf("event %s of the finding selects %q, want event %s of the %s", name, got, seq, want)
	}
	b.quiet(server.URL)
}

// The report as a file begins with them, too, and has the sections of every tape.
func TestFindingsInFile(t *testing.T) {
	tapes := twoHosts(t)
	p, _, err := suite.CollectAll(t.Context(), tapes, &suite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := web.WriteFile(&out, p, openScene(t, tapes...)); err != nil {
		t.Fatal(err)
	}
	page, at := out.String(), 0
	for _, want := range []string{`id="findings"`, `id="scene"`, "client.tape", `id="ops-1"`, "server.tape",
		`id="ops-2"`} {
		i := strings.Index(page[at:], want)
		if i < 0 {
			t.Fatalf("got no %s behind what stands before it", want)
		}
		at += i
	}
	if n := strings.Count(page, `id="findings`); n != 1 {
		t.Errorf("got %d sections of findings, want 1", n)
	}
}

// overlapping lists labels of drawings that cover each other, small ones, and those outside.
const overlapping = `(() => {
  const bad = [];
  for (const svg of document.querySelectorAll(".plot svg")) {
    const all = svg.getBoundingClientRect();
    const list = [...svg.querySelectorAll(".tick")].map(e => [e.textContent, e.getBoundingClientRect()]);
    list.forEach(([text, a], i) => {
      if (a.height < 9) bad.push(text + " is " + a.height + " high");
      if (a.left < all.left - 1 || a.right > all.right + 1) bad.push(text + " is outside of " + svg.getAttribute("aria-label"));
      for (const [other, b] of list.slice(i + 1))
        if (a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom) bad.push(text + " covers " + other);
    });
  }
  return bad.join("\n");
})()`

// small lists what can be used and is smaller than 24 by 24 points (WCAG 2.2, 2.5.8).
const small = `[...document.querySelectorAll("button, select, input, summary, nav a")].filter(e => e.checkVisibility())
  .map(e => [e, (e.type === "checkbox" ? e.closest("label") : e).getBoundingClientRect()])
  .filter(([e, r]) => r.width < 24 || r.height < 23.9).map(([e, r]) => e.outerHTML + ": " + r.width + " x " + r.height).join("\n")`

// On a desk and on a phone, the page can be read and used.
func TestReadable(t *testing.T) {
	server := served(t, twoHosts(t))
	for _, size := range [][2]int64{{1440, 900}, {390, 844}} {
		b := newTab(t)
		b.do(chromedp.EmulateViewport(size[0], size[1]), chromedp.Navigate(server.URL+"/?token="+token))
		b.loaded()
		if n := ask[float64](b, `document.querySelectorAll(".plot svg .tick").length`); n < 50 {
			t.Errorf("%d points wide: got %v labels, want 50: this test sees nothing", size[0], n)
		}
		if bad := ask[string](b, overlapping); bad != "" {
			t.Errorf("%d points wide: labels:\n%s", size[0], bad)
		}
		if bad := ask[string](b, small); bad != "" {
			t.Errorf("%d points wide: too small to be hit:\n%s", size[0], bad)
		}
		if over := ask[float64](b, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
			t.Errorf("%d points wide: the page is %v too wide", size[0], over)
		}
		// The list of sections stays in sight, and does not cover the title of one that it leads to.
		ask[any](b, `void document.querySelector("nav a[href^='#latency']").click()`)
		b.until(`scrollY > 1000`)
		if top := ask[float64](b, `document.querySelector("nav").getBoundingClientRect().top`); top != 0 {
			t.Errorf("%d points wide: the list of sections is at %v, want 0", size[0], top)
		}
		if gap := ask[float64](b, `document.querySelector("[id^=latency] h2").getBoundingClientRect().top - `+
			`document.querySelector("nav").getBoundingClientRect().bottom`); gap < 0 {
			t.Errorf("%d points wide: the list of sections covers %v of a title", size[0], -gap)
		}
		b.quiet(server.URL)
	}
}
