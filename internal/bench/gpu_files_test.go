package bench

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgaccel/internal/ssb"
)

var (
	filesDir   = flag.String("ssb-files", "", "folder with ssb-dbgen's tables, for TestSSBFilesGiven")
	filesScale = flag.Float64("ssb-scale", 1, "their scale factor")
)

const filesTestScale = 0.01

// tblText is a part of a table of our own generator as dbgen writes it.
func tblText(t *testing.T, table string, part, parts int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := ssb.Source.Generate(table, filesTestScale, part, parts, &b); err != nil {
		t.Fatal(err)
	}
	return bytes.ReplaceAll(bytes.ReplaceAll(b.Bytes(), []byte("\t"), []byte("|")), []byte("\n"), []byte("|\n"))
}

// tblFolder has all tables in files, lineorder in pieces, or in one file where there is one.
func tblFolder(t *testing.T, pieces int, write func(path string, text []byte)) string {
	t.Helper()
	dir := t.TempDir()
	for _, table := range ssb.Source.Tables {
		name := filepath.Join(dir, table+".tbl")
		if table == "dates" {
			name = filepath.Join(dir, "date.tbl")
		}
		if table != "lineorder" || pieces == 1 {
			write(name, tblText(t, table, 0, 1))
			continue
		}
		for i := range pieces {
			write(fmt.Sprintf("%s.%d", name, i+1), tblText(t, table, i, pieces))
		}
	}
	return dir
}

