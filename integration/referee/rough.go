package referee

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
)

// relative is how far two sums of floats may lie apart, as a part of them.
const relative = 1e-9

// noise returns for each output how far two right answers may lie apart besides, nil
// where there is only one right answer for all.
func (q *query) noise() []float64 {
	var out []float64
	if q.raw != "" {
		return nil
	}
	for i, o := range q.out {
		if o.n.noise > 0 {
			if out == nil {
				out = make([]float64, len(q.out))
			}
			out[i] = o.n.noise
		}
	}
	return out
}

// rough is a row as it must be, and the values of it that may be a little off.
type rough struct {
	exact  string
	values []float64
	row    [][]byte
}

// roughly compares rows as a multiset, whose values under noise may be a little off.
func (q *query) roughly(noise []float64, want, got answer) string {
	var slack []float64
	for _, n := range noise {
		if n > 0 {
			slack = append(slack, n)
		}
	}
	w, g := roughRows(want.fields, noise, want.rows), roughRows(want.fields, noise, got.rows)
	for i := range w {
		same := w[i].exact == g[i].exact && len(w[i].values) == len(g[i].values)
		for k := 0; same && k < len(slack); k++ {
			a, b := w[i].values[k], g[i].values[k]
			same = a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= relative*max(math.Abs(a), math.Abs(b))+slack[k]
		}
		if !same {
			return fmt.Sprintf("row %s, want %s", show(g[i].row), show(w[i].row))
		}
	}
	return ""
}

// roughRows returns the rows sorted by what is exact, then by the rest.
func roughRows(fields []pgconn.FieldDescription, noise []float64, rows [][][]byte) []rough {
	out := make([]rough, len(rows))
	for i, row := range rows {
		rest := slices.Clone(row)
		for k, n := range noise {
			if n == 0 || k >= len(row) {
				continue
			}
			v := math.NaN()
			if row[k] != nil {
				if f, ok := floatOf(fields[k], row[k]); ok {
					v, rest[k] = f, []byte("a float")
				}
			}
			out[i].values = append(out[i].values, v)
		}
		out[i].exact, out[i].row = show(rest), row
	}
	slices.SortFunc(out, func(a, b rough) int {
		switch {
		case a.exact < b.exact:
			return -1
		case a.exact > b.exact:
			return 1
		}
		return slices.Compare(a.values, b.values)
	})
	return out
}

// floatOf reads a double precision value in the field's format. Infinities and NaN are
// not to be compared roughly.
func floatOf(f pgconn.FieldDescription, v []byte) (float64, bool) {
	if f.DataTypeOID != float8.oid() {
		return 0, false
	}
	var x float64
	var err error
	switch {
	case f.Format == 0:
		x, err = strconv.ParseFloat(string(v), 64)
	case len(v) == 8:
		x = math.Float64frombits(binary.BigEndian.Uint64(v))
	default:
		return 0, false
	}
	return x, err == nil && !math.IsNaN(x) && !math.IsInf(x, 0)
}
