// SPDX-License-Identifier: Apache-2.0
// Where the picture's data come from: the server, or the page itself when it is a file.

/** Ask the server. */
class Server {
  constructor(about) { this.about = about; this.live = true; }

  async get(path, query = {}, signal) {
    const url = new URL(path, location.href);
    for (const [k, v] of Object.entries(query)) url.searchParams.set(k, v);
    const answer = await fetch(url, { signal });
    if (!answer.ok) throw new Error((await answer.text()).trim() || answer.statusText);
    return answer.json();
  }

  window(w, signal) {
    const rows = w.rows.map(r => r.row + (r.all ? "+" : "")).join(",");
    return this.get("api/window", { from: w.from, to: w.to, columns: w.columns, rows, arrows: w.arrows ? 1 : 0 }, signal);
  }

  /** All of the time, in one row. */
  whole() { return this.get("api/overview", { columns: 300 }); }

  list(w) {
    const rows = w.rows.map(r => r.row + (r.all ? "+" : "")).join(",");
    return this.get("api/list", { from: w.from, to: w.to, columns: 1, rows });
  }

  event(tape, seq) { return this.get("api/event", { tape, seq }); }
  content(tape, seq, index, offset) { return this.get("api/content", { tape, seq, index, offset }); }
  similar(tape, seq) { return this.get("api/similar", { tape, seq }); }
  way(tape, seq) { return this.get("api/way", { tape, seq }); }
  find(tape, from, filter) { return this.get("api/find", { tape, from, filter }); }
  state() { return this.get("api/state"); }
  reload() { return this.get("api/about"); }
  async sections(i) { return (await this.get("api/sections", { report: i })).html; }
}

/** One picture of the whole, which the page has in itself. */
class Embedded {
  constructor(data) {
    this.about = data.about;
    this.live = false;
    this.picture = data.picture;
  }

  /** What a row shows; a closed one with all processes below it. */
  marks({ row, all }) {
    const own = this.picture.rows[row], r = this.about.rows[row];
    if (!all) return own;
    const below = this.about.rows.slice(row + 1, row + 1 + r.below).map((x, i) => x.kind === "thread" ? null : this.picture.rows[row + 1 + i]).filter(Boolean);
    return { row, cells: own.cells.concat(...below.map(x => x.cells)), spans: own.spans.concat(...below.map(x => x.spans)) };
  }

  async window(w) {
    const to = new Map();
    w.rows.forEach((r, i) => { for (let k = r.row; k <= r.row + (r.all ? this.about.rows[r.row].below : 0); k++) to.set(k, i); });
    const arrows = [], a = this.picture.arrows;
    for (let i = 0; i < a.length; i += ARROW) {
      const f = to.get(a[i]), t = to.get(a[i + 1]);
      if (f !== undefined && t !== undefined && f !== t) arrows.push(f, t, ...a.slice(i + 2, i + ARROW));
    }
    return { ...this.picture, rows: w.rows.map(r => this.marks(r)), arrows };
  }

  whole() {
    const rows = this.about.rows.map((r, i) => [r, i]).filter(([r]) => r.parent < 0).map(([, row]) => ({ row, all: true }));
    return this.window({ rows });
  }

  async list(w) {
    const calls = [];
    const p = await this.window(w), grain = p.grain_ns;
    for (const r of p.rows) {
      for (let i = 0; i < r.spans.length; i += SPAN) {
        const [at, took, kind, failed, size, , seq] = r.spans.slice(i, i + SPAN);
        if (at <= w.to && at + took >= w.from) calls.push({ row: r.row, seq, at_ns: at, took_ns: took, work: kind, failed: failed > 0, bytes: size, tape: this.about.rows[r.row].tape });
      }
      for (let i = 0; i < r.cells.length; i += CELL) {
        const [col, kind, busy, n, failed, size, , seq] = r.cells.slice(i, i + CELL), at = p.from_ns + col * grain;
        if (n === 1 && at <= w.to && at + grain >= w.from) calls.push({ row: r.row, seq, at_ns: at, took_ns: busy, work: kind, failed: failed > 0, bytes: size, tape: this.about.rows[r.row].tape });
      }
    }
    calls.sort((a, b) => a.at_ns - b.at_ns);
    return { calls: calls.slice(0, 200), more: true };
  }
}

// How many numbers there are of a cell, a span and an arrow; see package scene.
const CELL = 8, SPAN = 7, ARROW = 8;
