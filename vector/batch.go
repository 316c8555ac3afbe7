package vector

// Column is a column of results. Exactly one of Ints, Decimals and Strs is used,
// by the type's kind: kinds held as strings use Strs, Numeric uses Decimals, all others Ints.
type Column struct {
	Type     Type
	Ints     []int64
	Decimals []Decimal
	Strs     []string
	// Nulls has one bit a row, bit i&63 of word i>>6, set for null. Words past its end
	// stand for no nulls; nil where there is none.
	Nulls []uint64
}

// IsNull reports whether row i is null.
func (c *Column) IsNull(i int) bool {
	return i>>6 < len(c.Nulls) && c.Nulls[i>>6]>>(uint(i)&63)&1 != 0
}

// SetNull marks row i of a column of n rows as null.
func (c *Column) SetNull(i, n int) {
	if c.Nulls == nil {
		c.Nulls = make([]uint64, (n+63)/64)
	}
	for len(c.Nulls) <= i>>6 {
		c.Nulls = append(c.Nulls, 0)
	}
	c.Nulls[i>>6] |= 1 << (uint(i) & 63)
}

// Append adds a datum of the column's type at the end; n is the number of rows
// before it.
func (c *Column) Append(d Datum, n int) {
	switch {
	case c.Type.Kind.IsString():
		c.Strs = append(c.Strs, d.Str)
	case c.Type.Kind == Numeric:
		dec := d.Num
		if c.Type.Scale != VaryingScale && !d.Null && dec == (Decimal{}) {
			dec = Decimal{Unscaled: Int128Of(d.I), Scale: c.Type.Scale}
		}
		c.Decimals = append(c.Decimals, dec)
	default:
		c.Ints = append(c.Ints, d.I)
	}
	if d.Null {
		c.SetNull(n, n+1)
	}
}

// Batch is a whole result: columns of equal length. It owns its memory.
//
// One that memory would not hold comes in pieces (Next): Columns have Held rows, from row First on.
// They are read one after the other, each once, by Load.
type Batch struct {
	Rows    int
	Columns []Column
	// Bytes is the memory that the columns take, as far as it has been accounted.
	Bytes int64
	// Ties says that a LIMIT cut between rows that tie, and which of them are here was chosen.
	Ties bool
	// Reserved gives back what has been reserved for it; nil where nothing has.
	Reserved func()

	First, Held int
	// Next reads the next piece. Nil where all rows are there: First and Held mean nothing then.
	Next func() error
	// Close lets go of what Next reads from, once or more often. Nil without Next.
	Close func()
	// Worst has, with Next, values for which rows may turn out not to be writable if any do: an
	// encoder that takes these takes all pieces.
	Worst []Column
}

// Load brings row i into Columns, one that has not been passed by. It reports whether Columns
// are others than before.
func (b *Batch) Load(i int) (fresh bool, err error) {
	for b.Next != nil && i >= b.First+b.Held {
		if err := b.Next(); err != nil {
			return false, err
		}
		fresh = true
	}
	return fresh, nil
}

// Release says that nobody needs the batch any more. It may be called more than once, and
// on nil.
func (b *Batch) Release() {
	if b == nil {
		return
	}
	if b.Close != nil {
		b.Close()
	}
	if b.Reserved != nil {
		b.Reserved()
	}
}
