// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/iotape/iotape/analyze/report"
)

// Picture is what a page can have before its sections: markup, with the style and the
// script that bring it to life. All of it is the caller's own, and trusted, but for Data.
type Picture struct {
	Markup string
	Style  string
	Script string
	// Data is JSON for the script, which finds it in the element #data. It may hold
	// anything: it is written so that no text in it ends the element.
	Data json.RawMessage
	// Live pages may ask the server that they came from.
	Live bool
}

// HTML writes the page as one file. Without a picture it runs no script.
func (p *Page) HTML(w io.Writer, picture *Picture) error {
	var b strings.Builder
	b.WriteString("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n" +
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n")
	css, policy := style, "default-src 'none'; base-uri 'none'; form-action 'none'"
	if picture != nil {
		css += picture.Style
		policy += "; script-src " + hashOf(picture.Script)
		if picture.Live {
			policy += "; connect-src 'self'"
		}
	}
	// Whatever a name in a trace manages to be, the page runs and loads nothing but its own.
	b.WriteString("<meta http-equiv=\"Content-Security-Policy\" content=\"" + policy +
		"; style-src " + hashOf(css) + "\">\n")
	b.WriteString("<meta name=\"color-scheme\" content=\"light dark\">\n<title>" + escape(p.Title) +
		"</title>\n<style>" + css + "</style>\n</head>\n<body>\n")
	b.WriteString("<header><h1 title=\"" + escape(p.Title) + "\">" + escape(p.Title) + "</h1>\n")
	for _, l := range p.Lines {
		b.WriteString("<p>" + escape(l) + "</p>\n")
	}
	b.WriteString("</header>\n")
	if picture != nil {
		for i := range p.Sections {
			if s := &p.Sections[i]; s.Lead {
				s.html(&b, "")
			}
		}
		b.WriteString(picture.Markup)
	}
	b.WriteString(p.withLinks(picture != nil))
	if picture != nil {
		var data bytes.Buffer
		json.HTMLEscape(&data, picture.Data)
		b.WriteString("<script type=\"application/json\" id=\"data\">" + data.String() + "</script>\n<script>" +
			picture.Script + "</script>\n")
	}
	b.WriteString("</body>\n</html>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// hashOf names a script or style that is in the page for its policy.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Body returns the sections, and links to them, as HTML.
func (p *Page) Body() string { return p.withLinks(false) }

// withLinks is Body; led says that the lead sections are on the page already.
func (p *Page) withLinks(led bool) string {
	var b strings.Builder
	p.body(&b, "", led)
	for i, part := range p.Parts {
		b.WriteString("<div class=\"report\"><h2 class=\"of\">" + escape(part.Name) + "</h2>\n")
		for _, l := range part.Page.Lines {
			b.WriteString("<p>" + escape(l) + "</p>\n")
		}
		part.Page.body(&b, "-"+strconv.Itoa(i+1), false)
		b.WriteString("</div>\n")
	}
	return b.String()
}

// body writes the sections, with a suffix to their IDs, which are once on a page.
func (p *Page) body(b *strings.Builder, suffix string, led bool) {
	if len(p.Sections) > 1 {
		b.WriteString("<nav aria-label=\"sections\"><ul>\n")
		for i := range p.Sections {
			b.WriteString("<li><a href=\"#" + escape(p.Sections[i].ID+suffix) + "\">" +
				escape(p.Sections[i].Title) + "</a></li>\n")
		}
		b.WriteString("</ul></nav>\n")
	}
	main := "main"
	if suffix != "" {
		main = "div" // a page has one main
	}
	b.WriteString("<" + main + ">\n")
	for i := range p.Sections {
		if s := &p.Sections[i]; !s.Lead || !led {
			s.html(b, suffix)
		}
	}
	b.WriteString("</" + main + ">\n")
}

func (s *Section) html(b *strings.Builder, suffix string) {
	b.WriteString("<section id=\"" + escape(s.ID+suffix) + "\">\n<h2>" + escape(s.Title) + "</h2>\n")
	if s.Note != "" {
		b.WriteString("<p class=\"note\">" + escape(s.Note) + "</p>\n")
	}
	for _, block := range s.Blocks {
		block.html(b)
	}
	b.WriteString("</section>\n")
}

// escape makes text safe in HTML, and control characters and what is not UTF-8 visible.
func escape(s string) string {
	if !plain(s) {
		s = report.Printable(s)
	}
	return html.EscapeString(s)
}

func plain(s string) bool {
	for _, r := range s {
		if r < ' ' || r == 0x7f || r == utf8.RuneError || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return false
		}
	}
	return true
}

func (l Line) html(b *strings.Builder) { b.WriteString("<p>" + escape(string(l)) + "</p>\n") }

func (t *Table) html(b *strings.Builder) {
	b.WriteString("<div class=\"scroll\"><table>\n")
	if t.Title != "" {
		b.WriteString("<caption>" + escape(t.Title+t.more()) + "</caption>\n")
	}
	b.WriteString("<thead><tr>")
	for i, h := range t.Head {
		b.WriteString("<th scope=\"col\"" + t.class(i) + ">" + escape(h) + "</th>")
	}
	b.WriteString("</tr></thead>\n<tbody>\n")
	for _, row := range t.Rows {
		b.WriteString("<tr>")
		for i, cell := range row {
			b.WriteString("<td" + t.class(i) + ">" + escape(cell) + "</td>")
		}
		b.WriteString("</tr>\n")
	}
	if len(t.Rows) == 0 {
		b.WriteString("<tr><td class=\"left\">nothing</td></tr>\n")
	}
	b.WriteString("</tbody></table></div>\n")
}

// class returns the attribute of a column's cells.
func (t *Table) class(i int) string {
	if t.Right > 0 && i >= t.Right || t.Right == 0 && i < t.Left {
		return " class=\"left\""
	}
	return ""
}

const style = `:root{--fg:#1a1a1f;--dim:#5c5f66;--bg:#fff;--line:#e1e3e8;--head:#f5f6f8;--c0:#2563c9;--c1:#c25a00;--c2:#1a7f5a;--c3:#8b3fb0;--c4:#a8324a;--c5:#6b6b1f;--heat:37,99,201}
@media (prefers-color-scheme:dark){:root{--fg:#e7e8ec;--dim:#a0a4ad;--bg:#16171b;--line:#33363d;--head:#1f2126;--c0:#78a9ff;--c1:#ff9d4d;--c2:#4fc99a;--c3:#cf94f0;--c4:#ff8597;--c5:#cfcf6b;--heat:120,169,255}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1.5rem;max-width:76rem;font:15px/1.5 system-ui,sans-serif;color:var(--fg);background:var(--bg)}
h1{font-size:1.4rem;margin:0 0 .3rem;overflow-wrap:anywhere;display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:3;overflow:hidden}
h2{font-size:1.1rem;margin:2.2rem 0 .4rem;padding-top:.6rem;border-top:1px solid var(--line)}
h3,caption{font-size:.95rem;font-weight:600;text-align:left;margin:.9rem 0 .3rem}
h2,h3,figcaption,caption{overflow-wrap:anywhere}
p{margin:.2rem 0;overflow-wrap:anywhere}
header p,.note{color:var(--dim)}
.note{max-width:60rem}
nav{position:sticky;top:0;z-index:3;background:var(--bg);border-bottom:1px solid var(--line)}
nav ul{display:flex;gap:0 1rem;list-style:none;padding:0;margin:0;overflow-x:auto}
nav a{display:block;padding:.25rem 0;white-space:nowrap}
section{scroll-margin-top:2.6rem}
.report .of{font-size:1.3rem}
.finding{border-left:4px solid var(--line);padding:.1rem .8rem;margin:.8rem 0}
.finding.wrong{border-color:var(--c4)}
.finding h3{margin:.2rem 0}
.finding small{font-weight:400;color:var(--dim)}
.story{overflow-x:auto;background:var(--head);padding:.5rem .7rem;font-size:.8rem}
summary{cursor:pointer;padding:.2rem 0}
.plot{overflow-x:auto}
a{color:var(--c0)}
.scroll{overflow-x:auto;margin:.5rem 0 1rem}
table{border-collapse:collapse;font-size:.86rem;font-variant-numeric:tabular-nums}
th,td{padding:.2rem .6rem;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line)}
th{background:var(--head);font-weight:600;position:sticky;top:0}
.left{text-align:left;white-space:normal;overflow-wrap:anywhere;min-width:7rem}
figure{margin:.6rem 0 1.2rem}
figcaption{font-size:.95rem;font-weight:600;margin-bottom:.2rem}
svg{display:block;width:100%;height:auto;max-width:60rem}
svg text{fill:var(--dim);font:11px system-ui,sans-serif}
.grid{stroke:var(--line);stroke-width:1}
.key{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;font-size:.85rem;color:var(--dim)}
.key i{display:inline-block;width:1.1rem;height:.25rem;margin:0 .4rem .2rem 0;vertical-align:middle}
.s0{stroke:var(--c0)}.s1{stroke:var(--c1)}.s2{stroke:var(--c2)}.s3{stroke:var(--c3)}.s4{stroke:var(--c4)}.s5{stroke:var(--c5)}
.f0{fill:var(--c0);background:var(--c0)}.f1{fill:var(--c1);background:var(--c1)}.f2{fill:var(--c2);background:var(--c2)}.f3{fill:var(--c3);background:var(--c3)}.f4{fill:var(--c4);background:var(--c4)}.f5{fill:var(--c5);background:var(--c5)}
.h{fill:rgb(var(--heat))}
.line{fill:none;stroke-width:1.6;stroke-linejoin:round}
.d1{stroke-dasharray:6 3}.d2{stroke-dasharray:2 3}.d3{stroke-dasharray:8 3 2 3}.d4{stroke-dasharray:4 2}.d5{stroke-dasharray:1 2}
@media (max-width:48rem){.plot svg{width:56rem;max-width:none}}
@media print{body{max-width:none;padding:0;font-size:11px}nav{display:none}section{break-inside:auto}figure,tr{break-inside:avoid}th{position:static}.scroll{overflow:visible}}
`
