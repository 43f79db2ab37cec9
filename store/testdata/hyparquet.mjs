// SPDX-License-Identifier: Apache-2.0

// hyparquet.mjs MODULES FILE...: reads Parquet files with hyparquet, and prints for each a line of JSON: its rows, and
// of each column of numbers how many values it has and their sum, of others how many there are.
const [, , modules, ...files] = process.argv
const { asyncBufferFromFile, parquetReadObjects } = await import(`${modules}/hyparquet/src/node.js`)
const { compressors } = await import(`${modules}/hyparquet-compressors/src/index.js`)
for (const name of files) {
  const rows = await parquetReadObjects({ file: await asyncBufferFromFile(name), compressors })
  const columns = {}
  for (const row of rows) {
    for (const [column, value] of Object.entries(row)) {
      const c = columns[column] ??= { values: 0, sum: 0n }
      if (value === null || value === undefined) continue
      c.values++
      if (typeof value === 'bigint' || Number.isInteger(value)) c.sum += BigInt(value)
    }
  }
  for (const c of Object.values(columns)) c.sum = String(c.sum)
  console.log(JSON.stringify({ rows: rows.length, columns }))
}
