package tpcdata

import "strconv"

// Row writes the columns of rows as COPY text.
type Row struct{ B []byte }

func (w *Row) Tab()  { w.B = append(w.B, '\t') }
func (w *Row) Next() { w.B[len(w.B)-1] = '\n' } // in the last tab's place

func (w *Row) Null() { w.B = append(w.B, "\\N\t"...) }

func (w *Row) Number(v int) {
	w.B = strconv.AppendInt(w.B, int64(v), 10)
	w.Tab()
}

func (w *Row) Text(s string) {
	w.B = append(w.B, s...)
	w.Tab()
}

// Money writes hundredths as numeric(n,2) is written.
func (w *Row) Money(cents int) {
	if cents < 0 {
		w.B = append(w.B, '-')
		cents = -cents
	}
	w.B = strconv.AppendInt(w.B, int64(cents/100), 10)
	w.B = append(w.B, '.', byte('0'+cents/10%10), byte('0'+cents%10))
	w.Tab()
}

// Padded writes a prefix and a number with zeros before it, of so many digits.
func (w *Row) Padded(prefix string, v, digits int) {
	w.B = append(w.B, prefix...)
	unit := 1
	for range digits - 1 {
		unit *= 10
	}
	for ; unit > 0; unit /= 10 {
		w.B = append(w.B, byte('0'+v/unit%10))
	}
	w.Tab()
}
