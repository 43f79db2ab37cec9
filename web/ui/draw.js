// SPDX-License-Identifier: Apache-2.0
// Draws the picture on canvases. Colours are those of the style sheet.

const ROW = 24, AXIS = 24;

/** How wide the names of rows are: less on a small screen. */
let LABELS = 190;

/** Colours and fonts of the page as it is shown now: light, dark, or printed. */
function palette() {
  const css = getComputedStyle(document.documentElement), get = name => css.getPropertyValue(name).trim();
  return {
    fg: get("--fg"), dim: get("--dim"), bg: get("--bg"), line: get("--line"), head: get("--head"), mark: get("--mark"), failed: get("--failed"),
    work: ["other", "read", "write", "metadata", "sync", "network"].map(k => get("--work-" + k)),
    arrow: get("--arrow"), dark: get("--dark") === "1",
  };
}

/** Fit a canvas to its place and the screen's pixels; returns its context. */
function fit(canvas, width, height) {
  const scale = window.devicePixelRatio || 1, w = Math.round(width * scale), h = Math.round(height * scale);
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
  }
  const g = canvas.getContext("2d");
  g.setTransform(scale, 0, 0, scale, 0, 0);
  g.clearRect(0, 0, width, height);
  return g;
}

class Drawing {
  /** @param {View} view */
  constructor(view, canvas, axis, overview) {
    this.view = view;
    this.canvas = canvas;
    this.axis = axis;
    this.overview = overview;
    this.picture = null;  // the last answer, perhaps of another window
    this.whole = null;    // that of the overview
    this.colours = palette();
  }

  /** The place of a time on the canvas. */
  x(ns) { return LABELS + (ns - this.view.from) / this.view.length * (this.width - LABELS); }
  time(x) { return this.view.from + (x - LABELS) / (this.width - LABELS) * this.view.length; }

  colourOf(kind, content, row) {
    switch (this.view.colour) {
      case "content": return content ? `hsl(${content * 137.508 % 360} 65% ${this.colours.dark ? 65 : 42}%)` : this.colours.work[0];
      case "process": return `hsl(${this.view.rowsOf[row].pid * 137.508 % 360} 55% ${this.colours.dark ? 65 : 45}%)`;
    }
    return this.colours.work[kind] || this.colours.work[0];
  }

  /** Draw everything. top is where the first row begins, above what is visible. */
  draw(width, height, top) {
    this.width = width;
    this.drawAxis(width);
    const g = fit(this.canvas, width, height), c = this.colours, rows = this.view.rows();
    this.drawGrid(g, width, height);
    const first = Math.floor(top / ROW), last = Math.min(rows.length, Math.ceil((top + height) / ROW) + 1);
    for (let i = first; i < last; i++) {
      const y = i * ROW - top;
      g.fillStyle = c.line;
      g.fillRect(0, y + ROW - 1, width, 1);
      if (i === this.view.cursor.row && this.focused) {
        g.fillStyle = c.head;
        g.fillRect(LABELS, y, width - LABELS, ROW - 1);
      }
    }
    g.save();
    g.beginPath();
    g.rect(LABELS, 0, width - LABELS, height);
    g.clip();
    const place = new Map(rows.map((r, i) => [r.row, i]));
    if (this.picture) {
      const where = this.picture.rows.map(r => place.has(r.row) ? place.get(r.row) * ROW - top : null);
      this.picture.rows.forEach((r, i) => { if (where[i] !== null && where[i] > -ROW && where[i] < height) this.drawRow(g, r, where[i]); });
      if (this.view.arrows) this.drawArrows(g, where);
    }
    this.drawPlaces(g, height);
    this.drawWay(g, place, top);
    this.drawSelected(g, place, top);
    if (this.focused) {
      g.strokeStyle = c.mark;
      g.setLineDash([3, 3]);
      g.beginPath();
      g.moveTo(this.x(this.view.cursor.at), 0);
      g.lineTo(this.x(this.view.cursor.at), height);
      g.stroke();
      g.setLineDash([]);
    }
    g.restore();
    this.drawOverview(width);
  }

  /** The steps of the time scale. */
  *ticks(width) {
    const by = step(this.view.length, Math.max((width - LABELS) / 110, 2));
    for (let t = Math.ceil(this.view.from / by) * by; t <= this.view.to; t += by) yield [t, by];
  }

