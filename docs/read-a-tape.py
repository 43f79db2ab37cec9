#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""read-a-tape.py TAPE: prints the calls of a tape as CSV, what they moved in hexadecimal.
It knows what docs/format.md (2) and docs/ops.md say, needs python3-zstandard, and checks nothing."""
import csv, errno, io, json, os, re, struct, sys, zstandard

def blocks(path, magic):  # 2.2
    with open(path, "rb") as f:
        f.seek(16)
        while (h := struct.unpack("<IIQIIIII", f.read(64)[:36]))[0] == magic:
            table, payload = f.read(h[7]), f.read(h[6])
            if h[4] == 1:
                payload = zstandard.ZstdDecompressor().stream_reader(payload, read_across_frames=True).read(h[5])
            yield h[2], h[3], table, io.BytesIO(payload)

def uvarint(f):
    b = f.read(1)[0]
    return b & 127 | (uvarint(f) << 7 if b > 127 else 0)

def columns(f):  # 2.3: a function that iterates over n values of column id
    cols, words = {}, [""]
    while f.tell() < f.getbuffer().nbytes:
        id, enc = uvarint(f), f.read(1)[0]
        cols[id] = enc, f.read(uvarint(f))
    d = io.BytesIO(cols.get(100, (0, b"\0"))[1])
    words += [d.read(n).decode("utf-8", "backslashreplace") for n in [uvarint(d) for _ in range(uvarint(d))]]
    def column(id, n, as_=int):
        enc, data = cols.get(id, (0, b"\0"))
        d, before = io.BytesIO(data if enc else data * max(n, 1)), 0
        for _ in range(n):
            v = uvarint(d)
            if enc > 1:  # zigzag, and perhaps a difference
                v = before = ((v >> 1) ^ -(v & 1)) + (before if enc == 3 else 0) & (1 << 64) - 1
            yield words[v] if as_ is str else v - (v >> 63 << 64)
    return column, io.BytesIO(cols.get(101, (0, b""))[1])

def calls(tape, ops):
    store = {}  # 2.4: all chunks, for simplicity
    for first, n, table, f in blocks(tape + "/content", 0x43746F69):
        store |= {first + i: f.read(*struct.unpack_from("<I", table, 36 * i + 32)) for i in range(n)}
    for first, n, _, f in blocks(tape + "/events", 0x45746F69):
        c, inline = columns(f)
        npaths, nbufs, nrefs = sum(c(28, n)), sum(c(29, n)), sum(c(78, sum(c(29, n))))
        paths, refs = zip(c(61, npaths, str), c(62, npaths, str)), zip(*(c(id, nrefs) for id in (90, 91, 92)))
        bufs = zip(*(c(id, nbufs) for id in (70, 72, 77, 78)))
        for seq, (op, kind, pid, tid, enter, took, ret, err, offset, count, npaths, nbufs, comm) in enumerate(
                zip(*(c(id, n) for id in (0, 1, 4, 5, 12, 13, 15, 16, 23, 24, 28, 29)), c(11, n, str)), first):
            names, content = [next(paths) for _ in range(npaths)] + [("", "")] * 2, b""
            for arg, what, length, nrefs in [next(bufs) for _ in range(nbufs)]:
                b = inline.read(max(length - 1, 0)) + b"".join(store[k][at:at + size] for k, at, size in [next(refs) for _ in range(nrefs)] if k)
                content += b if ops[op][1] in ("data", "socket") and (arg >> 4 == 3 or arg >> 4 == 0 and what in (16, 17)) else b""
            if kind == 0:
                yield (seq, ops[op][0], pid, tid, comm, enter, enter + took, ret, errno.errorcode.get(err, ""), *names[0], *names[1],
                       offset if offset >= 0 else "", count if count >= 0 else "", content.hex())

assert json.load(open(sys.argv[1] + "/manifest.json"))["version"] == 1
operations = open(os.path.dirname(os.path.abspath(__file__)) + "/ops.md").read()
out = csv.writer(sys.stdout, lineterminator="\n")
out.writerow("seq op pid tid comm enter_ns exit_ns ret errno path abs path2 abs2 offset count content".split())
out.writerows(calls(sys.argv[1], {int(n): op for n, *op in re.findall(r"^\| (\d+) \| `(\w+)\(.*\)` \| (\w+) ", operations, re.M)}))
