// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/blake3"

	"github.com/iotape/iotape/pipe/wholefile"
)

// Errors of Open for what is not a tape, but can be made one: by the named command, and by
// open.Any of package format/open.
var (
	// ErrNotSealed is wrapped for a recording that is not sealed: a stream, or the directory of one.
	ErrNotSealed = errors.New("an unsealed stream; run: iotape seal")
	// ErrNoTape is wrapped for a name that nothing has.
	ErrNoTape = errors.New("no such tape")
	// ErrForeign is wrapped for a file that iotape did not write. It is an ErrNotATrace.
	ErrForeign = fmt.Errorf("%w; if it is another tool's trace, run: iotape convert", ErrNotATrace)
)

// Tape is an open tape. It is safe for concurrent use, its EventReaders are not.
type Tape struct {
	dir      string            // absolute
	name     string            // as it was opened
	derived  *wholefile.NewDir // where derived files are, if not in dir
	manifest *Manifest
	seal     string // check of the manifest, "" if there is no sound one
	salvage  bool   // a content file that cannot be opened is empty
	files    []*os.File
	events   *blockFile
	content  *blockFile
	packs    packCache
	decoder  *zstd.Decoder // safe for concurrent use
	onClose  func() error
	stacks   tapeStacks
}

// Open opens the tape in the directory at path. If path holds something else, the error
// says what: it wraps ErrNotSealed or ErrForeign for what can be made into a tape, and
// ErrNotATrace for the rest.
func Open(path string) (*Tape, error) {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, opening(path, err)
	case st.IsDir():
		return openDirectory(path)
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s is %s: %w", path, st.Mode().Type(), ErrNotATrace)
	}
	return nil, identify(path)
}

// opening says why what is at a path cannot be opened. The path stands once.
func opening(path string, err error) error {
	var inner *fs.PathError
	if errors.As(err, &inner) {
		err = inner.Err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w: %w", path, ErrNoTape, err)
	}
	return fmt.Errorf("%s: the tape cannot be opened: %w", path, err)
}

// SetName sets what Name returns, for a tape that was made of something else.
func (t *Tape) SetName(name string) { t.name = name }

// OnClose makes Close call f at its end.
func (t *Tape) OnClose(f func() error) { t.onClose = f }

// IsStream reports whether a file begins like a stream.
func IsStream(f io.ReaderAt) bool {
	var b [4]byte
	_, err := f.ReadAt(b[:], 0)
	return err == nil && binary.LittleEndian.Uint32(b[:]) == frameMagic
}

// pipedMagic is what a piped stream begins with: pipe.Magic, without the package. Who
// writes streams need not link it.
const pipedMagic = "iotape P"

// identify says what a file is instead of a tape.
func identify(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return opening(path, err)
	}
	defer f.Close()
	var b [FrameHeaderBytes]byte
	n, err := io.ReadFull(f, b[:])
	switch {
	case err != nil && err != io.EOF && err != io.ErrUnexpectedEOF:
		return fmt.Errorf("read %s: %w", path, err)
	case n == 0:
		return fmt.Errorf("%s is empty: %w", path, ErrNotATrace)
	case n >= 8 && (string(b[:8]) == "iotape E" || string(b[:8]) == "iotape C"):
		return fmt.Errorf("%s is a file within a tape; open its directory %s: %w", path, filepath.Dir(path),
			ErrNotATrace)
	case bytes.HasPrefix(b[:n], []byte(pipedMagic)):
		return fmt.Errorf("%s is %w", path, ErrNotSealed)
	case n < 4 || binary.LittleEndian.Uint32(b[:]) != frameMagic:
		return fmt.Errorf("%s: %w", path, ErrForeign)
	case n < FrameHeaderBytes:
		return fmt.Errorf("%s is %w: it is cut off within its first frame: %w", path, ErrNotSealed, ErrTruncated)
	}
	var fr Frame
	if err := fr.parse(b[:]); err != nil {
		return fmt.Errorf("%s is %w: %w", path, ErrNotSealed, err)
	}
	return fmt.Errorf("%s is %w", path, ErrNotSealed)
}

