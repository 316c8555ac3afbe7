package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/internal/ssb"
)

// tblFiles are, by table, the files that ssb-dbgen has written or will write, each a named
// pipe perhaps: one, or the pieces of -C N -S I in order.
type tblFiles map[string][]string

// findTblFiles finds the files of all tables in a folder.
func findTblFiles(dir string) (tblFiles, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files := tblFiles{}
	for _, table := range ssb.Source.Tables {
		name := table + ".tbl"
		if table == "dates" {
			name = "date.tbl"
		}
		var numbers []int
		whole := false
		for _, e := range entries {
			whole = whole || e.Name() == name
			if number, ok := strings.CutPrefix(e.Name(), name+"."); ok {
				if n, err := strconv.Atoi(number); err == nil {
					numbers = append(numbers, n)
				}
			}
		}
		slices.Sort(numbers)
		switch {
		case whole && numbers != nil:
			return nil, fmt.Errorf("%s has both %s and %s.%d: leave only those of one run of dbgen there", dir, name, name, numbers[0])
		case whole:
			files[table] = []string{filepath.Join(dir, name)}
		case numbers == nil:
			return nil, fmt.Errorf("no %s, nor %s.1, in %s", name, name, dir)
		}
		for i, n := range numbers {
			if n != i+1 {
				return nil, fmt.Errorf("%s has %s.%d, but no %s.%d", dir, name, numbers[len(numbers)-1], name, i+1)
			}
			files[table] = append(files[table], filepath.Join(dir, fmt.Sprintf("%s.%d", name, n)))
		}
	}
	return files, nil
}

func (f tblFiles) count() (n int) {
	for _, pieces := range f {
		n += len(pieces)
	}
	return n
}

func (f tblFiles) parts(table string) int { return len(f[table]) }

func (f tblFiles) write(ctx context.Context, meta *catalog.Table, part int, w *colstore.Writer) error {
	path := f[meta.Name][part]
	file, err := openTbl(ctx, path)
	if err != nil {
		return err
	}
	defer file.Close()
	defer context.AfterFunc(ctx, func() { file.Close() })() // ends a Read of a pipe
	err = newRowParser(meta, w, '|', true).read(file)
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// openTbl opens a file to read. The open of a named pipe waits for somebody who writes it,
// and nothing else ends it: an end of ctx leaves it behind.
func openTbl(ctx context.Context, path string) (*os.File, error) {
	type opened struct {
		file *os.File
		err  error
	}
	done := make(chan opened)
	go func() {
		file, err := os.Open(path)
		select {
		case done <- opened{file, err}:
		case <-ctx.Done():
			file.Close()
		}
	}()
	select {
	case o := <-done:
		return o.file, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// rowParser brings rows of text into a writer of columns. Each field has a separator behind
// it, the last one a newline or, where lines are closed, a separator and a newline.
type rowParser struct {
	w       *colstore.Writer
	columns []parsedColumn
	closed  bool
	line    int64 // the last that was begun, counted from 1
}

type parsedColumn struct {
	name string
	text bool
	most int // bytes of a text
	end  byte
}

func newRowParser(meta *catalog.Table, w *colstore.Writer, separator byte, closed bool) *rowParser {
	p := &rowParser{w: w, closed: closed}
	for i := range meta.Columns {
		c := &meta.Columns[i]
		p.columns = append(p.columns, parsedColumn{name: c.Name, text: c.Type.Kind.IsText(), most: int(c.Type.Typmod) - 4, end: separator})
	}
	if !closed {
		p.columns[len(p.columns)-1].end = '\n'
	}
	return p
}

// tblBuffer is how much of a file is in memory at a time; no line is as long.
const tblBuffer = 256 << 10

// read parses all that r has.
func (p *rowParser) read(r io.Reader) error {
	buffer := make([]byte, tblBuffer)
	for held := 0; ; {
		n, err := r.Read(buffer[held:])
		held += n
		whole := bytes.LastIndexByte(buffer[held-n:held], '\n') + 1
		if whole > 0 {
			whole += held - n
			if err := p.parse(buffer[:whole]); err != nil {
				return err
			}
			held = copy(buffer, buffer[whole:held])
		}
		switch {
		case errors.Is(err, io.EOF) && held > 0:
			return fmt.Errorf("line %d ends without a newline: %s", p.line+1, quoted(buffer[:held]))
		case errors.Is(err, io.EOF) && p.line == 0:
			return errors.New("no rows")
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case held == len(buffer):
			return fmt.Errorf("line %d has %d bytes and no end: %s", p.line+1, held, quoted(buffer))
		}
	}
}

// parse parses whole lines.
func (p *rowParser) parse(text []byte) error {
	for len(text) > 0 {
		p.line++
		for i := range p.columns {
			c := &p.columns[i]
			k := 0
			if c.text {
				for k < len(text) && k <= c.most && text[k] != c.end && text[k] != '\n' {
					k++
				}
				if k > c.most || k == len(text) || text[k] != c.end {
					return fmt.Errorf("line %d, column %s: at most %d bytes and %q expected, found %s", p.line, c.name, c.most, c.end, quoted(text))
				}
				p.w.Text(i, text[:k])
			} else {
				v := int64(0)
				for ; k < len(text) && k < 10; k++ { // more digits are no integer
					digit := text[k] - '0'
					if digit > 9 {
						break
					}
					v = 10*v + int64(digit)
				}
				if k == 0 || k == len(text) || text[k] != c.end || v > math.MaxInt32 {
					return fmt.Errorf("line %d, column %s: a number up to %d and %q expected, found %s", p.line, c.name, math.MaxInt32, c.end, quoted(text))
				}
				p.w.Int(i, v)
			}
			text = text[k+1:]
		}
		if p.closed {
			if len(text) == 0 || text[0] != '\n' {
				return fmt.Errorf("line %d: its end expected behind column %s, found %s", p.line, p.columns[len(p.columns)-1].name, quoted(text))
			}
			text = text[1:]
		}
		if err := p.w.EndRow(); err != nil {
			return err
		}
	}
	return nil
}

// quoted is what text begins with, of its first line.
func quoted(text []byte) string {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	if len(line) > 40 {
		return fmt.Sprintf("%q...", line[:40])
	}
	return fmt.Sprintf("%q", line)
}

// checkScale has an error where the tables are not of a scale factor's sizes, as they are
// where --scale is another than dbgen's -s, or where dbgen was ended before it was done.
func (d *ssbData) checkScale(scale float64) error {
	for _, meta := range d.cat.Tables {
		want, within := 6e6*scale, 0.02 // lineorder's are random
		switch meta.Name {
		case "dates":
			continue // 2,556, or 2,557 of a later dbgen
		case "customer", "supplier", "part":
			rows, err := ssb.Source.Rows(meta.Name, scale)
			if err != nil {
				return err
			}
			want, within = float64(rows), 1/float64(rows) // dbgen rounds down
		}
		if rows := float64(meta.Rows); math.Abs(rows-want) > within*want {
			return fmt.Errorf("%s has %d rows, of scale factor %v are about %.0f", meta.Name, meta.Rows, scale, want)
		}
	}
	return nil
}
