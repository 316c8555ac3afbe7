package colstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"pgaccel/catalog"
	"pgaccel/compress"
)

// A checkpoint is all tables as one snapshot sees them, on disk, and the log
// position from which the stream has to be read again: every commit before it is one
// that the snapshot sees. A restart loads the tables, reads the stream from there and
// skips what the snapshot sees already.
//
//	DIR/lock            held (flock) by the process that uses the folder; names its Instance
//	DIR/manifest        JSON, one line, then the CRC-32C of that line in hexadecimal
//	DIR/s<n>            a segment, written once and never changed
//	DIR/d<n>            a dictionary: strings in the order of their codes
//	DIR/l<n>            the live bitmaps of one table's segments
//
// The manifest is replaced by rename, after everything that it names has been synced;
// so a crash at any point leaves the old checkpoint or the new one. Files that no
// manifest names are removed. Numbers only go up. Every file has checksums; what does
// not fit them is not used: the table is copied again.

// Checkpoint describes one.
type Checkpoint struct {
	Format   int             // checkpointFormat
	Instance string          // names the publication and the slot
	SystemID string          // the database cluster
	Database string          // its database
	Snapshot string          // what the tables hold
	Position uint64          // read the stream from here
	Saved    time.Time       // when
	Extra    json.RawMessage // the replica's own notes
	Tables   []SavedTable
	Next     int // the next file number
}

// SavedTable is one table of a checkpoint.
type SavedTable struct {
	Meta     *catalog.Table
	Rows     int64
	Segments []SavedSegment
	Dicts    []SavedFile // by column; zero where there is none
	Live     SavedFile   // zero where all rows of all segments live
}

// SavedSegment is one segment of a saved table.
type SavedSegment struct {
	File SavedFile
	Rows int
	Part uint32 // leaf partition
	Live bool   // it has a bitmap in SavedTable.Live, rows bits rounded up to words
}

// SavedFile names a file and its size in bytes.
type SavedFile struct {
	Number int
	Size   int64
}

// The kinds of a checkpoint's files: the first letters of their names.
const (
	kindSegment = 's'
	kindDict    = 'd'
	kindLive    = 'l'
)

func (f SavedFile) name(kind byte) string { return fmt.Sprintf("%c%d", kind, f.Number) }

// Files returns the sizes of the table's files, in bytes, by their names.
func (t *SavedTable) Files() map[string]int64 {
	files := map[string]int64{}
	for _, s := range t.Segments {
		files[s.File.name(kindSegment)] = s.File.Size
	}
	for _, f := range t.Dicts {
		if f.Size > 0 {
			files[f.name(kindDict)] = f.Size
		}
	}
	if t.Live.Size > 0 {
		files[t.Live.name(kindLive)] = t.Live.Size
	}
	return files
}

// checkpointFormat is what is written. Format 1, which has no packed dictionaries, is read,
// too.
const checkpointFormat = 2

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrNoCheckpoint is what Load fails with where the folder has none that is whole.
// errors.Is finds it.
var ErrNoCheckpoint = errors.New("no usable checkpoint")

// Disk is a folder of checkpoints. It belongs to one goroutine.
type Disk struct {
	dir  string
	lock *os.File
	last *Checkpoint
	// instance is the last checkpoint's, as the lock file has it: known where the
	// manifest is lost. damage is what is wrong with the folder, nil where nothing is.
	instance string
	noted    string // what the lock file has
	damage   error
	// segments and dicts know the files of what has been saved or loaded: segments by
	// their first column's data, which is never used for another segment while it is
	// a key here; dictionaries by column, with their length.
	segments map[compress.Column]SavedFile
	dicts    map[dictKey]savedDict
	// writeFile is writeSynced; tests make it fail.
	writeFile func(name string, b []byte) error
}

type dictKey struct {
	oid uint32
	col int
}

type savedDict struct {
	file   SavedFile
	length int
	source *dictionary // one of a new copy has other codes
}

