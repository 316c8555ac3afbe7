package wire

import (
	"encoding/binary"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// TestColumnArrays reads what it writes with pgx, at the lengths at which bitmaps and pieces end.
func TestColumnArrays(t *testing.T) {
	for _, rows := range []int{0, 1, 63, 64, 127, 128, 129, 511, 512, 513} {
		for _, nulls := range []bool{false, true} {
			ints := vector.Column{Type: vector.TypeOf(vector.Int4)}
			texts := vector.Column{Type: vector.TypeOf(vector.Text)}
			if nulls {
				ints.Nulls = make([]uint64, (rows+63)/64)
			}
			for i := range rows {
				ints.Ints, texts.Strs = append(ints.Ints, int64(i*i-7)), append(texts.Strs, string(rune('a'+i%26))+"ä")
				if nulls && i%3 == 0 {
					ints.Nulls[i/64] |= 1 << (i % 64)
				}
			}
			batch := &vector.Batch{Columns: []vector.Column{ints, texts}, Rows: rows, Held: rows}
			form := []ArrayColumn{{OID: sqltype.OIDInt4, Format: FormatBinary, Element: sqltype.OIDInt4}, {OID: sqltype.OIDText, Format: FormatText, Element: sqltype.OIDText}}
			arrays, err := ColumnArrays(batch, form, TextSettings{ClientEncoding: "UTF8", ExtraFloatDigits: 1}, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			m := pgtype.NewMap()
			var gotInts []*int32
			var gotTexts []string
			if err := m.Scan(pgtype.Int4ArrayOID, pgtype.BinaryFormatCode, arrays[0], &gotInts); err != nil {
				t.Fatal(rows, err)
			}
			if err := m.Scan(pgtype.TextArrayOID, pgtype.BinaryFormatCode, arrays[1], &gotTexts); err != nil {
				t.Fatal(rows, err)
			}
			if len(gotInts) != rows || len(gotTexts) != rows {
				t.Fatalf("%d and %d elements of %d rows", len(gotInts), len(gotTexts), rows)
			}
			if has := binary.BigEndian.Uint32(arrays[0][4:]) == 1; has != (nulls && rows > 0) {
				t.Errorf("%d rows: has nulls: %t", rows, has)
			}
			for i := range rows {
				if ints.IsNull(i) != (gotInts[i] == nil) || gotInts[i] != nil && int64(*gotInts[i]) != ints.Ints[i] || gotTexts[i] != texts.Strs[i] {
					t.Errorf("row %d of %d", i, rows)
				}
			}
		}
	}
	one := &vector.Batch{Columns: []vector.Column{{Type: vector.TypeOf(vector.Text), Strs: []string{"0123456789"}}}, Rows: 1, Held: 1}
	if _, err := ColumnArrays(one, []ArrayColumn{{OID: sqltype.OIDText, Format: FormatText, Element: sqltype.OIDText}}, TextSettings{ClientEncoding: "UTF8"}, 10); err == nil {
		t.Error("more than the limit")
	}
}