  drawAxis(width) {
    const g = fit(this.axis, width, AXIS), c = this.colours;
    g.font = "12px system-ui, sans-serif";
    g.fillStyle = c.dim;
    g.textBaseline = "middle";
    g.textAlign = "left";
    g.fillText(duration(this.view.length) + " shown", 8, AXIS / 2);
    g.textAlign = "center";
    for (const [t, by] of this.ticks(width)) {
      const x = this.x(t), text = moment(t, by, this.view.to), half = g.measureText(text).width / 2;
      g.fillStyle = c.line;
      g.fillRect(x, AXIS - 5, 1, 5);
      if (x - half < LABELS - 4 || x + half > width) continue;
      g.fillStyle = c.dim;
      g.fillText(text, x, AXIS / 2);
    }
  }

  drawGrid(g, width, height) {
    g.fillStyle = this.colours.line;
    for (const [t] of this.ticks(width)) if (this.x(t) >= LABELS) g.fillRect(Math.round(this.x(t)), 0, 1, height);
  }

  drawRow(g, r, y) {
    const p = this.picture, grain = p.grain_ns, h = ROW - 5, base = y + ROW - 3;
    const width = Math.max(grain / this.view.length * (this.width - LABELS), 1);
    for (let i = 0; i < r.cells.length; i += CELL) {
      const c = r.cells, x = this.x(p.from_ns + c[i] * grain);
      if (x > this.width || x + width < LABELS) continue;
      const tall = 4 + (h - 4) * Math.min(Math.max(c[i + 2], 0) / grain, 1);
      g.fillStyle = this.colourOf(c[i + 1], c[i + 6], r.row);
      g.fillRect(x, base - tall, width + 0.3, tall);
      if (c[i + 4] > 0) { g.fillStyle = this.colours.failed; g.fillRect(x, y + 1, Math.max(width, 2), 2.5); }
    }
    g.font = "11px system-ui, sans-serif";
    g.textBaseline = "middle";
    g.textAlign = "left";
    for (let i = 0; i < r.spans.length; i += SPAN) {
      const s = r.spans, x = this.x(s[i]), w = Math.max(s[i + 1] / this.view.length * (this.width - LABELS), 1);
      if (x > this.width || x + w < LABELS) continue;
      g.fillStyle = this.colourOf(s[i + 2], s[i + 5], r.row);
      const calm = s[i + 2] === 0; // waiting, mostly: not what catches the eye
      if (s[i + 2] === 5 && w > 20) { // a pipe or socket that is waited for, mostly: lighter
        g.globalAlpha = 0.4;
        g.fillRect(x, base - h, w, h - 3);
        g.globalAlpha = 1;
        g.fillRect(x, base - 3, w, 3);
      } else g.fillRect(x, calm ? base - 6 : base - h, w, calm ? 6 : h);
      if (w > 3) { g.fillStyle = this.colours.bg; g.fillRect(x + w - 0.75, base - h, 0.75, h); }
      if (s[i + 3] > 0) { g.fillStyle = this.colours.failed; g.fillRect(x, y + 1, Math.max(w, 2), 2.5); }
      if (w > 60 && !calm) {
        const text = this.view.about.kinds[s[i + 2]] + (s[i + 4] > 0 ? " " + bytes(s[i + 4]) : "");
        const from = Math.max(x, LABELS) + 4;
        if (g.measureText(text).width < x + w - from - 4) { g.fillStyle = s[i + 2] === 5 ? this.colours.fg : this.colours.bg; g.fillText(text, from, base - h / 2 + 0.5); }
      }
    }
  }

  drawArrows(g, where) {
    const a = this.picture.arrows;
    g.lineWidth = 1;
    for (let i = 0; i < a.length; i += ARROW) {
      const y1 = where[a[i]], y2 = where[a[i + 1]];
      if (y1 === null || y2 === null) continue;
      const x1 = this.x(a[i + 2]), x2 = this.x(a[i + 2] + a[i + 3]);
      if (x2 < LABELS || x1 > this.width) continue;
      const from = y1 + ROW / 2, to = y2 + (y2 > y1 ? 2 : ROW - 4), up = y2 > y1 ? -1 : 1;
      g.strokeStyle = g.fillStyle = this.colours.arrow;
      g.globalAlpha = Math.min(0.35 + Math.log2(a[i + 4]) / 12, 0.9);
      g.lineWidth = a[i + 4] > 1 ? 1.5 : 1;
      g.beginPath();
      g.moveTo(x1, from);
      g.lineTo(x2, to);
      g.stroke();
      g.beginPath();
      g.moveTo(x2, to);
      g.lineTo(x2 - 2.5, to + 5 * up);
      g.lineTo(x2 + 2.5, to + 5 * up);
      g.fill();
    }
    g.globalAlpha = 1;
  }

