// Package docs checks what the pages beside it say.
package docs

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/compress"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// examples are the worked examples of format.md, as the code writes them.
func examples(t *testing.T) map[string][]byte {
	all := map[string][]byte{
		"constant": column(compress.CodecConstant, 7, 7, 7),
		"plain":    column(compress.CodecPlain, 1, -2),
		"for":      column(compress.CodecFOR, 100, 101, 103, 100, 107),
		"for64":    column(compress.CodecFOR64, 1<<40, 1<<40+3),
		"lookup":   column(compress.CodecLookup, 20240101, 20251231, 20240101),
		"dfor":     column(compress.CodecDFOR, 1000, 1003, 1006, 1010),
		"rfor":     column(compress.CodecRFOR, 5, 5, 5, 9, 9),
		"alp":      column(compress.CodecALP, quarters()...),
	}
	maps.Copy(all, folder(t))
	all["packed"] = packedDictionary(t)
	return all
}

func column(codec compress.Codec, values ...int64) []byte {
	c := compress.EncodeAs(codec, values, func(words int) []uint32 { return make([]uint32, words) })
	if c.Codec() != codec {
		panic(fmt.Sprintf("%v became %v", codec, c.Codec()))
	}
	return compress.Bytes(c)
}

// quarters are 0, 0.25, 0.5 to 7.75, but the third is not a decimal of few digits.
func quarters() (values []int64) {
	for i := range 32 {
		v := float64(i) / 4
		if i == 2 {
			v = 1 / 3.0
		}
		values = append(values, int64(math.Float64bits(v)))
	}
	return values
}

// folder returns the files of a checkpoint of one small table: three rows, of which the
// second was deleted.
func folder(t *testing.T) map[string][]byte {
	t.Helper()
	s := colstore.New(colstore.Options{})
	defer s.Close()
	text := vector.TypeOf(vector.Text)
	text.Collation = vector.Collation{OID: 950, Deterministic: true, C: true}
	meta := &catalog.Table{OID: 16384, Schema: "public", Name: "t", Identity: []int{0}, Fingerprint: "f", Columns: []catalog.Column{
		{Name: "id", AttNum: 1, TypeOID: sqltype.OIDInt8, Type: vector.TypeOf(vector.Int8), NotNull: true},
		{Name: "name", AttNum: 2, TypeOID: sqltype.OIDText, Type: text},
		{Name: "doc", AttNum: 3, TypeOID: 114, Type: vector.Type{Typmod: -1}, Unsupported: "json"},
	}}
	l := s.NewLoader(meta)
	w := l.NewWriter()
	for id, name := range []string{"pear", "fig", ""} {
		w.Int(0, int64(id)+1)
		if name == "" {
			w.Null(1)
		} else {
			w.Text(1, []byte(name))
		}
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
	row := colstore.NewRow(meta)
	row.State[0], row.Int[0] = colstore.ColumnValue, 2
	if err := rel.Delete(meta.OID, row); err != nil {
		t.Fatal(err)
	}
	if err := rel.Commit(740, 0x2A000); err != nil {
		t.Fatal(err)
	}
	snap, _ := colstore.ParseSnapshot("741:741:")
	view, err := s.View(meta.OID, snap)
	if err != nil {
		t.Fatal(err)
	}
	defer view.Release()
	dir := t.TempDir()
	d, err := colstore.OpenDisk(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	err = d.Save(&colstore.Checkpoint{Instance: "pgaccel_0a1b2c3d", SystemID: "7301234567890123456", Database: "shop", Snapshot: "741:741:",
		Position: 0x2A000, Saved: time.Unix(1_780_000_000, 0).UTC(), Extra: json.RawMessage(`{}`)}, []*colstore.Table{view})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for name, file := range map[string]string{"manifest": "manifest", "segment": "s1", "live": "l2", "dictionary": "d3"} {
		if files[name], err = os.ReadFile(filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// packedDictionary returns the file of a dictionary of a few strings, packed.
func packedDictionary(t *testing.T) []byte {
	t.Helper()
	s := colstore.New(colstore.Options{PackedMin: 1})
	defer s.Close()
	text := vector.TypeOf(vector.Text)
	text.Collation = vector.Collation{OID: 950, Deterministic: true, C: true}
	meta := &catalog.Table{OID: 16384, Schema: "public", Name: "t", Columns: []catalog.Column{{Name: "name", AttNum: 1, TypeOID: sqltype.OIDText, Type: text}}}
	l := s.NewLoader(meta)
	w := l.NewWriter()
	for i := range 4 {
		w.Text(0, fmt.Appendf(nil, "night %d", i+6))
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
	s.Publish(s.NewRelation(table))
	view, err := s.View(meta.OID, colstore.Snapshot{Xmax: 9})
	if err != nil {
		t.Fatal(err)
	}
	defer view.Release()
	dir := t.TempDir()
	d, err := colstore.OpenDisk(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Save(&colstore.Checkpoint{Instance: "i", Snapshot: "9:9:"}, []*colstore.Table{view}); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(dir, "d2"))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

var fence = regexp.MustCompile("(?ms)^```(hex|json) ([a-z0-9]+)\n(.*?)^```$")

// unhex reads lines of an offset, bytes ("00*12" is twelve of them) and a remark after
// a bar; the offsets are checked.
func unhex(t *testing.T, name, block string) (b []byte) {
	t.Helper()
	for line := range strings.Lines(block) {
		line, _, _ = strings.Cut(line, "|")
		f := strings.Fields(line)
		if at, err := strconv.Atoi(f[0]); err != nil || at != len(b) {
			t.Errorf("%s: a line begins with %s, its bytes are at %d", name, f[0], len(b))
		}
		for _, one := range f[1:] {
			one, times, _ := strings.Cut(one, "*")
			v, err := hex.DecodeString(one)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			n := 1
			if times != "" {
				if n, err = strconv.Atoi(times); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			b = append(b, bytes.Repeat(v, n)...)
		}
	}
	return b
}

// TestFormatExamples: the bytes in format.md are those that the code writes.
func TestFormatExamples(t *testing.T) {
	page, err := os.ReadFile("format.md")
	if err != nil {
		t.Fatal(err)
	}
	want := examples(t)
	shown := map[string]bool{}
	for _, m := range fence.FindAllStringSubmatch(string(page), -1) {
		kind, name, block := m[1], m[2], m[3]
		shown[name] = true
		var got []byte
		if kind == "json" { // the first line is one in the file
			at := strings.LastIndex(strings.TrimSpace(block), "\n")
			var line bytes.Buffer
			if err := json.Compact(&line, []byte(block[:at])); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got = append(line.Bytes(), block[at:]...)
		} else {
			got = unhex(t, name, block)
		}
		if !bytes.Equal(got, want[name]) {
			if kind == "hex" {
				t.Errorf("%s: the code writes\n%s", name, dump(want[name]))
			} else {
				t.Errorf("%s: the code writes\n%s", name, want[name])
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !shown[name] {
			t.Errorf("format.md does not show %s:\n%s", name, dump(want[name]))
		}
	}
}

// dump writes bytes as format.md has them, for who edits it.
func dump(b []byte) string {
	var s strings.Builder
	for at := 0; at < len(b); {
		if n := len(b) - at - len(bytes.TrimLeft(b[at:], "\x00")); n >= 16 {
			n = n / 4 * 4
			fmt.Fprintf(&s, "%-4d 00*%d\n", at, n)
			at += n
			continue
		}
		n := min(8, len(b)-at)
		fmt.Fprintf(&s, "%-4d % x\n", at, b[at:at+n])
		at += n
	}
	return s.String()
}