// openDirectory opens the tape in a directory.
func openDirectory(dir string) (*Tape, error) {
	b, err := readLimited(dir, ManifestName, maxManifestBytes)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(dir, EventsName)); err == nil {
			return nil, fmt.Errorf("%s has no %s, so its sealing did not finish: %w", dir, ManifestName, ErrTruncated)
		}
		if _, err := os.Stat(filepath.Join(dir, StreamName)); err == nil {
			return nil, fmt.Errorf("%s has %w", dir, ErrNotSealed)
		}
		return nil, fmt.Errorf("%s is a directory without %s: %w", dir, ManifestName, ErrNotATrace)
	}
	if err != nil {
		return nil, fmt.Errorf("open tape: %w", err)
	}
	m, err := ParseManifest(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	t := &Tape{name: dir, manifest: m, seal: sealOf(b)}
	if t.dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("open tape: %w", err)
	}
	if err := t.openFiles(); err != nil {
		t.Close()
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return t, nil
}

// Salvage opens what is readable of a tape whose sealing did not finish, or that is
// damaged. Its manifest is made up from what was found, and Incomplete. A content file of
// which nothing can be read is taken for an empty one.
func Salvage(dir string) (*Tape, error) {
	t := &Tape{name: dir, salvage: true,
		manifest: &Manifest{Format: tapeFormat, Version: TapeVersion, Incomplete: true,
			Reason: "salvaged: there was no sound manifest"}}
	var err error
	if t.dir, err = filepath.Abs(dir); err == nil {
		err = t.openFiles()
	}
	if err != nil {
		t.Close()
		return nil, fmt.Errorf("salvage %s: %w", dir, err)
	}
	m := t.manifest
	m.Counts.Events, m.Content.Chunks = t.events.end, t.content.end-t.content.kind.first
	for i, b := range t.events.blocks {
		if i == 0 {
			m.FirstNS, m.LastNS = b.min, b.max
		}
		m.FirstNS, m.LastNS = min(m.FirstNS, b.min), max(m.LastNS, b.max)
	}
	if b, err := readLimited(dir, ManifestName, maxManifestBytes); err == nil {
		if sound, err := ParseManifest(b); err == nil {
			m.Hosts, m.ExitStatus, m.Signal, m.Losses, m.Files = sound.Hosts, sound.ExitStatus, sound.Signal,
				sound.Losses, sound.Files
			m.Counts.Events, m.Reason = sound.Counts.Events, "salvaged: "+cmp.Or(sound.Reason, "it is damaged")
			t.seal = sealOf(b)
			return t, nil
		}
	}
	if b, err := readLimited(dir, HeadName, MaxFrameBytes); err == nil {
		m.Hosts = readHeads(b)
	}
	return t, t.findFiles()
}

// findFiles lists the other files of a tape that has no manifest.
func (t *Tape) findFiles() error {
	entries, err := os.ReadDir(t.dir)
	if err != nil {
		return fmt.Errorf("salvage %s: %w", t.dir, err)
	}
	t.manifest.Files = map[string]FileSum{}
	for _, e := range entries {
		if name := e.Name(); e.Type().IsRegular() && validName(name) == nil && !reservedName(name) &&
			len(t.manifest.Files) < maxTapeFiles {
			if sum, err := sumFile(context.Background(), t.dir, name, nil); err == nil {
				t.manifest.Files[name] = sum
			}
		}
	}
	return nil
}

// readLimited reads a file of a tape, of at most limit bytes.
func readLimited(dir, name string, limit int64) ([]byte, error) {
	f, err := wholefile.Open(dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%s has more than %d bytes: %w", f.Name(), limit, ErrCorrupt)
	}
	return b, err
}

