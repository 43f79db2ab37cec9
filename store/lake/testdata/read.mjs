// SPDX-License-Identifier: Apache-2.0

// read.mjs ICEBIRD TABLE...: reads Iceberg tables with icebird, and prints for each a line of
// JSON: its rows, and for each column how many values it has, and their sum. The sum of texts
// is that of their bytes, of times that of their ms since 1970; lists and maps have none.
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { basename } from 'node:path'
import { deflateRawSync, inflateRawSync } from 'node:zlib'

// Go's compressor ends a stream with an empty stored block, on which the decompressor of icebird
// 0.3.1 fails (RangeError in hyparquet-compressors, gzip.js). So the blocks of Avro files are
// compressed again, with zlib; nothing else of them changes.
function recompress(bytes) {
  let at = 4
  const long = () => {
    let value = 0, shift = 1, b
    do {
      b = bytes[at++]
      value += (b & 127) * shift
      shift *= 128
    } while (b > 127)
    return value % 2 ? -(value + 1) / 2 : value / 2
  }
  const zigzag = n => {
    const out = []
    let v = n * 2
    for (; v > 127; v = Math.floor(v / 128)) out.push(v % 128 + 128)
    return Buffer.from([...out, v])
  }
  for (let n = long(); n; n = long()) { // the metadata: pairs of texts
    for (let i = 0; i < 2 * n; i++) {
      const length = long()
      at += length
    }
  }
  const sync = bytes.subarray(at, at + 16)
  const parts = [bytes.subarray(0, at += 16)]
  while (at < bytes.length) {
    const count = long(), size = long()
    const block = deflateRawSync(inflateRawSync(bytes.subarray(at, at + size)))
    at += size + 16
    parts.push(zigzag(count), zigzag(block.length), block, sync)
  }
  return Buffer.concat(parts)
}

// icebird reads by way of fetch, which knows no files.
globalThis.fetch = async (url, init = {}) => {
  let bytes = await readFile(fileURLToPath(url))
  if (url.endsWith('.avro')) bytes = recompress(bytes)
  const range = /^bytes=(\d+)-(\d*)$/.exec(new Headers(init.headers).get('range') ?? '')
  if (!range) return new Response(bytes)
  const end = range[2] ? Number(range[2]) + 1 : bytes.length
  return new Response(bytes.subarray(Number(range[1]), end), { status: 206 })
}

const [icebird, ...tables] = process.argv.slice(2)
const { icebergRead } = await import(icebird)

function sum(value) {
  switch (typeof value) {
    case 'bigint': return value
    case 'number': return BigInt(value)
    case 'boolean': return value ? 1n : 0n
    case 'string': return BigInt(Buffer.byteLength(value))
  }
  if (value instanceof Date) return BigInt(value.getTime())
  return 0n
}

for (const tableUrl of tables) {
  const rows = await icebergRead({ tableUrl })
  const columns = {}
  for (const row of rows) {
    for (const [name, value] of Object.entries(row)) {
      if (value === undefined || value === null) continue
      const c = columns[name] ??= { values: 0, sum: 0n }
      c.values++
      c.sum += sum(value)
    }
  }
  for (const c of Object.values(columns)) c.sum = String(c.sum)
  console.log(JSON.stringify({ table: basename(tableUrl), rows: rows.length, columns }))
}
