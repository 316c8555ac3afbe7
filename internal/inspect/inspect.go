package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"pgaccel/colstore"
)

// Path writes what a data directory or one of its files holds. Its error names what is
// damaged, with file and offset, each on a line; what can be read is written all the same.
func Path(w io.Writer, path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return directory(w, path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return file(w, path)
}

// damaged is the error for all damage of a file, nil where there is none.
func damaged(path string, damage []colstore.Damage) error {
	var all []error
	for _, d := range damage {
		all = append(all, fmt.Errorf("%s: offset %d: %s", path, d.Offset, d.What))
	}
	return errors.Join(all...)
}

// directory writes the checkpoint, and compares the files' sizes with it.
func directory(w io.Writer, dir string) error {
	c, err := colstore.ReadCheckpoint(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, "manifest"), err)
	}
	var size int64
	files := 0
	var damage []error
	for i := range c.Tables {
		named := c.Tables[i].Files()
		for _, name := range slices.SortedFunc(maps.Keys(named), byNumber) {
			size, files = size+named[name], files+1
			damage = append(damage, wrongSize(filepath.Join(dir, name), named[name]))
		}
	}
	if errors.Join(damage...) != nil {
		if now, err := colstore.ReadCheckpoint(dir); err == nil && !reflect.DeepEqual(now, c) {
			return fmt.Errorf("%s: a running pgaccel has saved a newer checkpoint meanwhile: inspect it again", dir)
		}
	}

	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name string, format string, args ...any) {
		fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	row("checkpoint", "format %d", c.Format)
	row("instance", "%s", word(c.Instance))
	row("system identifier", "%s", word(c.SystemID))
	row("database", "%s", word(c.Database))
	row("snapshot", "%s", word(c.Snapshot))
	row("position", "%X/%X", c.Position>>32, uint32(c.Position))
	row("saved", "%s", c.Saved.UTC().Format(time.RFC3339))
	row("size", "%d bytes in %d files", size, files)
	t.Flush()
	if len(c.Tables) > 0 {
		fmt.Fprintln(w)
		fmt.Fprintln(t, "table\trows\tsegments\tdictionaries\tbytes\tfiles")
		for i := range c.Tables {
			tableRow(t, &c.Tables[i])
		}
		t.Flush()
	}
	return errors.Join(damage...)
}

func tableRow(w io.Writer, t *colstore.SavedTable) {
	var size int64
	dicts := 0
	files := t.Files()
	for name, n := range files {
		size += n
		if name[0] == 'd' {
			dicts++
		}
	}
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%s\n", word(t.Meta.QualifiedName()), t.Rows, len(t.Segments), dicts, size, ranges(files))
}

// wrongSize says that a file is not there or has another size than the manifest says.
func wrongSize(path string, size int64) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: missing, the manifest says %d bytes", path, size)
	case err != nil:
		return err
	case info.Size() < size:
		return fmt.Errorf("%s: offset %d: the file ends, the manifest says %d bytes", path, info.Size(), size)
	case info.Size() > size:
		return fmt.Errorf("%s: offset %d: the file goes on to %d, the manifest says %d bytes", path, size, info.Size(), size)
	}
	return nil
}

// byNumber orders files' names as the manifest's order would: s2 before s10.
func byNumber(a, b string) int {
	return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// ranges writes files' names, those that follow each other as one: s1-s4 d5.
func ranges(files map[string]int64) string {
	var b strings.Builder
	names := slices.SortedFunc(maps.Keys(files), byNumber)
	number := func(i int) int { n, _ := strconv.Atoi(names[i][1:]); return n }
	for i := 0; i < len(names); i++ {
		first := i
		for i+1 < len(names) && names[i+1][0] == names[i][0] && number(i+1) == number(i)+1 {
			i++
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		if b.WriteString(names[first]); i > first {
			b.WriteString("-" + names[i])
		}
	}
	return b.String()
}

// word is a name as it is where it cannot do anything to a terminal, else quoted; "-" for
// none.
func word(s string) string {
	if s == "" {
		return "-"
	}
	if q := strconv.Quote(s); q[1:len(q)-1] != s {
		return q
	}
	return s
}
