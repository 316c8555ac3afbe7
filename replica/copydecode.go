package replica

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// formHashed is of columns that are not copied: part of the identity's hash.
const formHashed = sqltype.BinaryNone

// columnDecoder is the compiled decoder of one field.
type columnDecoder struct {
	col   int // position in the table's columns
	form  sqltype.Binary
	size  int32 // of the field in bytes; 0 where it varies
	scale int   // numeric
	word  func(v []byte) int64
	// receive reads a value that is checked, or held by a key: of arrays, opaque types, addresses.
	receive  func(v []byte) (vector.Datum, bool)
	interval bool   // vector.Interval's
	key      []byte // of the last numeric that is held as a string
}

func newColumnDecoder(table *catalog.Table, col int) columnDecoder {
	c := &table.Columns[col]
	if !isCopied(c) {
		return columnDecoder{col: col, form: formHashed}
	}
	t := sqltype.Of(c.Type.Kind)
	if c.Type.Varying() {
		return columnDecoder{col: col, form: sqltype.BinaryNumericKey}
	}
	d := columnDecoder{col: col, form: t.Binary, size: int32(t.Size), scale: int(c.Type.Scale), word: t.Word, receive: t.Receive, interval: c.Type.Kind == vector.Interval}
	if c.Type.Kind == vector.Opaque {
		d.form, d.receive = sqltype.BinaryKey, sqltype.OpaqueOfType(c.Type).Receive
	}
	return d
}

// value makes 64 bits of a field that is not text, in the form of the type's send
// function.
func (c *columnDecoder) value(v []byte) (int64, error) {
	if c.size != 0 && int(c.size) != len(v) {
		return 0, fmt.Errorf("a value of column %d has %d bytes, want %d", c.col+1, len(v), c.size)
	}
	switch c.form {
	case sqltype.BinaryBool:
		return sqltype.BoolFromBinary(v), nil
	case sqltype.BinaryInt2:
		return sqltype.Int2FromBinary(v), nil
	case sqltype.BinaryInt4:
		return sqltype.Int4FromBinary(v), nil
	case sqltype.BinaryInt8:
		return sqltype.Int8FromBinary(v), nil
	case sqltype.BinaryFloat4:
		return sqltype.Float4FromBinary(v), nil
	case sqltype.BinaryNumeric:
		n, reason := sqltype.UnscaledFromBinary(v, c.scale)
		if reason != "" {
			return 0, &columnError{col: c.col, reason: reason}
		}
		return n, nil
	case sqltype.BinaryOther:
		if c.interval {
			return c.wholeInterval(v)
		}
		return c.word(v), nil
	}
	panic(fmt.Sprintf("BUG: binary layout %d of column %d", c.form, c.col+1))
}

// text checks characters, which are held as they are.
func (c *columnDecoder) text(v []byte) error {
	if !sqltype.ValidText(v) {
		return &columnError{col: c.col, reason: "it holds text that is not valid UTF-8"}
	}
	return nil
}

// array checks an array in binary form, which is held as it is.
func (c *columnDecoder) array(v []byte) error {
	if _, ok := c.receive(v); !ok {
		return &columnError{col: c.col, reason: "it holds an array with an element that is not held"}
	}
	return nil
}

// keyed returns the string by which a value in binary form is held.
func (c *columnDecoder) keyed(v []byte) ([]byte, error) {
	d, ok := c.receive(v)
	if !ok {
		return nil, &columnError{col: c.col, reason: "it holds a value that is not read"}
	}
	return []byte(d.Str), nil
}

// numericKey returns the string by which a numeric in binary form is held, in the memory of room.
func (c *columnDecoder) numericKey(room, v []byte) ([]byte, error) {
	key, ok := sqltype.NumericKeyFromBinary(room[:0], v)
	if !ok {
		return nil, fmt.Errorf("column %d has a numeric that is not read", c.col+1)
	}
	return key, nil
}

// jsonb returns the text of a document in binary form.
func (c *columnDecoder) jsonb(v []byte) ([]byte, error) {
	text, ok := sqltype.JSONBFromBinary(v)
	if !ok {
		return nil, fmt.Errorf("a document of column %d has an unknown version", c.col+1)
	}
	return text, c.text(text)
}

