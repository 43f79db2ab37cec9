// SPDX-License-Identifier: Apache-2.0
// Puts the parts together: input, requests, and what is said.

const $ = id => document.getElementById(id);

function start() {
  const data = JSON.parse($("data").textContent);
  const source = data.picture ? new Embedded(data) : new Server(data.about);
  const view = new View(source);
  const root = $("scene"), port = $("port"), tall = $("tall"), labels = $("labels"), canvas = $("marks"), tip = $("tip"), status = $("status");
  const drawing = new Drawing(view, canvas, $("axis"), $("overview"));
  const panel = new Panel($("event"), view, select);
  panel.onway = () => paint();
  root.hidden = false;
  view.all();

  if (view.rowsOf.length === 0) {
    status.textContent = "The recording has no calls.";
    port.hidden = $("axis").hidden = $("overview").hidden = true;
  }

  // --- requests: one at a time, and of those that wait only the last ---

  let asking = null, again = false, frame = 0;

  function inSight() {
    const first = Math.floor(port.scrollTop / ROW), n = Math.ceil(port.clientHeight / ROW) + 1;
    return view.rows().slice(first, Math.min(first + n, first + 128));
  }

  async function ask() {
    if (asking) { again = true; return; }
    const w = { from: Math.floor(view.from), to: Math.ceil(view.to), columns: Math.max(50, Math.min(2000, Math.round((port.clientWidth - LABELS) / 2))), rows: inSight(), arrows: view.arrows };
    root.setAttribute("aria-busy", "true");
    const began = performance.now();
    try {
      asking = source.window(w);
      drawing.picture = await asking;
      root.dataset.answered = String(Math.round(performance.now() - began));
      if (drawing.picture.more_arrows) note = "Not all arrows are shown: zoom in for more.";
      else note = "";
    } catch (e) { note = String(e.message); }
    asking = null;
    paint();
    if (again) { again = false; ask(); return; }
    root.setAttribute("aria-busy", "false");
    root.dataset.shown = `${w.from} ${w.to}`;
    if ($("table").open) table();
  }
  let note = "";

  function paint() {
    if (frame) return;
    frame = requestAnimationFrame(() => {
      frame = 0;
      const width = port.clientWidth, height = port.clientHeight;
      drawing.draw(width, height, port.scrollTop);
      drawLabels();
      legend();
      status.textContent = said();
    });
  }

  /** What the colours mean now. */
  function legend() {
    const works = $("key-work"), other = $("key-other");
    works.hidden = view.colour !== "work";
    other.hidden = !works.hidden;
    const failed = () => element("span", {}, element("i", { class: "failed" }), "failed (above)");
    if (view.colour === "process") other.replaceChildren("each process has its colour, as its row is called", failed());
    if (view.colour !== "content") return;
    const { list, more } = drawing.contents(6);
    other.replaceChildren("equal content has one colour; most in sight:", ...list.map(s => {
      const swatch = element("i");
      swatch.style.background = drawing.colourOf(0, s.content, 0);
      return element("button", { type: "button", class: "link", title: `select event ${count(s.seq)}`, onclick: () => select(s.tape, s.seq, true) }, swatch, `${bytes(s.bytes)} in ${plural(s.n, "call", "calls")}`);
    }), list.length ? (more ? `and ${count(more)} more` : "") : "none", element("span", {}, element("i", { class: "work-other" }), "without content"), failed());
  }

  function said() {
    const by = view.length / 1000;
    let text = `From ${moment(view.from, by, view.to)} to ${moment(view.to, by)}`;
    const m = under();
    if (document.activeElement === port && m) text += `. ${view.rowsOf[view.rows()[view.cursor.row].row].name} at ${moment(view.cursor.at, by)}: ${describe(m)}`;
    return text + (note ? ". " + note : "");
  }

  function describe(m) {
    const kinds = view.about.kinds;
    const failed = m.failed ? (m.n === 1 ? ", failed" : `, ${count(m.failed)} failed`) : "";
    return (m.n > 1 ? `${plural(m.n, "call", "calls")}, mostly ${kinds[m.kind]}, ${took(m.busy)} in them` : m.n === 0 ? `in a call: ${kinds[m.kind]}` : `${kinds[m.kind]}, ${took(m.busy)}, event ${count(m.seq)}`) + (m.bytes ? `, ${bytes(m.bytes)}` : "") + failed;
  }

  /** The mark at the cursor. */
  function under() {
    const row = view.rows()[view.cursor.row];
    if (!row || !drawing.picture) return null;
    const marks = drawing.picture.rows.find(r => r.row === row.row);
    return marks ? nearest(drawing.picture, marks, view.cursor.at, view.length / 100) : null;
  }

  function changed() { if (view.busyOnly) layout(); paint(); ask(); }

  function layout() {
    const n = Math.max(view.rows().length, 1);
    LABELS = root.clientWidth < 600 ? 100 : 190;
    tall.style.height = n * ROW + "px";
    // While rows come and go, the place stays, so that nothing below it jumps.
    if (!view.busyOnly) port.style.height = Math.min(n * ROW, Math.max(window.innerHeight * 0.55, 4 * ROW)) + 1 + "px";
  }

  function resize() { layout(); changed(); }

  // --- labels of rows ---

  function drawLabels() {
    const rows = view.rows(), first = Math.floor(port.scrollTop / ROW), last = Math.min(rows.length, first + Math.ceil(port.clientHeight / ROW) + 1);
    const list = [];
    for (let i = first; i < last; i++) {
      const { row, all } = rows[i], r = view.rowsOf[row];
      const text = `${r.name}: ${plural(r.calls, "call", "calls")} of ${r.kind === "host" ? "all" : "itself"}, from ${moment(r.from_ns, view.length / 1000)} to ${moment(r.to_ns, view.length / 1000)}`;
      const label = element("div", { class: "label" + (i === view.cursor.row && drawing.focused ? " now" : ""), title: text },
        r.below > 0 ? element("button", { type: "button", tabindex: -1, "aria-expanded": String(!all), "aria-label": `${all ? "open" : "close"} ${r.name}`, onclick: () => { view.toggle(row); resize(); } }, all ? "▸" : "▾") : element("span", { class: "leaf" }),
        ...labelOf(r, all ? ` +${r.below}` : ""));
      label.style.top = i * ROW + "px";
      label.style.width = LABELS - 2 + "px";
      label.style.paddingLeft = 4 + Math.min(r.depth, 8) * 10 + "px";
      list.push(label);
    }
    labels.replaceChildren(...list);
  }

  /** The name of a row; on a small screen its number stays, and the name before it is cut. */
  function labelOf(r, more) {
    const [, name, number] = /^(.*) (\d+)$/.exec(r.name) || [null, r.name, ""];
    const rest = number + more;
    return [element("span", { class: "name " + r.kind }, name), rest ? element("span", { class: "number " + r.kind }, rest) : null];
  }

  // --- selection ---

  async function select(tape, seq, show) {
    if (tape < 0) { view.selected = null; panel.clear(); paint(); port.focus({ preventScroll: true }); return; }
    if (!source.live) {
      for (const r of drawing.picture.rows) {
        const m = r.row >= 0 && view.rowsOf[r.row].tape === tape && findSeq(r, seq);
        if (m) { choose(r.row, m, tape, seq); panel.brief(m, tape); }
      }
      return;
    }
    view.way = [];
    try {
      const d = await source.event(tape, seq);
      if (d.row >= 0) {
        const i = view.reveal(d.row);
        view.selected = { tape, seq, row: d.row, from: d.from_ns, to: d.to_ns };
        view.cursor = { row: i, at: d.from_ns };
        if (show && (d.to_ns < view.from || d.from_ns > view.to)) view.show(d.from_ns - view.length / 2, d.from_ns + view.length / 2);
        resize();
        keepInSight(i);
      }
      await panel.detail(d);
    } catch (e) { panel.say(String(e.message)); }
  }

  function findSeq(r, seq) {
    for (let i = 0; i < r.spans.length; i += SPAN) if (r.spans[i + 6] === seq) return { at: r.spans[i], took: r.spans[i + 1], busy: r.spans[i + 1], kind: r.spans[i + 2], n: 1, failed: r.spans[i + 3], bytes: r.spans[i + 4], seq };
    for (let i = 0; i < r.cells.length; i += CELL) if (r.cells[i + 7] === seq) return { at: drawing.picture.from_ns + r.cells[i] * drawing.picture.grain_ns, took: drawing.picture.grain_ns, busy: r.cells[i + 2], kind: r.cells[i + 1], n: r.cells[i + 3], failed: r.cells[i + 4], bytes: r.cells[i + 5], seq };
    return null;
  }

  function choose(row, m, tape, seq) {
    view.selected = { tape, seq, row, from: m.at, to: m.at + m.took };
    paint();
  }

  function keepInSight(i) {
    const y = i * ROW;
    if (y < port.scrollTop) port.scrollTop = y;
    else if (y + ROW > port.scrollTop + port.clientHeight) port.scrollTop = y + ROW - port.clientHeight;
  }

  /** Select what is at the cursor; several calls in one place are zoomed into. */
  function enter() {
    const m = under();
    if (!m) { status.textContent = "Nothing is here."; return; }
    const row = view.rows()[view.cursor.row].row;
    if (m.n > 1 && m.took > MIN_WINDOW && source.live) { view.show(m.at - m.took, m.at + 2 * m.took); changed(); return; }
    if (!source.live) { choose(row, m, view.rowsOf[row].tape, m.seq); panel.brief(m, view.rowsOf[row].tape); return; }
    select(view.rowsOf[row].tape, m.seq, false);
  }

  function step2(next) {
    const s = view.selected, b = [...$("event").querySelectorAll(".steps button")].find(x => x.textContent.startsWith(next ? "next" : "←"));
    if (s && b) b.click();
  }

  // --- keyboard ---

  const keys = {
    ArrowLeft: e => { moveCursor(e.shiftKey ? -0.25 : -0.02); },
    ArrowRight: e => { moveCursor(e.shiftKey ? 0.25 : 0.02); },
    ArrowUp: () => moveRow(-1), ArrowDown: () => moveRow(1),
    PageUp: () => moveRow(-10), PageDown: () => moveRow(10),
    "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), w: () => zoom(0.5), s: () => zoom(2),
    a: () => { view.pan(-0.25); changed(); }, d: () => { view.pan(0.25); changed(); },
    "0": () => { view.all(); changed(); }, Home: () => { view.all(); changed(); },
    Enter: enter, " ": () => { const r = view.rows()[view.cursor.row]; if (r) { view.toggle(r.row); resize(); } },
    f: () => { const s = view.selected; if (s) { const l = Math.max(s.to - s.from, 1000); view.show(s.from - l * 4, s.to + l * 4); changed(); } },
    "]": () => step2(true), "[": () => step2(false),
    Escape: () => select(-1, -1, false),
    "?": () => { $("help").open = true; },
  };

  function moveCursor(part) {
    const c = view.cursor;
    if (c.at < view.from || c.at > view.to) c.at = (view.from + view.to) / 2;
    c.at += part * view.length;
    if (c.at < view.from || c.at > view.to) { view.pan(part * 2); c.at = Math.min(Math.max(c.at, view.from), view.to); changed(); } else paint();
  }

  function moveRow(by) {
    view.cursor.row = Math.min(Math.max(view.cursor.row + by, 0), view.rows().length - 1);
    keepInSight(view.cursor.row);
    paint();
  }

  function zoom(factor) {
    const c = view.cursor.at;
    view.zoom(factor, c >= view.from && c <= view.to && (drawing.focused || view.selected) ? c : undefined);
    changed();
  }

  port.addEventListener("keydown", e => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target !== port) return;
    const f = keys[e.key];
    if (f) { f(e); e.preventDefault(); }
  });
  port.addEventListener("focus", () => { drawing.focused = true; if (view.cursor.at < view.from || view.cursor.at > view.to) view.cursor.at = (view.from + view.to) / 2; paint(); });
  port.addEventListener("blur", () => { drawing.focused = false; paint(); });
  port.addEventListener("scroll", changed);

  // --- mouse ---

  let drag = null;
  const place = e => { const r = port.getBoundingClientRect(); return { x: e.clientX - r.left, y: e.clientY - r.top + port.scrollTop }; };

  port.addEventListener("wheel", e => {
    if (e.ctrlKey || e.altKey || e.metaKey) {
      view.zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY / 200))), drawing.time(Math.max(place(e).x, LABELS)));
    } else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
      view.pan((e.deltaX || e.deltaY) / port.clientWidth);
    } else return;
    e.preventDefault();
    changed();
  }, { passive: false });

  canvas.addEventListener("pointerdown", e => {
    if (e.button !== 0) return;
    drag = { x: e.clientX, from: view.from, to: view.to, moved: false };
    canvas.setPointerCapture(e.pointerId);
    port.focus({ preventScroll: true });
  });
  canvas.addEventListener("pointermove", e => {
    if (!drag) { hover(e); return; }
    const dx = e.clientX - drag.x;
    if (Math.abs(dx) > 3) drag.moved = true;
    if (!drag.moved) return;
    const by = dx / (port.clientWidth - LABELS) * (drag.to - drag.from);
    view.show(drag.from - by, drag.to - by);
    changed();
  });
  canvas.addEventListener("pointerup", e => {
    const clicked = drag && !drag.moved;
    drag = null;
    if (!clicked) return;
    const p = place(e), i = Math.floor(p.y / ROW);
    if (p.x < LABELS || i >= view.rows().length) return;
    view.cursor = { row: i, at: drawing.time(p.x) };
    enter();
    paint();
  });
  canvas.addEventListener("dblclick", e => { view.zoom(0.25, drawing.time(Math.max(place(e).x, LABELS))); changed(); });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });

  function hover(e) {
    const p = place(e), row = view.rows()[Math.floor(p.y / ROW)];
    const marks = row && drawing.picture && p.x > LABELS && drawing.picture.rows.find(r => r.row === row.row);
    const m = marks && nearest(drawing.picture, marks, drawing.time(p.x), view.length / 300);
    tip.hidden = !m;
    if (!m) return;
    tip.textContent = `${moment(m.at, view.length / 1000)}: ${describe(m)}`;
    const box = root.getBoundingClientRect();
    tip.style.left = Math.min(e.clientX - box.left + 12, box.width - tip.offsetWidth - 4) + "px";
    tip.style.top = e.clientY - box.top + 16 + "px";
  }

  let brush = false;
  const brushTo = e => {
    const r = $("overview").getBoundingClientRect(), all = view.about;
    const at = all.from_ns + (e.clientX - r.left - LABELS) / (r.width - LABELS) * (all.to_ns - all.from_ns), l = view.length;
    view.show(at - l / 2, at + l / 2);
    changed();
  };
  $("overview").addEventListener("pointerdown", e => { brush = true; $("overview").setPointerCapture(e.pointerId); brushTo(e); });
  $("overview").addEventListener("pointermove", e => { if (brush) brushTo(e); });
  $("overview").addEventListener("pointerup", () => { brush = false; });

  // --- buttons ---

  const click = (id, f) => $(id).addEventListener("click", f);
  click("zoom-in", () => zoom(0.5));
  click("zoom-out", () => zoom(2));
  click("zoom-all", () => { view.all(); changed(); });
  click("left", () => { view.pan(-0.25); changed(); });
  click("right", () => { view.pan(0.25); changed(); });
  $("colour").addEventListener("change", e => { view.colour = e.target.value; paint(); });
  $("arrows").addEventListener("change", e => { view.arrows = e.target.checked; changed(); });
  $("busy").addEventListener("change", e => { view.busyOnly = e.target.checked; view.shown = null; resize(); });
  $("table").addEventListener("toggle", () => { if ($("table").open) table(); });
  const table = () => fillTable($("calls"), view, inSight(), select).catch(e => { $("calls").caption.textContent = String(e.message); });

  if (!source.live) $("search").hidden = true;
  $("search").addEventListener("submit", async e => {
    e.preventDefault();
    const filter = $("filter").value.trim(), s = view.selected;
    if (!filter) return;
    let tape = s ? s.tape : 0, from = s ? s.seq + 1 : 0;
    $("found").textContent = "looking …";
    try {
      for (;;) {
        const f = await source.find(tape, from, filter);
        if (f.event) { $("found").textContent = `event ${count(f.event.seq)}`; await select(tape, f.event.seq, true); return; }
        from = f.next;
        if (f.end && ++tape >= view.about.tapes.length) { $("found").textContent = s ? "no more behind the selected event" : "no such event"; return; }
        if (f.end) from = 0;
        else $("found").textContent = `looking … event ${count(from)}`;
      }
    } catch (err) { $("found").textContent = String(err.message); }
  });

  // --- what comes later: the order of events, and the sections ---

  async function later() {
    if (!source.live) return;
    const done = new Set();
    for (;;) {
      const s = await source.state();
      $("working").textContent = s.working || "";
      for (const [i, r] of s.reports.entries()) {
        if (r.ready && !done.has(i)) { done.add(i); await section(i, r.name); }
      }
      if (s.ordered && !done.has("order")) {
        done.add("order");
        const whole = view.from <= view.about.from_ns && view.to >= view.about.to_ns;
        view.adopt(source.about = await source.reload());
        if (whole) view.all();
        changed();
        clocks();
        await fetchWhole();
      }
      if (s.done) { root.dataset.done = "true"; return; }
      await new Promise(f => setTimeout(f, 500));
    }
  }

  async function section(i, name) {
    // The server escapes all text in it, and the page's policy runs no other script.
    const part = element("div", { class: "report" });
    part.innerHTML = await source.sections(i);
    if (name) part.prepend(element("h2", { class: "of" }, name));
    for (const e of part.querySelectorAll("[data-event]")) {
      const [seq, tape] = e.dataset.event.split(":").map(Number).reverse();
      e.replaceChildren(panel.link({ tape: (tape || 1) - 1, seq }, e.dataset.event));
      e.addEventListener("click", () => root.scrollIntoView());
    }
    const findings = part.querySelector("#findings");
    if (findings) { root.before(findings); findingTools(findings); } // what is wrong comes first
    $("sections").append(part);
  }

  /** A field and a threshold over the findings: which of them are shown. */
  function findingTools(section) {
    const all = [...section.querySelectorAll(".finding")];
    if (all.length === 0) return;
    const levels = ["low", "medium", "high"];
    const least = element("input", { type: "range", id: "least", min: 0, max: 2, step: 1, value: 0 }), name = element("output", { for: "least" });
    const text = element("input", { type: "search", id: "in-findings", placeholder: "host, file, address, bytes", spellcheck: "false", autocomplete: "off" });
    const shown = element("output", { id: "findings-shown" });
    const apply = () => {
      const words = text.value.trim().toLowerCase(), from = Number(least.value);
      for (const x of all) x.hidden = levels.indexOf(x.dataset.confidence) < from || !x.textContent.toLowerCase().includes(words);
      for (const d of section.querySelectorAll("details")) if (words && d.querySelector(".finding:not([hidden])")) d.open = true;
      name.textContent = levels[from];
      shown.textContent = `${count(all.filter(x => !x.hidden).length)} of ${count(all.length)} shown`;
    };
    least.addEventListener("input", apply);
    text.addEventListener("input", apply);
    apply();
    section.querySelector("h2").after(element("div", { class: "tools", role: "group", "aria-label": "which findings are shown" },
      element("label", {}, "Confidence at least ", least, name), element("label", {}, "Find in findings ", text), shown));
  }

  function clocks() {
    $("clocks").replaceChildren(...view.about.clocks.map(c => element("p", { class: "note" }, c)));
    if (view.about.order) $("clocks").append(element("p", { class: "note" }, "No arrows: the order of events is " + view.about.order));
  }

  async function fetchWhole() {
    if (!view.rowsOf.length) return;
    drawing.whole = await source.whole();
    paint();
  }

  const recolour = () => { drawing.colours = palette(); paint(); };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  matchMedia("print").addEventListener("change", recolour);
  new ResizeObserver(resize).observe(root);
  clocks();
  if (!source.live && document.getElementById("findings")) findingTools(document.getElementById("findings"));
  resize();
  fetchWhole().catch(e => { note = String(e.message); });
  later().catch(e => { $("working").textContent = "The server does not answer: " + e.message; });
}

start();