func (t *Tape) openFiles() error {
	t.decoder = newDecoder(runtime.GOMAXPROCS(0))
	t.packs.init(packCacheBytes)
	var err error
	if t.events, err = t.openFile(&eventsKind); err != nil {
		return err
	}
	t.content, err = t.openFile(&contentKind)
	if err != nil && t.salvage && !errors.Is(err, ErrNewer) {
		t.content, err = &blockFile{kind: &contentKind, end: contentKind.first, broken: err,
			cut: fmt.Errorf("%w: %w", err, ErrCorrupt)}, nil
	}
	return err
}

func (t *Tape) openFile(kind *blockKind) (*blockFile, error) {
	f, err := wholefile.Open(t.dir, kind.name)
	if err != nil {
		return nil, err
	}
	t.files = append(t.files, f)
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return openBlockFile(kind, f, st.Size())
}

// Manifest returns the tape's description. The caller must not change it.
func (t *Tape) Manifest() *Manifest { return t.manifest }

// Host returns a host of the tape, an empty one if the manifest lacks it.
func (t *Tape) Host(i uint32) *Host {
	if uint64(i) < uint64(len(t.manifest.Hosts)) {
		return &t.manifest.Hosts[i]
	}
	return new(Host)
}

// Dir returns the directory of the tape, absolute.
func (t *Tape) Dir() string { return t.dir }

// Name returns what was opened, as it was given.
func (t *Tape) Name() string { return t.name }

// Close releases the tape's files.
func (t *Tape) Close() error {
	var errs []error
	for _, f := range t.files {
		errs = append(errs, f.Close())
	}
	t.files = nil
	if t.decoder != nil {
		t.decoder.Close()
	}
	if t.onClose != nil {
		errs = append(errs, t.onClose())
		t.onClose = nil
	}
	if t.derived != nil {
		errs = append(errs, t.derived.Close())
		t.derived = nil
	}
	return errors.Join(errs...)
}

// OpenFile opens another file of the tape, one that the manifest lists. Reading to
// the end verifies it: instead of io.EOF comes ErrCorrupt if its size or hash
// differs.
func (t *Tape) OpenFile(name string) (io.ReadCloser, error) {
	sum, ok := t.manifest.Files[name]
	if !ok {
		return nil, fmt.Errorf("open %s of the tape: %w", name, fs.ErrNotExist)
	}
	f, err := wholefile.Open(t.dir, name)
	if err != nil {
		return nil, fmt.Errorf("open %s of the tape: %w", name, err)
	}
	return &sumReader{f: f, name: name, hash: blake3.New(), want: sum}, nil
}

// sumReader verifies what it reads.
type sumReader struct {
	f    *os.File
	name string
	hash *blake3.Hasher
	n    int64
	want FileSum
}

func (r *sumReader) Read(b []byte) (int, error) {
	n, err := r.f.Read(b)
	r.hash.Write(b[:n])
	r.n += int64(n)
	switch {
	case r.n > r.want.Bytes:
		return 0, fmt.Errorf("%s: more than %d bytes: %w", r.name, r.want.Bytes, ErrCorrupt)
	case err != io.EOF:
		return n, err
	case r.n < r.want.Bytes:
		return n, fmt.Errorf("%s: %d bytes of %d: %w", r.name, r.n, r.want.Bytes, ErrTruncated)
	case hex.EncodeToString(r.hash.Sum(nil)) != r.want.BLAKE3:
		return n, fmt.Errorf("%s: hash differs: %w", r.name, ErrCorrupt)
	}
	return n, io.EOF
}

func (r *sumReader) Close() error { return r.f.Close() }

// Torn reports whether the file of events breaks off, so that it does not tell how many
// there were.
func (t *Tape) Torn() bool { return t.events.cut != nil }

// NoManifest reports whether the tape was opened by Salvage and had no sound manifest.
func (t *Tape) NoManifest() bool { return t.seal == "" }
