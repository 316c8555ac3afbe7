package inspect

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/vector"
)

var update = flag.Bool("update", false, "write the expected outputs anew")

// orders has columns of all kinds of codecs and values.
func orders() *catalog.Table {
	bytewise := vector.TypeOf(vector.Text)
	bytewise.Collation = vector.Collation{OID: 950, Deterministic: true, C: true}
	other := vector.TypeOf(vector.Varchar)
	other.Collation = vector.Collation{OID: 100, Deterministic: true}
	return &catalog.Table{OID: 16384, Schema: "public", Name: "orders", Identity: []int{0}, Columns: []catalog.Column{
		{Name: "id", Type: vector.TypeOf(vector.Int8)},
		{Name: "day", Type: vector.TypeOf(vector.Date)},
		{Name: "placed", Type: vector.TypeOf(vector.TimestampTZ)},
		{Name: "price", Type: vector.NumericType(2)},
		{Name: "ratio", Type: vector.TypeOf(vector.Float8)},
		{Name: "paid", Type: vector.TypeOf(vector.Bool)},
		{Name: "status", Type: bytewise},
		{Name: "no\te", Type: other},
		{Name: "details", Type: vector.Type{Typmod: -1}, Unsupported: "json"},
		{Name: "never", Type: vector.TypeOf(vector.Int4)},
	}}
}

const ordersRows = 1100

