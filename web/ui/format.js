// SPDX-License-Identifier: Apache-2.0
// How times, sizes and counts are written: as iotape's tables write them.

/** Three digits. @param {number} v */
const digits = v => v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v.toFixed(2);

/** A duration. @param {number} ns */
function duration(ns) {
  if (ns < 0) return "−" + duration(-ns);
  for (const [size, unit] of [[3600e9, "h"], [60e9, "min"], [1e9, "s"], [1e6, "ms"], [1e3, "µs"]]) {
    if (ns >= size) return digits(ns / size) + " " + unit;
  }
  return Math.round(ns) + " ns";
}

/** How long something took. @param {number|undefined} ns absent or below 0: not known */
const took = ns => ns === undefined || ns < 0 ? "?" : duration(ns);

/** Bytes with binary units. @param {number} n */
function bytes(n) {
  for (const [size, unit] of [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) {
    if (n >= size) return digits(n / size) + " " + unit;
  }
  return n + " B";
}

/** A count, thousands apart. @param {number} n */
const count = n => Math.round(n).toLocaleString("en-US");

/** n of something. */
const plural = (n, one, many) => count(n) + " " + (n === 1 ? one : many);

/**
 * A moment, with as many digits as tell apart what is step ns apart.
 * @param {number} ns since the beginning
 * @param {number} among the largest of the moments beside it, which sets the unit
 */
function moment(ns, step, among = ns) {
  among = Math.abs(among) + step;
  const [size, unit] = among >= 1e9 ? [1e9, "s"] : among >= 1e6 ? [1e6, "ms"] : among >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  const places = Math.min(9, Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9)));
  return (ns < 0 ? "−" : "") + (Math.abs(ns) / size).toFixed(places) + " " + unit;
}

/** Round steps that divide a length into about n parts. */
function step(length, n) {
  const raw = Math.max(length / n, 1), base = 10 ** Math.floor(Math.log10(raw));
  for (const k of [1, 2, 5, 10]) if (raw <= k * base) return k * base;
  return 10 * base;
}