// OpenDisk opens a folder, which is made where it is missing, and reads its manifest.
// It fails where another process uses it. Removing the folder's contents gives the
// checkpoint up (and leaves its slot on the server).
func OpenDisk(dir string) (*Disk, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("%s is in use by another pgaccel: %w", dir, err)
	}
	d := &Disk{dir: dir, lock: lock, segments: map[compress.Column]SavedFile{}, dicts: map[dictKey]savedDict{}, writeFile: writeSynced}
	if err := d.look(); err != nil {
		lock.Close()
		return nil, err
	}
	return d, nil
}

// look finds out what the folder holds.
func (d *Disk) look() (err error) {
	name, err := io.ReadAll(io.LimitReader(d.lock, 1024))
	if err != nil {
		return err
	}
	d.noted = strings.TrimSpace(string(name))
	d.instance = d.noted
	d.last, err = ReadCheckpoint(d.dir)
	switch {
	case err == nil:
		d.instance = d.last.Instance
		return nil
	case !errors.Is(err, ErrNoCheckpoint):
		return err
	case !errors.Is(err, fs.ErrNotExist):
		d.damage = err
		return nil
	}
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return err
	}
	files := 0
	for _, e := range entries {
		if ours(e.Name()) {
			files++
		}
	}
	if files > 0 {
		d.damage = fmt.Errorf("%w: there are %d files of columns, but no manifest", ErrNoCheckpoint, files)
	}
	return nil
}

// ours reports whether a file has the name of one of a checkpoint's, other than the
// manifest's.
func ours(name string) bool {
	_, err := strconv.ParseUint(name[1:], 10, 63)
	return err == nil && (name[0] == kindSegment || name[0] == kindDict || name[0] == kindLive)
}

// Damage returns what was wrong with the folder when it was opened, so that there was
// no checkpoint in it though there should have been one; nil where nothing was.
func (d *Disk) Damage() error { return d.damage }

// Instance returns the Instance of the newest checkpoint, also of one that was
// forgotten or lost; "" where there has been none, or it is lost, too.
func (d *Disk) Instance() string { return d.instance }

// setInstance notes the instance in the lock file.
func (d *Disk) setInstance(name string) error {
	if d.instance = name; d.noted == name {
		return nil
	}
	text := []byte(name + "\n")
	if _, err := d.lock.WriteAt(text, 0); err != nil {
		return err
	}
	if err := errors.Join(d.lock.Truncate(int64(len(text))), d.lock.Sync()); err != nil {
		return err
	}
	d.noted = name
	return nil
}

// Close gives the folder back. What was saved stays.
func (d *Disk) Close() error { return d.lock.Close() }

// Last returns the newest checkpoint, nil where there is none.
func (d *Disk) Last() *Checkpoint { return d.last }

// Forget removes the checkpoint and all its files.
func (d *Disk) Forget() error {
	d.last = nil
	clear(d.segments)
	clear(d.dicts)
	if err := os.Remove(filepath.Join(d.dir, "manifest")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := d.syncDir(); err != nil {
		return err
	}
	d.sweep()
	return nil
}

func (d *Disk) path(kind byte, f SavedFile) string { return filepath.Join(d.dir, f.name(kind)) }

// ReadCheckpoint returns the checkpoint of a folder, for who only looks: it takes and
// writes nothing. Where a pgaccel uses the folder, files that the checkpoint names are
// removed once there is a newer one.
func ReadCheckpoint(dir string) (*Checkpoint, error) {
	b, err := os.ReadFile(filepath.Join(dir, "manifest"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", ErrNoCheckpoint, err)
	} else if err != nil {
		return nil, err
	}
	line, sum, ok := strings.Cut(string(b), "\n")
	if !ok || strings.TrimSuffix(sum, "\n") != fmt.Sprintf("%08x", crc32.Checksum([]byte(line), castagnoli)) {
		return nil, fmt.Errorf("%w: the manifest's checksum is wrong", ErrNoCheckpoint)
	}
	c := &Checkpoint{}
	if err := json.Unmarshal([]byte(line), c); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoCheckpoint, err)
	}
	if c.Format < 1 || c.Format > checkpointFormat {
		return nil, fmt.Errorf("%w: format %d, this version writes %d", ErrNoCheckpoint, c.Format, checkpointFormat)
	}
	return c, nil
}