// write saves the table in a folder: two segments, some rows deleted.
func write(t testing.TB, dir string) {
	t.Helper()
	s := colstore.New(colstore.Options{SegmentRows: 1024})
	defer s.Close()
	meta := orders()
	l := s.NewLoader(meta)
	w := l.NewWriter()
	for i := range int64(ordersRows) {
		w.Int(0, 1000+i)
		w.Int(1, 8766+i/50)
		w.Int(2, 757_382_400_000_000+i*61_000_000)
		w.Int(3, i*7919%25000)
		w.Int(4, int64(math.Float64bits(float64(i%40)/8)))
		w.Int(5, i/16%2)
		w.Text(6, []byte([]string{"open", "paid", "sent"}[i/100%3]))
		if i%3 == 0 {
			w.Null(7)
		} else {
			w.Text(7, fmt.Appendf(nil, "note %d", i%11))
		}
		w.Null(9)
		if err := w.EndRow(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	table, err := l.Finish()
	if err != nil {
		t.Fatal(err)
	}
	table.Snapshot, _ = colstore.ParseSnapshot("740:740:")
	rel := s.NewRelation(table)
	s.Publish(rel)
	for _, id := range []int64{1003, 1004, 1500} {
		row := colstore.NewRow(meta)
		row.State[0], row.Int[0] = colstore.ColumnValue, id
		if err := rel.Delete(meta.OID, row); err != nil {
			t.Fatal(err)
		}
	}
	if err := rel.Commit(741, 0x1A2B000); err != nil {
		t.Fatal(err)
	}
	if err := save(dir, s, "741:742:"); err != nil {
		t.Fatal(err)
	}
}

func save(dir string, s *colstore.Store, snapshot string) error {
	snap, err := colstore.ParseSnapshot(snapshot)
	if err != nil {
		return err
	}
	view, err := s.View(16384, snap)
	if err != nil {
		return err
	}
	defer view.Release()
	d, err := colstore.OpenDisk(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Save(&colstore.Checkpoint{Instance: "pgaccel_0a1b2c3d", SystemID: "7301234567890123456", Database: "shop",
		Snapshot: snapshot, Position: 0x1_0A2B3C4D, Saved: time.Unix(1_780_000_000, 0)}, []*colstore.Table{view})
}

// show is what is printed of a folder and of each of its files.
func show(t *testing.T, dir string) string {
	t.Helper()
	var b bytes.Buffer
	names := []string{""}
	for _, name := range folder(t, dir) {
		if name != "manifest" && name != "lock" {
			names = append(names, name)
		}
	}
	for _, name := range names {
		fmt.Fprintf(&b, "$ pgaccel inspect DIR/%s\n", name)
		if err := Path(&b, filepath.Join(dir, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func folder(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func compare(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: printed (-update writes it)\n%s\nnot\n%s", path, got, want)
	}
}

// TestWritten: what is printed of a folder that this version writes.
func TestWritten(t *testing.T) {
	dir := t.TempDir()
	write(t, dir)
	compare(t, "written.txt", show(t, dir))
}

const committed = "testdata/format1"

// TestCommitted: a folder that an earlier version wrote, in format 1, is read, and loaded, as
// it was. It is never written anew.
func TestCommitted(t *testing.T) {
	compare(t, "format1.txt", show(t, committed))
	dir := copied(t)
	d, err := colstore.OpenDisk(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.Last() == nil {
		t.Fatal(d.Damage())
	}
	s := colstore.New(colstore.Options{SegmentRows: 1024})
	defer s.Close()
	table, err := d.LoadTable(s, &d.Last().Tables[0])
	if err != nil {
		t.Fatal(err)
	}
	defer table.Release()
	if table.Rows != ordersRows-3 || table.Dicts[6].At(0) != "open" {
		t.Errorf("%d rows, the first text is %q", table.Rows, table.Dicts[6].At(0))
	}
	ids := make([]int64, 1024)
	table.Segments[0].Columns[0].Data.Decode(ids, 0)
	if ids[0] != 1000 || ids[1023] != 2023 {
		t.Errorf("ids %d to %d", ids[0], ids[1023])
	}
}

// copied is a copy of the committed folder.
func copied(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(committed)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestNothingChanges: a folder in use is read, and neither written nor taken.
func TestNothingChanges(t *testing.T) {
	dir := copied(t)
	stray := filepath.Join(dir, "s99") // what a pgaccel would remove
	if err := os.WriteFile(stray, []byte("PGACSEG1"), 0o600); err != nil {
		t.Fatal(err)
	}
	state := func() (all []string) {
		for _, name := range folder(t, dir) {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprint(name, info.Size(), info.Mode(), info.ModTime().UnixNano()))
		}
		return all
	}
	before := state()
	for _, name := range append(folder(t, dir), "") {
		Path(io.Discard, filepath.Join(dir, name)) // of s99, manifest, lock errors: not the question
	}
	if after := state(); !slices.Equal(before, after) {
		t.Errorf("before:\n%s\nafter:\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
	d, err := colstore.OpenDisk(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := Path(io.Discard, dir); err != nil {
		t.Error("a folder in use:", err)
	}
}

// seal writes the checksum of a changed file.
func seal(b []byte) []byte {
	body := b[:len(b)-4]
	return binary.LittleEndian.AppendUint32(slices.Clone(body), crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
}

func put64(b []byte, at int, v uint64) []byte {
	b = slices.Clone(b)
	binary.LittleEndian.PutUint64(b[at:], v)
	return seal(b)
}

// TestDamage: what is wrong is said with file and offset, and the rest is printed.
func TestDamage(t *testing.T) {
	const entry = 16 // of column 0
	manifest := func(old, new string) func([]byte) []byte {
		return func(b []byte) []byte {
			line, _, _ := strings.Cut(string(b), "\n")
			if !strings.Contains(line, old) {
				t.Fatalf("no %s in the manifest", old)
			}
			line = strings.Replace(line, old, new, 1)
			return fmt.Appendf(nil, "%s\n%08x\n", line, crc32.Checksum([]byte(line), crc32.MakeTable(crc32.Castagnoli)))
		}
	}
	data := func(b []byte) int { return int(binary.LittleEndian.Uint64(b[entry:])) }
	for _, c := range []struct {
		name, file, look string
		change           func([]byte) []byte
		want             []string // in the error, file first
		output           string   // in what is printed
	}{
		{"bit", "s1", "s1", func(b []byte) []byte { b[len(b)/2] ^= 4; return b }, []string{"DIR/s1: offset", "checksum is"}, "checksum not ok"},
		{"cut", "s1", "s1", func(b []byte) []byte { return b[:len(b)-5] },
			[]string{"DIR/s1: offset", "checksum is", "the file ends, the manifest says"}, "checksum not ok"},
		{"cut in entries", "s1", "s1", func(b []byte) []byte { return b[:300] }, []string{"DIR/s1: offset 8: 10 columns, the file has room for 4"}, "checksum not ok"},
		{"cut in header", "s1", "s1", func(b []byte) []byte { return b[:11] }, []string{"DIR/s1: offset 11: the file ends in its header"}, "checksum not ok"},
		{"empty", "s1", "s1", func(b []byte) []byte { return nil }, []string{"DIR/s1: offset 0: the file ends in its header"}, "segment s1 of public.orders"},
		{"version", "s1", "s1", func(b []byte) []byte { b[7] = '2'; return seal(b) }, []string{"DIR/s1: offset 7: format version '2', this pgaccel reads '1'"}, "0"},
		{"magic", "s1", "s1", func(b []byte) []byte { b[0] = 'X'; return seal(b) }, []string{"DIR/s1: offset 0: the file begins with"}, ""},
		{"rows", "s1", "s1", func(b []byte) []byte { b[12] = 1; return seal(b) }, []string{"DIR/s1: offset 12: 1025 rows, the manifest says 1024"}, "1025 rows"},
		{"outside", "s1", "s1", func(b []byte) []byte { return put64(b, entry, 1<<40) }, []string{"DIR/s1: offset 16: column 0: ", "outside of the file"}, "placed"},
		{"nulls", "s1", "s1", func(b []byte) []byte { return put64(b, entry+64*7+48, 5) }, []string{"DIR/s1: offset", "column 7: 342 bits in the null bitmap, not 5"}, "placed"},
		{"column version", "s1", "s1", func(b []byte) []byte { b[data(b)+1] = 9; return seal(b) }, []string{"column 0: corrupt column: format version 9, this pgaccel reads 1"}, "damaged"},
		{"column rows", "s1", "s1", func(b []byte) []byte { b[data(b)+4]++; return seal(b) }, []string{"DIR/s1: offset", "column 0"}, "damaged"},
		{"dictionary bit", "d4", "d4", func(b []byte) []byte { b[len(b)-6] ^= 1; return b }, []string{"DIR/d4: offset", "checksum is"}, "checksum not ok"},
		{"dictionary length", "d4", "d4", func(b []byte) []byte { b[16]++; return seal(b) }, []string{"DIR/d4: offset 28: strings of 13 bytes, the file has 12"}, "checksum ok"},
		{"dictionary count", "d4", "d4", func(b []byte) []byte { return put64(b, 8, 1<<60) }, []string{"DIR/d4: offset 8: 1152921504606846976 strings"}, "checksum ok"},
		{"dictionary twice", "d4", "d4", func(b []byte) []byte { copy(b[28:], "sentsent"); return seal(b) }, []string{"DIR/d4: offset 32: codes 0 and 1 are the same string"}, "3 strings"},
		{"live short", "l3", "l3", func(b []byte) []byte { return seal(b[:len(b)-8]) }, []string{"DIR/l3: offset 120: the file ends in the rows of segment 0"}, "checksum ok"},
		{"live words", "l3", "l3", func(b []byte) []byte { return b[:len(b)-3] }, []string{"DIR/l3: offset 120: 125 bytes, which are no words"}, "checksum not ok"},
		{"manifest bit", "manifest", "", func(b []byte) []byte { b[20] ^= 1; return b }, []string{"DIR/manifest: no usable checkpoint: the manifest's checksum is wrong"}, ""},
		{"manifest format", "manifest", "", manifest(`"Format":1`, `"Format":9`), []string{"DIR/manifest: no usable checkpoint: format 9, this version writes 2"}, ""},
		{"manifest beside", "manifest", "s1", func(b []byte) []byte { return b[:9] }, []string{"DIR/manifest: no usable checkpoint"}, "1024 rows"},
		{"folder, cut", "d4", "", func(b []byte) []byte { return b[:7] }, []string{"DIR/d4: offset 7: the file ends, the manifest says 44 bytes"}, "public.orders"},
		{"folder, long", "d4", "", func(b []byte) []byte { return append(b, 1) }, []string{"DIR/d4: offset 44: the file goes on to 45, the manifest says 44 bytes"}, "public.orders"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := copied(t)
			path := filepath.Join(dir, c.file)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, c.change(b), 0o600); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			err = Path(&out, filepath.Join(dir, c.look))
			if err == nil {
				t.Fatalf("no error:\n%s", out.String())
			}
			text := strings.ReplaceAll(err.Error(), dir, "DIR")
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("error\n%s\nlacks %q", text, want)
				}
			}
			if !strings.Contains(out.String(), c.output) {
				t.Errorf("printed\n%s\nlacks %q", out.String(), c.output)
			}
		})
	}
}

// TestMissing: files that are not there, and paths that are no such files.
func TestMissing(t *testing.T) {
	dir := copied(t)
	if err := os.Remove(filepath.Join(dir, "s2")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"":           "DIR/s2: missing, the manifest says",
		"s2":         "open DIR/s2: no such file or directory",
		"s77":        "no such file or directory; the checkpoint does not name it",
		"lock":       "DIR/lock: no file of columns",
		"manifest":   "DIR/manifest: no file of columns",
		"nowhere/s1": "no such file or directory",
	} {
		err := Path(io.Discard, filepath.Join(dir, path))
		if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), dir, "DIR"), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	empty := t.TempDir()
	if err := Path(io.Discard, empty); !errors.Is(err, colstore.ErrNoCheckpoint) {
		t.Errorf("an empty folder: %v", err)
	}
}

// TestAlone: files without a manifest, and files that it does not name, are read by
// themselves.
func TestAlone(t *testing.T) {
	dir := copied(t)
	if err := os.Rename(filepath.Join(dir, "s1"), filepath.Join(dir, "s8")); err != nil {
		t.Fatal(err)
	}
	look := func(name, want string) {
		t.Helper()
		var out strings.Builder
		if err := Path(&out, filepath.Join(dir, name)); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
	}
	look("s8", "which the checkpoint does not name")
	if err := os.Remove(filepath.Join(dir, "manifest")); err != nil {
		t.Fatal(err)
	}
	look("s8", "no checkpoint beside it")
	look("l3", "16 words")
	look("d4", "3 strings of 12 bytes, of 4 to 4 each")
}

// TestBesideSaves: while checkpoints replace each other a folder is whole, or the error
// says what happened to it.
func TestBesideSaves(t *testing.T) {
	dir := t.TempDir()
	write(t, dir)
	s := colstore.New(colstore.Options{SegmentRows: 1024})
	defer s.Close()
	d, err := colstore.OpenDisk(dir)
	if err != nil {
		t.Fatal(err)
	}
	table, err := d.LoadTable(s, &d.Last().Tables[0])
	d.Close()
	if err != nil {
		t.Fatal(err)
	}
	s.Publish(s.NewRelation(table))
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				// A Disk that knows nothing writes all files anew, and removes the old ones.
				if err := save(dir, s, "741:742:"); err != nil {
					t.Error(err)
					return
				}
			}
		}
	}()
	for range 200 {
		if err := Path(io.Discard, dir); err != nil && !strings.Contains(err.Error(), "a running pgaccel has saved a newer checkpoint meanwhile") {
			t.Fatal(err)
		}
	}
	close(stop)
	<-done
}

// TestAnyBytes: no bytes under a right checksum make it panic.
func TestAnyBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"s1", "s2", "d4", "d5", "l3"} {
		good, err := os.ReadFile(filepath.Join(committed, name))
		if err != nil {
			t.Fatal(err)
		}
		dir := copied(t)
		for range 300 {
			b := slices.Clone(good)
			for range 1 + r.IntN(4) {
				b[r.IntN(min(len(b), 700))] = byte(r.Uint32())
			}
			if r.IntN(4) == 0 {
				b = b[:4+r.IntN(len(b)-4)]
			}
			if err := os.WriteFile(filepath.Join(dir, name), seal(b), 0o600); err != nil {
				t.Fatal(err)
			}
			Path(io.Discard, filepath.Join(dir, name))
		}
	}
}
