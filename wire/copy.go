package wire

import (
	"encoding/binary"
	"strconv"
)

// CopyWriter writes rows as COPY ... TO STDOUT does, byte for byte: CopyOutResponse, a CopyData for each
// line or tuple, CopyDone and CommandComplete. It takes the rows as DataRow messages: COPY writes values
// by the functions that a SELECT's rows are written by.
type CopyWriter struct {
	CSV, Binary              bool // else text
	Header                   bool
	Delimiter, Quote, Escape byte
	Null                     string
	ForceQuote               []bool // by column; nil for none

	begun bool // binary: the file's header was sent, with the first tuple
}

// binaryHeader is the signature, flags and length of an extension of a file in binary format.
const binaryHeader = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"

// Formats are those of the values in the rows that are given, as Bind's.
func (w *CopyWriter) Formats() []int16 {
	if w.Binary {
		return []int16{FormatBinary}
	}
	return []int16{FormatText}
}

func seal(dst []byte, start int) []byte {
	binary.BigEndian.PutUint32(dst[start+1:], uint32(len(dst)-start-1))
	return dst
}

// AppendBegin appends CopyOutResponse and the line with the columns' names, if there is one.
func (w *CopyWriter) AppendBegin(dst []byte, names []string) []byte {
	start, format := len(dst), w.Formats()[0]
	dst = append(dst, CopyOutResponse, 0, 0, 0, 0, byte(format))
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(names)))
	for range names {
		dst = binary.BigEndian.AppendUint16(dst, uint16(format))
	}
	dst = seal(dst, start)
	if !w.Header || w.Binary {
		return dst
	}
	start = len(dst)
	dst = append(dst, CopyData, 0, 0, 0, 0)
	for i, name := range names {
		if i > 0 {
			dst = append(dst, w.Delimiter)
		}
		if w.CSV {
			dst = w.appendQuoted(dst, []byte(name), false, len(names) == 1)
		} else {
			dst = w.appendEscaped(dst, []byte(name))
		}
	}
	return seal(append(dst, '\n'), start)
}

// AppendRow appends a row, given as a whole DataRow message.
func (w *CopyWriter) AppendRow(dst, row []byte) []byte {
	start := len(dst)
	dst = append(dst, CopyData, 0, 0, 0, 0)
	if w.Binary {
		if !w.begun {
			w.begun = true
			dst = append(dst, binaryHeader...)
		}
		return seal(append(dst, row[HeaderLen:]...), start)
	}
	n := int(binary.BigEndian.Uint16(row[HeaderLen:]))
	row = row[HeaderLen+2:]
	for i := range n {
		if i > 0 {
			dst = append(dst, w.Delimiter)
		}
		size := int32(binary.BigEndian.Uint32(row))
		row = row[4:]
		if size < 0 {
			dst = append(dst, w.Null...)
			continue
		}
		if w.CSV {
			dst = w.appendQuoted(dst, row[:size], w.ForceQuote != nil && w.ForceQuote[i], n == 1)
		} else {
			dst = w.appendEscaped(dst, row[:size])
		}
		row = row[size:]
	}
	return seal(append(dst, '\n'), start)
}

// AppendEnd appends what stands behind the last row, of so many.
func (w *CopyWriter) AppendEnd(dst []byte, rows int) []byte {
	if w.Binary {
		start := len(dst)
		dst = append(dst, CopyData, 0, 0, 0, 0)
		if !w.begun {
			dst = append(dst, binaryHeader...)
		}
		dst = seal(append(dst, 0xff, 0xff), start)
	}
	dst = append(dst, CopyDone, 0, 0, 0, 4)
	start := len(dst)
	dst = append(dst, CommandComplete, 0, 0, 0, 0)
	dst = strconv.AppendInt(append(dst, "COPY "...), int64(rows), 10)
	return seal(append(dst, 0), start)
}

// appendEscaped appends a value in text format (CopyAttributeOutText in copyto.c).
func (w *CopyWriter) appendEscaped(dst, value []byte) []byte {
	from := 0
	for i, c := range value {
		var escaped byte
		switch {
		case '\b' <= c && c <= '\r':
			escaped = "btnvfr"[c-'\b']
		case c == '\\' || c == w.Delimiter:
			escaped = c
		default:
			continue
		}
		dst = append(append(dst, value[from:i]...), '\\', escaped)
		from = i + 1
	}
	return append(dst, value[from:]...)
}

// appendQuoted appends a value in CSV format (CopyAttributeOutCSV in copyto.c). alone says that it is the
// only one of its line.
func (w *CopyWriter) appendQuoted(dst, value []byte, force, alone bool) []byte {
	quote := force || string(value) == w.Null || alone && string(value) == `\.`
	for _, c := range value {
		if quote {
			break
		}
		quote = c == w.Delimiter || c == w.Quote || c == '\n' || c == '\r'
	}
	if !quote {
		return append(dst, value...)
	}
	dst = append(dst, w.Quote)
	for _, c := range value {
		if c == w.Quote || c == w.Escape {
			dst = append(dst, w.Escape)
		}
		dst = append(dst, c)
	}
	return append(dst, w.Quote)
}
