package tpcdata

import (
	"fmt"
	"io"
)

// writeBytes is how much text is collected before it is written.
const writeBytes = 128 << 10

// write writes one part (0..parts-1) of a table of n units (rows; orders with their
// lines), numbered from 0, as appendUnit makes them. The parts one after another are the
// table, however many there are. Writes end where units end.
func write(w io.Writer, n, part, parts int, appendUnit func(b []byte, i int) []byte) error {
	if parts < 1 || part < 0 || part >= parts {
		return fmt.Errorf("part %d of %d: parts count from 0", part, parts)
	}
	b := make([]byte, 0, writeBytes+4<<10)
	for i := n * part / parts; i < n*(part+1)/parts; i++ {
		if b = appendUnit(b, i); len(b) >= writeBytes {
			if _, err := w.Write(b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	if len(b) == 0 {
		return nil
	}
	_, err := w.Write(b)
	return err
}
