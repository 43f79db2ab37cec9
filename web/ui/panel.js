// SPDX-License-Identifier: Apache-2.0
// What is known of the selected call, the list of calls, and the table of them.

/** Make an element; children are nodes or text, never markup. */
function element(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes)) {
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else if (v !== null && v !== undefined && v !== false) e.setAttribute(k, v === true ? "" : v);
  }
  e.append(...children.filter(c => c !== null && c !== undefined));
  return e;
}

class Panel {
  /** @param {(tape:number, seq:number, show:boolean) => void} select */
  constructor(root, view, select) {
    this.root = root;
    this.view = view;
    this.select = select;
    this.onway = () => {};
    view.way = []; // events of the way of the selected one's content
  }

  clear() { this.root.replaceChildren(); this.root.hidden = true; this.view.way = []; }

  say(text) {
    this.root.hidden = false;
    this.root.replaceChildren(element("p", { class: "note" }, text));
  }

  /** A link to another event. */
  link(e, text = `event ${count(e.seq)}`) {
    return element("button", { type: "button", class: "link", onclick: () => this.select(e.tape, e.seq, true) }, text);
  }

  /** What a picture in a file knows of a mark. */
  brief(mark, tape) {
    this.root.hidden = false;
    const name = this.view.about.tapes[tape].name;
    this.root.replaceChildren(
      this.head(mark.n > 1 ? plural(mark.n, "call", "calls") : `Event ${count(mark.seq)}`),
      this.pairs([["work", this.view.about.kinds[mark.kind]], ["at", moment(mark.at, 1)], ["took", took(mark.busy)], ["failed", mark.failed || null], ["bytes", mark.bytes ? bytes(mark.bytes) : null]]),
      element("p", { class: "note" }, "A file has no more of it. All fields and the content: "), element("code", {}, `iotape serve ${name}`));
  }

  /** Everything that the server knows of an event. */
  async detail(d) {
    this.root.hidden = false;
    const where = this.view.about.tapes.length > 1 ? ` of ${this.view.about.tapes[d.tape].name}` : "";
    const parts = [
      this.head(`Event ${count(d.seq)}${where}`),
      element("p", { class: "steps" },
        d.previous !== undefined ? this.link({ tape: d.tape, seq: d.previous }, "← previous of the thread") : null, " ",
        d.next !== undefined ? this.link({ tape: d.tape, seq: d.next }, "next of the thread →") : null),
      element("pre", { class: "line" }, d.line),
      this.pairs([["work", d.work], ["at", moment(d.from_ns, 1)], ["took", d.untimed ? "not known" : duration(d.to_ns - d.from_ns)]]),
    ];
    parts.push(this.stack(d.fields.stack, d.fields.stack_end));
    d.contents.filter(c => c.bytes > 0).forEach(c => parts.push(this.content(d, c)));
    parts.push(this.causes("Comes after", d.before, d.ordered), this.causes("Comes before", d.after, d.ordered));
    if (d.contents.some(c => c.bytes > 0)) {
      const out = element("div", { "aria-live": "polite" });
      parts.push(element("h4", {}, "Similar content"), element("button", { type: "button", onclick: e => this.similar(d, out, e.target) }, "Look for events with similar content"), out);
    }
    const way = element("div", { id: "way", "aria-live": "polite" });
    if (d.contents.some(c => c.bytes > 0)) parts.push(way);
    parts.push(element("details", {}, element("summary", {}, "All fields"), this.tree(d.fields)));
    this.root.replaceChildren(...parts.filter(Boolean));
    if (way.isConnected) await this.way(d, way);
  }

  head(text) {
    return element("div", { class: "head" }, element("h3", { id: "selected" }, text),
      element("button", { type: "button", "aria-label": "close", onclick: () => this.select(-1, -1, false) }, "✕"));
  }