// Save writes a checkpoint of the tables, all Views of c.Snapshot, which the caller
// holds. On an error (a full disk) the last checkpoint stays as it was. c.Tables and
// c.Next are Save's to fill in.
func (d *Disk) Save(c *Checkpoint, tables []*Table) (err error) {
	c.Format, c.Next, c.Tables = checkpointFormat, 1, nil
	if d.last != nil {
		c.Next = d.last.Next
	}
	defer func() {
		if err != nil {
			d.sweep()
		}
	}()
	if err = d.setInstance(c.Instance); err != nil {
		return err
	}
	segments, dicts := map[compress.Column]SavedFile{}, map[dictKey]savedDict{}
	for _, t := range tables {
		saved, err := d.saveTable(c, t, segments, dicts)
		if err != nil {
			return fmt.Errorf("saving %s: %w", t.Meta.QualifiedName(), err)
		}
		c.Tables = append(c.Tables, saved)
	}
	if err = d.syncDir(); err != nil {
		return err
	}
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	name := filepath.Join(d.dir, "manifest")
	text := append(line, fmt.Sprintf("\n%08x\n", crc32.Checksum(line, castagnoli))...)
	if err = d.writeFile(name+".new", text); err != nil {
		return err
	}
	if err = os.Rename(name+".new", name); err != nil {
		return err
	}
	if err = d.syncDir(); err != nil {
		return err
	}
	d.last, d.segments, d.dicts = c, segments, dicts
	d.sweep()
	return nil
}

func (d *Disk) saveTable(c *Checkpoint, t *Table, segments map[compress.Column]SavedFile, dicts map[dictKey]savedDict) (s SavedTable, err error) {
	s = SavedTable{Meta: t.Meta, Rows: t.Rows, Dicts: make([]SavedFile, len(t.Dicts))}
	var live []uint64
	for _, seg := range t.Segments {
		key := seg.firstData()
		file, known := d.segments[key]
		if !known {
			if file, err = d.write(c, kindSegment, encodeSegment(seg)); err != nil {
				return s, err
			}
		}
		segments[key] = file
		s.Segments = append(s.Segments, SavedSegment{File: file, Rows: seg.Rows, Part: seg.part, Live: seg.Live != nil})
		if seg.Live != nil {
			live = append(live, seg.Live[:(seg.Rows+63)/64]...)
		}
	}
	if len(live) > 0 {
		if s.Live, err = d.write(c, kindLive, sealed(bytesOf(live))); err != nil {
			return s, err
		}
	}
	for i, dict := range t.Dicts {
		if dict == nil {
			continue
		}
		key := dictKey{t.Meta.OID, i}
		was, known := d.dicts[key]
		if !known || was.length != dict.Len() || was.source != dict.source {
			if was.file, err = d.write(c, kindDict, encodeDict(dict)); err != nil {
				return s, err
			}
			was.length, was.source = dict.Len(), dict.source
		}
		dicts[key] = was
		s.Dicts[i] = was.file
	}
	return s, nil
}

// firstData identifies a segment: columns are never shared.
func (s *Segment) firstData() compress.Column {
	for i := range s.Columns {
		if s.Columns[i].Data != nil {
			return s.Columns[i].Data
		}
	}
	return nil
}

// write writes a new file, synced.
func (d *Disk) write(c *Checkpoint, kind byte, b []byte) (SavedFile, error) {
	f := SavedFile{c.Next, int64(len(b))}
	c.Next++
	return f, d.writeFile(d.path(kind, f), b)
}

func writeSynced(name string, b []byte) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

func (d *Disk) syncDir() error {
	f, err := os.Open(d.dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// sweep removes files that the last checkpoint does not name. What cannot be removed
// now can be the next time.
func (d *Disk) sweep() {
	keep := map[string]bool{"lock": true, "manifest": true}
	if d.last != nil {
		for i := range d.last.Tables {
			for name := range d.last.Tables[i].Files() {
				keep[name] = true
			}
		}
	}
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if n := e.Name(); !keep[n] && (n == "manifest.new" || ours(n)) {
			os.Remove(filepath.Join(d.dir, n))
		}
	}
}
