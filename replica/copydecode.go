package replica

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/vector"
)

// valueForm is how COPY BINARY sends a value (the type's send function) and how it
// becomes 64 bits.
type valueForm uint8

const (
	formBool valueForm = iota // 1 byte
	formInt2                  // 2 bytes, signed
	formInt4                  // 4 bytes, signed; date is one
	formInt8                  // 8 bytes, signed; times and timestamps are, float8's bits, too
	formFloat4
	formNumeric // see unscaled
	formText    // the bytes
	formHashed  // not copied: part of the identity's hash
)

var kindForms = [...]valueForm{vector.Bool: formBool, vector.Int2: formInt2, vector.Int4: formInt4, vector.Int8: formInt8,
	vector.Numeric: formNumeric, vector.Date: formInt4, vector.Time: formInt8, vector.Timestamp: formInt8, vector.TimestampTZ: formInt8,
	vector.Float4: formFloat4, vector.Float8: formInt8, vector.Text: formText, vector.Varchar: formText, vector.BPChar: formText}

// columnDecoder is the compiled decoder of one field.
type columnDecoder struct {
	col   int // position in the table's columns
	form  valueForm
	size  int32 // of the field in bytes; 0 where it varies
	scale int   // numeric
}

func newColumnDecoder(t *catalog.Table, col int) columnDecoder {
	c := &t.Columns[col]
	if !isCopied(c) {
		return columnDecoder{col: col, form: formHashed}
	}
	form := kindForms[c.Type.Kind]
	return columnDecoder{col: col, form: form, size: formSizes[form], scale: int(c.Type.Scale)}
}

// value makes 64 bits of a field that is not text, in the form of the type's send
// function.
func (c *columnDecoder) value(v []byte) (int64, error) {
	if c.size != 0 && int(c.size) != len(v) {
		return 0, fmt.Errorf("a value of column %d has %d bytes, want %d", c.col+1, len(v), c.size)
	}
	switch c.form {
	case formBool:
		return int64(v[0] & 1), nil
	case formInt2:
		return int64(int16(binary.BigEndian.Uint16(v))), nil
	case formInt4:
		return int64(int32(binary.BigEndian.Uint32(v))), nil
	case formInt8:
		return int64(binary.BigEndian.Uint64(v)), nil
	case formFloat4:
		return int64(math.Float64bits(float64(math.Float32frombits(binary.BigEndian.Uint32(v))))), nil
	}
	n, reason := unscaled(v, c.scale)
	if reason != "" {
		return 0, &columnError{col: c.col, reason: reason}
	}
	return n, nil
}

var formSizes = [...]int32{formBool: 1, formInt2: 2, formInt4: 4, formInt8: 8, formFloat4: 4, formNumeric: 0, formText: 0, formHashed: 0}

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
		case formText:
			w.Text(c.col, v)
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

// Signs of numeric's binary format (src/backend/utils/adt/numeric.c).
const (
	numericPositive = 0x0000
	numericNegative = 0x4000
	numericNaN      = 0xC000
	numericPInf     = 0xD000
	numericNInf     = 0xF000
)

// unscaled reads numeric's binary format and returns the value times 10^scale:
//
//	int16 ndigits | int16 weight | uint16 sign | int16 dscale | ndigits x int16
//
// The value is the sum of digit[i] * 10000^(weight-i). reason is empty where the
// value is an integer of 64 bits, and else says why not.
func unscaled(b []byte, scale int) (v int64, reason string) {
	if len(b) < 8 {
		return 0, "a numeric value is cut off"
	}
	digits := int(binary.BigEndian.Uint16(b))
	weight := int(int16(binary.BigEndian.Uint16(b[2:])))
	sign := binary.BigEndian.Uint16(b[4:])
	switch sign {
	case numericPositive, numericNegative:
	case numericNaN:
		return 0, "it holds NaN"
	case numericPInf, numericNInf:
		return 0, "it holds infinity"
	default:
		return 0, "a numeric value has a bad sign"
	}
	if len(b) != 8+2*digits {
		return 0, "a numeric value has a bad length"
	}
	const tooLarge = "it holds a value that exceeds 64 bits"
	var sum uint64
	power := 4*weight + scale // of ten, that the digit at hand stands for
	for i := 8; i < len(b); i, power = i+2, power-4 {
		d := uint64(binary.BigEndian.Uint16(b[i:]))
		switch {
		case d == 0:
		case power >= 0:
			if power > 18 {
				return 0, tooLarge
			}
			hi, lo := bits.Mul64(d, uint64(vector.Pow10(power)))
			if sum += lo; hi != 0 || sum < lo {
				return 0, tooLarge
			}
		default:
			if power <= -4 || d%uint64(vector.Pow10(-power)) != 0 {
				return 0, "it holds a value with more decimals than declared"
			}
			d /= uint64(vector.Pow10(-power))
			if sum += d; sum < d {
				return 0, tooLarge
			}
		}
	}
	if sign == numericNegative {
		if sum > 1<<63 {
			return 0, tooLarge
		}
		return -int64(sum), ""
	}
	if sum > math.MaxInt64 {
		return 0, tooLarge
	}
	return int64(sum), ""
}