  /** Losses and notes, over all rows. */
  drawPlaces(g, height) {
    for (const p of this.view.about.places) {
      const x = this.x(p.at_ns);
      if (x < LABELS || x > this.width) continue;
      g.fillStyle = p.lost ? this.colours.failed : this.colours.mark;
      g.globalAlpha = 0.6;
      g.fillRect(x, 0, 1.5, height);
      g.globalAlpha = 1;
    }
  }

  /** The events that the content of the selected one came from and went to. */
  drawWay(g, place, top) {
    g.strokeStyle = this.colours.mark;
    for (const s of this.view.way) {
      const i = place.get(s.row), x = this.x(s.at_ns);
      if (i === undefined || x < LABELS || x > this.width) continue;
      g.lineWidth = s.changed ? 3 : 2;
      g.strokeStyle = s.changed ? this.colours.failed : this.colours.mark;
      g.beginPath();
      g.arc(x, i * ROW - top + ROW / 2, 6, 0, 2 * Math.PI);
      g.stroke();
    }
  }

  /** The contents in sight that moved most, with an event of each. */
  contents(most) {
    const sums = new Map();
    const add = (content, n, size, tape, seq) => {
      if (!content) return;
      const s = sums.get(content) || { content, n: 0, bytes: 0, tape, seq };
      s.n += n;
      s.bytes += size;
      sums.set(content, s);
    };
    for (const r of this.picture ? this.picture.rows : []) {
      const tape = this.view.rowsOf[r.row].tape;
      for (let i = 0; i < r.cells.length; i += CELL) {
        const c = r.cells, from = this.picture.from_ns + c[i] * this.picture.grain_ns;
        if (from <= this.view.to && from + this.picture.grain_ns >= this.view.from) add(c[i + 6], c[i + 3], c[i + 5], tape, c[i + 7]);
      }
      for (let i = 0; i < r.spans.length; i += SPAN) {
        const s = r.spans;
        if (s[i] <= this.view.to && s[i] + s[i + 1] >= this.view.from) add(s[i + 5], 1, s[i + 4], tape, s[i + 6]);
      }
    }
    const list = [...sums.values()].sort((a, b) => b.bytes - a.bytes || a.seq - b.seq);
    return { list: list.slice(0, most), more: Math.max(0, list.length - most) };
  }

  drawSelected(g, place, top) {
    const s = this.view.selected, i = s && place.get(s.row);
    if (!s || i === undefined) return;
    const x = this.x(s.from), w = Math.max(this.x(s.to) - x, 3);
    g.strokeStyle = this.colours.fg;
    g.lineWidth = 2;
    g.strokeRect(x - 1, i * ROW - top + 1, w + 2, ROW - 3);
  }

  /** All of the time in one strip, with the window in it. */
  drawOverview(width) {
    const high = 36, g = fit(this.overview, width, high), c = this.colours, all = this.view.about;
    g.fillStyle = c.head;
    g.fillRect(LABELS, 0, width - LABELS, high);
    const length = all.to_ns - all.from_ns, x = ns => LABELS + (ns - all.from_ns) / length * (width - LABELS);
    if (this.whole) {
      const p = this.whole, sums = new Map();
      for (const r of p.rows) {
        for (let i = 0; i < r.cells.length; i += CELL) sums.set(r.cells[i], (sums.get(r.cells[i]) || 0) + r.cells[i + 3]);
        for (let i = 0; i < r.spans.length; i += SPAN) {
          const col = Math.floor((r.spans[i] - p.from_ns) / p.grain_ns);
          sums.set(col, (sums.get(col) || 0) + 1);
        }
      }
      let most = 1;
      for (const n of sums.values()) most = Math.max(most, n);
      const grain = p.grain_ns;
      g.fillStyle = c.work[1];
      for (const [col, n] of sums) {
        const h = Math.max((high - 4) * Math.sqrt(n / most), 1.5);
        g.fillRect(x(p.from_ns + col * grain), high - h, Math.max(p.grain_ns / length * (width - LABELS), 1), h);
      }
    }
    g.fillStyle = c.dim;
    g.font = "12px system-ui, sans-serif";
    g.textBaseline = "middle";
    g.textAlign = "left";
    g.fillText("all: " + duration(length), 8, high / 2);
    const from = Math.max(x(this.view.from), LABELS), to = Math.min(x(this.view.to), width);
    g.globalAlpha = 0.65;
    g.fillStyle = c.bg;
    g.fillRect(LABELS, 0, from - LABELS, high);
    g.fillRect(to, 0, width - to, high);
    g.globalAlpha = 1;
    g.strokeStyle = c.mark;
    g.lineWidth = 2;
    g.strokeRect(from + 1, 1, Math.max(to - from - 2, 2), high - 2);
  }
}