func writeFile(t *testing.T) func(path string, text []byte) {
	return func(path string, text []byte) {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// writePipe makes a pipe and begins to write, in writes as short as dbgen's.
func writePipe(t *testing.T) func(path string, text []byte) {
	return func(path string, text []byte) {
		if err := syscall.Mkfifo(path, 0o644); err != nil {
			t.Fatal(err)
		}
		go func() {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			for len(text) > 0 {
				n := min(len(text), 4096)
				if _, err := f.Write(text[:n]); err != nil {
					t.Error(err)
					return
				}
				text = text[n:]
			}
		}()
	}
}

// ssbAnswers are the processor's answers to all queries.
func ssbAnswers(t *testing.T, d *ssbData) map[string]ssbAnswer {
	t.Helper()
	answers := map[string]ssbAnswer{}
	for _, q := range ssb.Queries() {
		a, err := d.answer(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		answers[q.Name] = a
	}
	return answers
}

// TestSSBFiles: what is read from files and pipes, in one piece and in several, is what the
// generator makes.
func TestSSBFiles(t *testing.T) {
	generated, err := loadSSB(t.Context(), generatedSSB{filesTestScale}, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	defer generated.close()
	want := ssbAnswers(t, generated)
	if a := want["q1.1"]; a.groups != 1 || a.rows == 0 || a.sum < a.rows {
		t.Errorf("q1.1: %v", a)
	}
	for name, dir := range map[string]string{
		"files": tblFolder(t, 1, writeFile(t)), "pieces": tblFolder(t, 11, writeFile(t)),
		"pipes": tblFolder(t, 3, writePipe(t)), "pipe": tblFolder(t, 1, writePipe(t)),
	} {
		r := &gpuRun{GPUOptions: GPUOptions{Scale: filesTestScale, SSBFiles: dir, Progress: t.Output()}}
		d, err := r.ssbData(t.Context())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, meta := range generated.cat.Tables {
			if got := d.tables[meta.OID].Rows; got != meta.Rows {
				t.Errorf("%s: %s has %d rows instead of %d", name, meta.Name, got, meta.Rows)
			}
		}
		for query, got := range ssbAnswers(t, d) {
			if got != want[query] {
				t.Errorf("%s, %s: %v, want %v", name, query, got, want[query])
			}
		}
		if title, note := r.whoseData(), r.dataNote(d); !strings.Contains(title, "dbgen's data") || !strings.Contains(note, "is dbgen's") {
			t.Errorf("%q, %q", title, note)
		}
		r.dropData()
	}
}

// TestSSBReference: answers that are not the reference's are an error, and q2.3 is compared
// for the reference's brand.
func TestSSBReference(t *testing.T) {
	d, err := loadSSB(t.Context(), generatedSSB{filesTestScale}, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	known := ssbAnswers(t, d)
	for _, q := range ssb.Queries() {
		if q.Name == "q2.3" {
			if !strings.Contains(q.SQL, queryBrand) {
				t.Errorf("q2.3 asks for another brand: %s", q.SQL)
			}
			q.SQL = strings.ReplaceAll(q.SQL, queryBrand, referenceBrand)
			if known[q.Name], err = d.answer(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
		if _, ok := reference[q.Name]; !ok {
			t.Errorf("no reference of %s", q.Name)
		}
	}
	if err := d.compare(t.Context(), known); err != nil {
		t.Error(err)
	}
	a := known["q3.1"]
	a.sum++
	known["q3.1"] = a
	if err := d.compare(t.Context(), known); err == nil || !strings.Contains(err.Error(), "q3.1: ") || strings.Contains(err.Error(), "q2.3") {
		t.Error(err)
	}
}

// TestSSBFilesRefused: what is wrong with a file is said with its place, and nothing waits
// for a pipe then.
func TestSSBFilesRefused(t *testing.T) {
	const line = "1|1|7|2|3|19960102|5-LOW|0|17|2116823|17366547|4|2032150|74711|2|19960212|TRUCK|"
	load := func(dir string) error {
		r := &gpuRun{GPUOptions: GPUOptions{Scale: filesTestScale, SSBFiles: dir, Progress: t.Output()}}
		_, err := r.ssbData(t.Context())
		if _, again := r.ssbData(t.Context()); again != err {
			t.Errorf("%v at first, then %v", err, again)
		}
		r.dropData()
		return err
	}
	for want, text := range map[string]string{
		`lineorder.tbl: line 1, column lo_orderkey: a number up to 2147483647 and '|' expected, found "1,1,7,\"AIR\""`: "1,1,7,\"AIR\"\n",
		`lineorder.tbl: line 2, column lo_custkey: a number`:                                                           line + "\n1|1|x|\n",
		`column lo_partkey: a number up to 2147483647 and '|' expected, found "2147483648|`:                            "1|1|7|2147483648|\n",
		`column lo_suppkey: a number up to 2147483647 and '|' expected, found "12345678901|`:                           "1|1|7|2|12345678901|\n",
		`column lo_orderdate: a number up to 2147483647 and '|' expected, found "1996-01-02|5`:                         "1|1|7|2|3|1996-01-02|5-LOW|\n",
		`column lo_orderpriority: at most 15 bytes and '|' expected, found "a priority of many`:                        "1|1|7|2|3|19960102|a priority of many|\n",
		`column lo_orderpriority: at most 15 bytes and '|' expected, found "5-LOW"`:                                    "1|1|7|2|3|19960102|5-LOW\n" + line + "\n",
		`line 1, column lo_shipmode: at most 10 bytes and '|' expected, found "TRUCK"`:                                 line[:len(line)-1] + "\n",
		`line 1: its end expected behind column lo_shipmode, found "more|"`:                                            line + "more|\n",
		`lineorder.tbl: line 3 ends without a newline: "1|1|7|2|3|19960102|5-LOW|0|17|2116823|17"...`:                  line + "\n" + line + "\n" + line,
		`lineorder.tbl: line 1 has 262144 bytes and no end`:                                                            strings.Repeat("1", 1<<20),
		`lineorder.tbl: no rows`:                                     "",
		`lineorder has 1 rows, of scale factor 0.01 are about 60000`: line + "\n",
	} {
		dir := tblFolder(t, 1, writeFile(t))
		writeFile(t)(filepath.Join(dir, "lineorder.tbl"), []byte(text))
		if err := load(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}

	dir := tblFolder(t, 3, writeFile(t))
	for _, step := range []struct{ remove, make, want string }{
		{"lineorder.tbl.2", "", "has lineorder.tbl.3, but no lineorder.tbl.2"},
		{"", "lineorder.tbl", "has both lineorder.tbl and lineorder.tbl.1"},
		{"date.tbl", "", "no date.tbl, nor date.tbl.1, in " + dir},
	} {
		if step.make != "" {
			writeFile(t)(filepath.Join(dir, step.make), nil)
		}
		os.Remove(filepath.Join(dir, step.remove))
		if err := load(dir); err == nil || !strings.Contains(err.Error(), step.want) {
			t.Errorf("%v, want %s", err, step.want)
		}
		o := GPUOptions{SSBFiles: dir, Binary: self, Progress: t.Output()}
		if err := o.fill(); err == nil || !strings.Contains(err.Error(), step.want) {
			t.Errorf("at the start: %v, want %s", err, step.want)
		}
	}
	if err := load(filepath.Join(dir, "nowhere")); !os.IsNotExist(err) {
		t.Error(err)
	}

	// Nobody writes the pipe of another table.
	dir = tblFolder(t, 1, writeFile(t))
	os.Remove(filepath.Join(dir, "part.tbl"))
	if err := syscall.Mkfifo(filepath.Join(dir, "part.tbl"), 0o644); err != nil {
		t.Fatal(err)
	}
	writeFile(t)(filepath.Join(dir, "date.tbl"), []byte("today|\n"))
	if err := load(dir); err == nil || !strings.Contains(err.Error(), "date.tbl: line 1, column d_datekey") {
		t.Error(err)
	}
}

// TestSSBFilesInterrupted: an end of the run ends the wait for a pipe that nobody writes, and
// for one whose writer has stopped.
func TestSSBFilesInterrupted(t *testing.T) {
	dir := tblFolder(t, 1, writeFile(t))
	os.Remove(filepath.Join(dir, "part.tbl"))
	if err := syscall.Mkfifo(filepath.Join(dir, "part.tbl"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, writes := range []bool{false, true} {
		ctx, stop := context.WithCancel(t.Context())
		files, err := findTblFiles(dir)
		if err != nil {
			t.Fatal(err)
		}
		if writes {
			f, err := os.OpenFile(filepath.Join(dir, "part.tbl"), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			f.WriteString("1|lace spring|MFGR#1|")
		}
		time.AfterFunc(100*time.Millisecond, stop)
		if d, err := loadSSB(ctx, files, 1<<30); err != context.Canceled {
			t.Errorf("writes %v: %v, %v", writes, d, err)
		}
	}
}

// TestSSBFilesGiven prints the answers over a folder's files, and compares them with the
// reference where there is one: go test -run SSBFilesGiven -v -args -ssb-files DIR -ssb-scale 20.
func TestSSBFilesGiven(t *testing.T) {
	if *filesDir == "" {
		t.Skip("no -ssb-files")
	}
	r := &gpuRun{GPUOptions: GPUOptions{Scale: *filesScale, SSBFiles: *filesDir, Progress: t.Output()}}
	d, err := r.ssbData(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer r.dropData()
	t.Log(r.dataNote(d))
	answers := ssbAnswers(t, d)
	for _, q := range ssb.Queries() {
		t.Logf("%s: %v", q.Name, answers[q.Name])
	}
	if r.hasReference(d) {
		if err := d.compare(t.Context(), reference); err != nil {
			t.Error(err)
		}
	}
}