  pairs(list) {
    return element("dl", {}, ...list.filter(p => p[1] !== null && p[1] !== undefined).flatMap(([k, v]) => [element("dt", {}, k), element("dd", {}, String(v))]));
  }

  /** Any JSON as nested lists. */
  tree(value) {
    if (value === null || typeof value !== "object") return element("span", {}, String(value));
    const list = Array.isArray(value) ? value.map((v, i) => [i, v]) : Object.entries(value);
    return element("dl", { class: "tree" }, ...list.slice(0, 1000).flatMap(([k, v]) => [element("dt", {}, String(k)), element("dd", {}, this.tree(v))]));
  }

  /** The functions that made a call, the innermost first. */
  stack(frames, end) {
    if (!frames) return null;
    const name = f => {
      const file = f.file ? ` ${f.file}:${f.line}` : "";
      const module = f.module === undefined ? "" : f.module.replace(/.*\//, "");
      if (f.function === undefined) return `${module}+0x${(f.offset ?? f.address).toString(16)}`;
      return `${f.function} (${module})${file}`;
    };
    const list = frames.map(f => element("li", {}, element("code", { title: f.module ?? "" }, name(f))));
    if (end) list.push(element("li", { class: "note" }, `… ${end}`));
    return element("div", {}, element("h4", {}, "Stack"), element("ul", { class: "events" }, ...list));
  }

  causes(title, list, known) {
    if (!known) return element("p", { class: "note" }, `${title}: the order of events is not known yet.`);
    if (list.length === 0) return null;
    return element("div", {}, element("h4", {}, title),
      element("ul", { class: "events" }, ...list.map(c => element("li", {}, element("b", {}, c.why), " ", this.link(c), " ", element("code", {}, c.line)))));
  }

  content(d, c) {
    const said = [`${c.out ? "from" : "to"} the kernel`, bytes(c.bytes)];
    if (c.missing > 0) said.push(`${bytes(c.missing)} could not be recorded`);
    if (c.omitted) said.push("left out, as was asked when recording");
    const out = element("pre", { class: "hex", tabindex: 0, "aria-label": `bytes of ${c.name}` });
    const more = element("button", { type: "button" }, "More bytes");
    let offset = 0;
    const load = async () => {
      try {
        const b = await this.view.source.content(d.tape, d.seq, c.index, offset);
        const data = Uint8Array.from(atob(b.data), x => x.charCodeAt(0));
        out.append(hex(data, offset));
        offset += data.length;
        more.hidden = data.length === 0 || offset >= b.total || offset >= 1 << 20;
        if (b.missing > 0) out.append(`(${bytes(b.missing)} of these are not in the tape, and shown as zeros)\n`);
      } catch (e) { out.append(String(e.message)); more.hidden = true; }
    };
    more.addEventListener("click", load);
    if (c.kept > 0) load(); else more.hidden = true;
    return element("details", { open: true }, element("summary", {}, `${c.name}: ${said.join(", ")}`), out, more);
  }

  /** Where the content came from and went, and who else had it: as iotape flow says. */
  async way(d, out) {
    const title = element("h4", {}, "The way of its content");
    out.replaceChildren(title, element("p", { class: "note" }, "looking …"));
    try {
      const w = await this.view.source.way(d.tape, d.seq);
      if (!out.isConnected) return; // another event is selected
      if (w.why) { out.replaceChildren(title, element("p", { class: "note" }, w.why)); return; }
      this.view.way = [...w.from, ...w.to, ...w.same];
      this.onway();
      const rows = (list, then) => list.map(s => element("tr", { class: s.changed ? "changed" : null },
        element("td", {}, this.link(s)), element("td", { class: "left" }, s.who), element("td", { class: "left" }, (s.write ? "→ " : "← ") + s.where),
        element("td", {}, bytes(s.bytes)), element("td", { class: "left" }, then + s.why + (s.changed ? ", CHANGED" : ""))));
      const part = (name, list, none, then = "") => [element("h5", {}, `${name}: ${list.length ? plural(list.length, "event", "events") : none}`),
        list.length ? element("div", { class: "scroll" }, element("table", {}, element("tbody", {}, ...rows(list, then)))) : ""];
      out.replaceChildren(title, ...part("It came from", w.from, "nothing in these tapes", "then "), ...part("It went to", w.to, "nothing in these tapes"),
        ...part("The same content", w.same, "nowhere else"), element("p", { class: "note" }, "Their places are marked in the picture." + (w.more ? ` Not all are shown: iotape flow --from ${d.tape + 1}:${d.seq}` : "")));
    } catch (e) { out.replaceChildren(title, element("p", { class: "note" }, String(e.message))); }
  }

  async similar(d, out, button) {
    button.disabled = true;
    out.replaceChildren("looking …");
    try {
      const s = await this.view.source.similar(d.tape, d.seq);
      if (s.by === "") {
        out.replaceChildren(element("p", {}, "The tape has neither this content nor a signature of it, so nothing can be compared."));
        return;
      }
      const unknown = s.unknown ? ` Of ${plural(s.unknown, "content", "contents")} the tape has nothing to compare.` : "";
      const looked = (s.by === "bytes" ? "" : `Compared by ${s.by}: `) + `${plural(s.events, "event", "events")}${s.all ? ", all there are" : " around it"}, ${bytes(s.bytes)} of content${s.cut_bytes ? `, the first ${bytes(s.cut_bytes)} of each` : ""} were looked at.${unknown}`;
      const rows = s.found.map(x => element("tr", {},
        element("td", {}, x.equal ? "equal" : `${Math.round(100 * x.jaccard)} % alike`),
        element("td", {}, x.shared ? bytes(x.shared) + " shared" : "–"),
        element("td", { class: "left" }, x.work),
        element("td", {}, this.link(x)), element("td", { class: "left" }, element("code", {}, x.line))));
      out.replaceChildren(element("p", { class: "note" }, looked),
        s.found.length ? element("div", { class: "scroll" }, element("table", {}, element("tbody", {}, ...rows))) : element("p", {}, "Nothing resembles it."));
    } catch (e) { out.replaceChildren(String(e.message)); button.disabled = false; }
  }
}

/** Bytes as lines of hexadecimal numbers and letters. */
function hex(data, offset) {
  let text = "";
  for (let i = 0; i < data.length; i += 16) {
    const line = [...data.slice(i, i + 16)];
    const numbers = line.map((b, k) => b.toString(16).padStart(2, "0") + (k === 7 ? " " : "")).join(" ");
    text += (offset + i).toString(16).padStart(8, "0") + "  " + numbers.padEnd(49) + " " + line.map(b => b >= 32 && b < 127 ? String.fromCharCode(b) : "·").join("") + "\n";
  }
  return text;
}

/** The calls of the window as a table: what the picture shows, for who does not see it. */
async function fillTable(table, view, rows, select) {
  const answer = await view.source.list({ from: Math.floor(view.from), to: Math.ceil(view.to), rows });
  const body = answer.calls.map(c => element("tr", {},
    element("td", {}, moment(c.at_ns, 1000)), element("td", {}, took(c.took_ns)), element("td", { class: "left" }, view.about.kinds[c.work] + (c.failed ? ", failed" : "")),
    element("td", {}, c.bytes ? bytes(c.bytes) : "–"), element("td", { class: "left" }, view.rowsOf[c.row] ? view.rowsOf[c.row].name : ""),
    element("td", {}, element("button", { type: "button", class: "link", onclick: () => select(c.tape, c.seq, true) }, count(c.seq)))));
  table.tBodies[0].replaceChildren(...body);
  table.caption.textContent = `${answer.more ? "The first " : ""}${plural(body.length, "call", "calls")} of the ${plural(rows.length, "row", "rows")} in sight, from ${moment(view.from, view.length / 100)} to ${moment(view.to, view.length / 100)}`;
}
