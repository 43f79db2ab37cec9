// SPDX-License-Identifier: Apache-2.0

package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// A click on an event shows where its content came from and went, and marks these events in the picture. The
// findings have a threshold and a field, content can be searched for, and the legend says what colours mean.
func TestWayOfContent(t *testing.T) {
	server := served(t, twoHosts(t))
	b := newTab(t)
	b.open(server)

	all := ask[float64](b, `document.querySelectorAll(".finding").length`)
	visible := `[...document.querySelectorAll(".finding")].filter(x => !x.hidden).length`
	high := ask[float64](b, `document.querySelectorAll(".finding[data-confidence=high]").length`)
	set := func(id, value string) {
		ask[any](b, fmt.Sprintf(`void (() => { const e = document.getElementById(%q); e.value = %q; `+
			`e.dispatchEvent(new Event("input")); })()`, id, value))
	}
	set("least", "2")
	if got := ask[float64](b, visible); got != high || high == all {
		t.Errorf("%v of %v findings are shown at the threshold high, want %v and not all", got, all, high)
	}
	set("least", "0")
	b.do(chromedp.SendKeys(chromedp.CSS("#in-findings"), "no such words"))
	if got := ask[float64](b, visible); got != 0 {
		t.Errorf("%v findings are shown that do not have the words, want 0", got)
	}
	set("in-findings", "not quite")
	if got := ask[float64](b, visible); got == 0 || got == all {
		t.Errorf("%v of %v findings have the words, want some", got, all)
	}

	// The event of a finding that sent changed content.
	ask[any](b, `void [...document.querySelectorAll(".finding.wrong [data-event] button")].at(1).click()`)
	b.until(`!!document.getElementById("way") && document.getElementById("way").textContent.includes("It came from")`)
	way := ask[string](b, `document.getElementById("way").textContent`)
	for _, want := range []string{"CHANGED", "It went to", "The same content", "client", "server"} {
		if !strings.Contains(way, want) {
			t.Errorf("got the way %q, want %q in it", way, want)
		}
	}
	b.quiet(server.URL)

	before := b.coloured()
	b.do(chromedp.SetValue(chromedp.CSS("#colour"), "content"))
	ask[any](b, `void document.getElementById("colour").dispatchEvent(new Event("change"))`)
	b.until(`!document.getElementById("key-other").hidden && document.querySelectorAll("#key-other button").length > 2`)
	if !ask[bool](b, `document.getElementById("key-work").hidden`) || before == 0 {
		t.Error("the legend still speaks of work")
	}
	seq := ask[string](b, `document.querySelector("#key-other button").title.replace("select ", "")`)
	ask[any](b, `void document.querySelector("#key-other button").click()`)
	b.until(`document.getElementById("selected").textContent.toLowerCase().startsWith("` + seq + `")`)
	b.quiet(server.URL)
}
