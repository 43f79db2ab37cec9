// SPDX-License-Identifier: Apache-2.0

// devtools.mjs ENGINE FILE: reads a trace with the engine of Chrome DevTools, and prints JSON: by process and
// thread, its name and the calls that the engine has in its tree.
import { readFileSync } from 'node:fs'

globalThis.DOMRect = class { // of browsers, which the engine uses
  constructor(x, y, width, height) { Object.assign(this, { x, y, width, height }) }
  static fromRect(r) { return new DOMRect(r.x, r.y, r.width, r.height) }
}
const [, , engine, file] = process.argv
const { TraceModel } = await import(engine)
const model = TraceModel.Model.createWithAllHandlers()
await model.parse(JSON.parse(readFileSync(file, 'utf8')).traceEvents, {})
const parsed = model.parsedTrace()
const list = []
for (const [pid, process] of (parsed.data ?? parsed).Renderer.processes) {
  for (const [tid, thread] of process.threads) {
    const calls = thread.entries.map(e => ({ name: e.name, ts: e.ts, dur: e.dur ?? 0 }))
    list.push({ pid, tid, name: thread.name ?? '', calls })
  }
}
console.log(JSON.stringify(list))
