package wire

import (
	"testing"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// BenchmarkRows writes rows of one column of each kind, in both formats.
func BenchmarkRows(b *testing.B) {
	const rows = 1024
	ints := make([]int64, rows)
	decimals := make([]vector.Decimal, rows)
	strs := make([]string, rows)
	for i := range ints {
		ints[i] = int64(i) * 7919
		decimals[i] = vector.Decimal{Unscaled: vector.Int128Of(ints[i]), Scale: 2}
		strs[i] = "text of a row"
	}
	kinds := []vector.Kind{vector.Int4, vector.Int8, vector.Date, vector.Timestamp, vector.Numeric, vector.Float8, vector.Text}
	columns := make([]vector.Column, len(kinds))
	oids := make([]uint32, len(kinds))
	for i, k := range kinds {
		columns[i] = vector.Column{Type: vector.TypeOf(k), Ints: ints, Decimals: decimals, Strs: strs}
		oids[i] = sqltype.OID(k)
	}
	for _, f := range []struct {
		name   string
		format int16
	}{{"text", FormatText}, {"binary", FormatBinary}} {
		b.Run(f.name, func(b *testing.B) {
			e, err := NewRowEncoder(columns, oids, []int16{f.format}, settings15)
			if err != nil {
				b.Fatal(err)
			}
			var dst []byte
			for b.Loop() {
				dst = dst[:0]
				for row := range rows {
					dst = e.Append(dst, row)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows), "ns/row")
		})
	}
}
