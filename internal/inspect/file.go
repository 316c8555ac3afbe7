package inspect

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"text/tabwriter"

	"pgaccel/colstore"
	"pgaccel/compress"
)

// named is what the manifest beside a file says of it.
type named struct {
	checkpoint *colstore.Checkpoint // nil where there is no manifest, or a damaged one
	table      *colstore.SavedTable // nil where the checkpoint does not name the file
	segment    int                  // of table
	column     int                  // of table
	size       int64
}

// lookUp finds a file's name in the manifest of its folder.
func lookUp(path string) (n named, damage error) {
	dir, name := filepath.Split(path)
	c, err := colstore.ReadCheckpoint(filepath.Clean(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return n, nil
	} else if err != nil {
		return n, fmt.Errorf("%s: %w", filepath.Join(dir, "manifest"), err)
	}
	n.checkpoint = c
	for i := range c.Tables {
		t := &c.Tables[i]
		size, ok := t.Files()[name]
		if !ok {
			continue
		}
		n.table, n.size = t, size
		number, _ := strconv.Atoi(name[1:])
		for k, s := range t.Segments {
			if name[0] == 's' && s.File.Number == number {
				n.segment = k
			}
		}
		for k, f := range t.Dicts {
			if name[0] == 'd' && f.Number == number {
				n.column = k
			}
		}
	}
	return n, nil
}

// file writes what one file of a checkpoint holds.
func file(w io.Writer, path string) error {
	base := filepath.Base(path)
	if _, err := strconv.ParseUint(base[1:], 10, 63); err != nil || base[0] != 's' && base[0] != 'd' && base[0] != 'l' {
		return fmt.Errorf("%s: no file of columns: these are s<n> (segments), d<n> (dictionaries) and l<n> (live rows)", path)
	}
	b, err := os.ReadFile(path)
	n, manifestDamage := lookUp(path)
	if errors.Is(err, fs.ErrNotExist) && n.checkpoint != nil && n.table == nil {
		return fmt.Errorf("%w; the checkpoint does not name it (a running pgaccel removes what a newer one does not need)", err)
	} else if err != nil {
		return err
	}
	var damage []colstore.Damage
	switch base[0] {
	case 's':
		damage = segment(w, base, b, n)
	case 'd':
		damage = dictionary(w, base, b, n)
	case 'l':
		damage = live(w, base, b, n)
	}
	wrong := damaged(path, damage)
	if n.table != nil {
		wrong = errors.Join(wrong, wrongSize(path, n.size))
	}
	return errors.Join(wrong, manifestDamage)
}

// title writes the first lines of each file.
func title(w io.Writer, kind, base string, of string, n named, size int, checksumOK bool) {
	switch {
	case n.table != nil:
		fmt.Fprintf(w, "%s %s of %s%s\n", kind, base, word(n.table.Meta.QualifiedName()), of)
	case n.checkpoint != nil:
		fmt.Fprintf(w, "%s %s, which the checkpoint does not name\n", kind, base)
	default:
		fmt.Fprintf(w, "%s %s, no checkpoint beside it\n", kind, base)
	}
	state := "ok"
	if !checksumOK {
		state = "not ok"
	}
	fmt.Fprintf(w, "%d bytes, checksum %s\n", size, state)
}

func segment(w io.Writer, base string, b []byte, n named) []colstore.Damage {
	s := colstore.ReadSegmentFile(b)
	of := ""
	if n.table != nil {
		saved := n.table.Segments[n.segment]
		of = fmt.Sprintf(", number %d", n.segment)
		if n.table.Meta.Parts != nil {
			of += fmt.Sprintf(", partition %d", saved.Part)
		}
		if s.Rows != saved.Rows && len(s.Columns) > 0 {
			s.Damage = append(s.Damage, colstore.Damage{Offset: 12, What: fmt.Sprintf("%d rows, the manifest says %d", s.Rows, saved.Rows)})
		}
	}
	title(w, "segment", base, of, n, len(b), s.ChecksumOK)
	if len(s.Columns) == 0 {
		return s.Damage
	}
	fmt.Fprintf(w, "%d rows\n\n", s.Rows)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "column\ttype\tcodec\tbits\tbytes\toffset\tnulls\tmin\tmax")
	for i := range s.Columns {
		c := &s.Columns[i]
		f := fieldOf(n.table, i)
		if !c.Copied {
			fmt.Fprintf(t, "%s\t%s\tnot copied\t-\t-\t-\t-\t-\t-\n", f.name, f.kind)
			continue
		}
		codec, bits := "damaged", "-"
		if c.Data != nil {
			least, most := compress.Widths(c.Data)
			codec, bits = c.Data.Codec().String(), strconv.Itoa(most)
			if least != most {
				bits = fmt.Sprintf("%d-%d", least, most)
			}
		}
		lo, hi := "-", "-"
		if c.Min <= c.Max {
			lo, hi = f.bounds(c.Min, c.Max)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\n", f.name, f.kind, codec, bits, c.Bytes, c.Offset, c.NullCount, lo, hi)
	}
	t.Flush()
	return s.Damage
}

func dictionary(w io.Writer, base string, b []byte, n named) []colstore.Damage {
	d := colstore.ReadDictFile(b)
	of := ""
	if n.table != nil {
		of = "." + fieldOf(n.table, n.column).name
	}
	title(w, "dictionary", base, of, n, len(b), d.ChecksumOK)
	fmt.Fprintf(w, "%d strings of %d bytes, of %d to %d each\n", d.Strings, d.TextBytes, d.Shortest, d.Longest)
	if d.Packed > 0 {
		fmt.Fprintf(w, "the first %d are packed\n", d.Packed)
	}
	return d.Damage
}

func live(w io.Writer, base string, b []byte, n named) []colstore.Damage {
	l := colstore.ReadLiveFile(b)
	title(w, "live rows", base, "", n, len(b), l.ChecksumOK)
	if n.table == nil {
		fmt.Fprintf(w, "%d words\n", len(l.Words))
		return l.Damage
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "segment\tfile\trows\tlive")
	words := l.Words
	for i, s := range n.table.Segments {
		live, rest, ok := s.Rows, words, true
		if s.Live {
			if live, rest, ok = s.LiveRows(words); !ok {
				l.Damage = append(l.Damage, colstore.Damage{Offset: int64(8 * len(l.Words)), What: fmt.Sprintf("the file ends in the rows of segment %d", i)})
				break
			}
		}
		words = rest
		fmt.Fprintf(t, "%d\ts%d\t%d\t%d\n", i, s.File.Number, s.Rows, live)
	}
	t.Flush()
	if len(words) > 0 && len(l.Damage) == 0 {
		l.Damage = append(l.Damage, colstore.Damage{Offset: int64(8 * (len(l.Words) - len(words))), What: "bitmaps of no segment"})
	}
	return l.Damage
}
