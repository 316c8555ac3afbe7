package compress

import "fmt"

// Widths returns the fewest and the most bits that the column keeps for a value (an
// offset, a delta, a code), over all of its miniblocks that have rows: 64 for Plain, 0
// for Constant and where there are no rows.
func Widths(c Column) (least, most int) {
	w := widthRange{least: 64}
	switch c := c.(type) {
	case *constColumn:
	case *plainColumn:
		if c.Len() > 0 {
			w.add(64)
		}
	case *forColumn:
		c.widths(&w, c.n)
	case *dforColumn:
		c.deltas.widths(&w, c.n)
	case *lookupColumn:
		c.codes.widths(&w, c.codes.n)
	case *alpColumn:
		c.integers.widths(&w, c.integers.n)
	case *rforColumn:
		for b := range len(c.values.starts) - 1 {
			count, _, widths, _ := c.values.block(b)
			for m := 0; m*miniRows < count; m++ {
				w.add(int(width(widths, m)))
			}
		}
	default:
		panic(fmt.Sprintf("BUG: %T is not a column of this package", c))
	}
	return min(w.least, w.most), w.most
}

type widthRange struct{ least, most int }

func (w *widthRange) add(bits int) { w.least, w.most = min(w.least, bits), max(w.most, bits) }

// widths adds those of the miniblocks of the first rows.
func (c *forColumn) widths(w *widthRange, rows int) {
	for b := 0; b*blockRows < rows; b++ {
		_, widths, _ := c.block(b)
		for m := 0; m < miniCount && b*blockRows+m*miniRows < rows; m++ {
			w.add(int(widths >> (8 * m) & 255))
		}
	}
}