// copyDecoder takes COPY BINARY data apart, a message at a time.
type copyDecoder struct {
	columns []columnDecoder
	writer  *colstore.Writer
	rows    int64
	started bool
	ended   bool
	// identity is told the hash of each row's identity columns that are not copied,
	// where cols has such columns.
	identity func(hash [2]uint64)
	hash     identityHash
}

// newCopyDecoder compiles a decoder for the given columns of t (positions), in the
// order of the COPY: copied(t), then hashedIdentity(t).
func newCopyDecoder(t *catalog.Table, cols []int, w *colstore.Writer) *copyDecoder {
	d := &copyDecoder{writer: w}
	for _, c := range cols {
		d.columns = append(d.columns, newColumnDecoder(t, c))
	}
	return d
}

// columnError says that a column holds a value that cannot be held in 64 bits.
type columnError struct {
	col    int
	reason string
}

func (e *columnError) Error() string { return e.reason }

var copySignature = []byte("PGCOPY\n\xff\r\n\x00")

// message decodes one CopyData message: the header, rows, the end.
func (d *copyDecoder) message(b []byte) error {
	if !d.started {
		if len(b) < len(copySignature)+8 || !bytes.Equal(b[:len(copySignature)], copySignature) {
			return fmt.Errorf("COPY data does not begin with the binary signature")
		}
		b = b[len(copySignature):]
		flags, extension := binary.BigEndian.Uint32(b), int(binary.BigEndian.Uint32(b[4:]))
		if flags>>16 != 0 || extension > len(b)-8 {
			return fmt.Errorf("COPY data with unknown critical flags %#x or a bad header", flags)
		}
		b = b[8+extension:]
		d.started = true
	}
	for len(b) > 0 {
		n, err := d.row(b)
		if err != nil {
			return fmt.Errorf("row %d: %w", d.rows+1, err)
		}
		b = b[n:]
	}
	return nil
}

var errShortRow = fmt.Errorf("COPY data ends within a row")

// row decodes one row and returns its length.
func (d *copyDecoder) row(b []byte) (int, error) {
	if len(b) < 2 {
		return 0, errShortRow
	}
	fields := int16(binary.BigEndian.Uint16(b))
	if fields == -1 {
		d.ended = true
		return len(b), nil
	}
	if int(fields) != len(d.columns) || d.ended {
		return 0, fmt.Errorf("%d fields, want %d", fields, len(d.columns))
	}
	w := d.writer
	at := 2
	for i := range d.columns {
		c := &d.columns[i]
		if len(b)-at < 4 {
			return 0, errShortRow
		}
		size := int32(binary.BigEndian.Uint32(b[at:]))
		at += 4
		if size == -1 {
			if c.form == formHashed {
				d.hash.null()
			} else {
				w.Null(c.col)
			}
			continue
		}
		if size < 0 || int(size) > len(b)-at {
			return 0, errShortRow
		}
		v := b[at : at+int(size)]
		at += int(size)
		switch c.form {
		case sqltype.BinaryText:
			if err := c.text(v); err != nil {
				return 0, err
			}
			w.Text(c.col, v)
		case sqltype.BinaryBytes:
			w.Text(c.col, v)
		case sqltype.BinaryArray:
			if err := c.array(v); err != nil {
				return 0, err
			}
			w.Text(c.col, v)
		case sqltype.BinaryJSONB:
			text, err := c.jsonb(v)
			if err != nil {
				return 0, err
			}
			w.Text(c.col, text)
		case sqltype.BinaryKey:
			key, err := c.keyed(v)
			if err != nil {
				return 0, err
			}
			w.Text(c.col, key)
		case sqltype.BinaryNumericKey:
			key, err := c.numericKey(c.key, v)
			if err != nil {
				return 0, err
			}
			c.key = key
			w.Text(c.col, key)
		case formHashed:
			d.hash.value(v)
		default:
			n, err := c.value(v)
			if err != nil {
				return 0, err
			}
			w.Int(c.col, n)
		}
	}
	if len(d.hash.b) > 0 {
		sum := d.hash.sum()
		if d.identity != nil {
			d.identity(sum)
		}
	}
	if err := w.EndRow(); err != nil {
		return 0, err
	}
	d.rows++
	return at, nil
}
