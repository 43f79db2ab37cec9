// SPDX-License-Identifier: Apache-2.0
// What is shown: a window of time, rows, and what is selected. It draws nothing.

const MIN_WINDOW = 100; // ns

class View {
  constructor(source) {
    this.source = source;
    this.adopt(source.about);
    this.from = this.about.from_ns;
    this.to = this.about.to_ns;
    this.cursor = { row: 0, at: this.from };
    this.selected = null; // { tape, seq, row, from, to }
    this.colour = "work";
    this.arrows = true;
    this.busyOnly = false; // only rows with calls in the window
    this.collapsed = new Set();
    this.collapseTo(60);
  }

  adopt(about) {
    this.about = about;
    this.rowsOf = about.rows;
  }

  get length() { return this.to - this.from; }

  /** Collapse from the leaves up until at most n rows are left. */
  collapseTo(n) {
    const rows = this.rowsOf, deepest = rows.reduce((d, r) => Math.max(d, r.depth), 0);
    for (let depth = deepest - 1; depth >= 0 && this.rows().length > n; depth--) {
      rows.forEach((r, i) => { if (r.depth === depth && r.below > 0) this.collapsed.add(i); });
      this.shown = null;
    }
  }

  /** The rows that are shown, in their order. */
  rows() {
    if (this.shown) return this.shown;
    const list = [];
    for (let i = 0; i < this.rowsOf.length; i++) {
      const all = this.collapsed.has(i), r = this.rowsOf[i];
      if (!this.busyOnly || r.from_ns <= this.to && r.to_ns >= this.from) list.push({ row: i, all });
      if (all) i += r.below;
    }
    this.cursor.row = Math.max(0, Math.min(this.cursor.row, list.length - 1));
    return this.shown = list;
  }

  toggle(row) {
    if (!this.rowsOf[row].below) return;
    if (!this.collapsed.delete(row)) this.collapsed.add(row);
    this.shown = null;
  }

  /** Show a row, opening what is above it; returns where it stands. */
  reveal(row) {
    for (let i = this.rowsOf[row].parent; i >= 0; i = this.rowsOf[i].parent) {
      if (this.collapsed.delete(i)) this.shown = null;
    }
    return this.rows().findIndex(r => r.row === row);
  }

  /** Show a window, as near as can be to what is asked. */
  show(from, to) {
    const all = this.about, least = MIN_WINDOW, most = (all.to_ns - all.from_ns) * 1.1 + least;
    let length = Math.min(Math.max(to - from, least), most);
    let middle = (from + to) / 2;
    const margin = length * 0.05;
    from = Math.max(middle - length / 2, all.from_ns - margin);
    to = from + length;
    if (to > all.to_ns + margin) { to = all.to_ns + margin; from = Math.max(to - length, all.from_ns - margin); }
    this.from = from;
    this.to = to;
    if (this.busyOnly) this.shown = null;
  }

  zoom(factor, around = (this.from + this.to) / 2) {
    this.show(around - (around - this.from) * factor, around + (this.to - around) * factor);
  }

  pan(part) {
    const by = this.length * part;
    this.show(this.from + by, this.to + by);
  }

  all() {
    const length = this.about.to_ns - this.about.from_ns;
    this.show(this.about.from_ns - length * 0.01, this.about.to_ns + length * 0.01);
  }
}

/**
 * The mark of a row that is nearest to a time.
 * @returns {{at:number, took:number, kind:number, n:number, failed:number, bytes:number, content:number, seq:number, alone:boolean}|null}
 */
function nearest(picture, marks, at, reach) {
  let best = null, distance = reach;
  const grain = picture.grain_ns;
  const look = (from, took, mark) => {
    const d = at < from ? from - at : at > from + took ? at - from - took : 0;
    if (d < distance || best === null && d <= distance) { distance = d; best = mark(); }
  };
  for (let i = 0; i < marks.cells.length; i += CELL) {
    const c = marks.cells, from = picture.from_ns + c[i] * grain;
    look(from, grain, () => ({ at: from, took: grain, kind: c[i + 1], busy: c[i + 2], n: c[i + 3], failed: c[i + 4], bytes: c[i + 5], content: c[i + 6], seq: c[i + 7], alone: false }));
  }
  for (let i = 0; i < marks.spans.length; i += SPAN) {
    const s = marks.spans;
    look(s[i], s[i + 1], () => ({ at: s[i], took: s[i + 1], kind: s[i + 2], busy: s[i + 1], n: 1, failed: s[i + 3], bytes: s[i + 4], content: s[i + 5], seq: s[i + 6], alone: true }));
  }
  return best;
}
