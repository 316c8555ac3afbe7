package replica

import (
	"testing"

	"pgaccel/catalog"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// TestOpaqueIntervals: a column of intervals that are not all held in 64 bits is opaque, in what is loaded from disk, too; others
// that do not fit are left out.
func TestOpaqueIntervals(t *testing.T) {
	span := catalog.Column{Name: "span", AttNum: 2, TypeOID: sqltype.OID(vector.Interval), Type: vector.TypeOf(vector.Interval)}
	domain := catalog.Column{Name: "domain", AttNum: 3, TypeOID: 16400, Type: vector.TypeOf(vector.Interval), Domain: true}
	number := catalog.Column{Name: "number", AttNum: 4, TypeOID: sqltype.OID(vector.Int4), Type: vector.TypeOf(vector.Int4)}
	fresh := &catalog.Table{OID: 16500, Columns: []catalog.Column{number, span, domain}}
	got := withoutColumns(fresh, map[int16]string{2: reasonInterval, 3: reasonInterval})
	if c := got.Columns[1]; c.Unsupported != "" || c.Type.Kind != vector.Opaque || sqltype.OpaqueOfType(c.Type) == nil {
		t.Errorf("span is %+v", c)
	}
	if c := got.Columns[2]; c.Unsupported != reasonInterval {
		t.Errorf("a column of a domain is %+v", c)
	}
	if c := withoutColumns(fresh, map[int16]string{2: "infinite"}).Columns[1]; c.Unsupported != "infinite" || c.Type.Kind != vector.Opaque {
		t.Errorf("a column that is not read at all is %+v", c)
	}
	// Another column that turns out not to fit later leaves it as it is.
	if c := withoutColumns(got, map[int16]string{2: reasonInterval, 3: reasonInterval, 4: "damaged"}).Columns; c[1] != got.Columns[1] || c[0].Unsupported != "damaged" {
		t.Errorf("with another column left out, the columns are %+v", c)
	}
	saved := &catalog.Table{OID: fresh.OID, Columns: []catalog.Column{number, got.Columns[1]}}
	fresh.Columns = fresh.Columns[:2]
	r := &registry{tables: map[uint32]*table{}, badColumns: map[uint32]map[int16]string{}}
	r.keepIntervals(saved)
	if got := r.meta(fresh).Columns[1]; got != saved.Columns[1] {
		t.Errorf("what is loaded is %+v, the catalog has %+v", saved.Columns, r.meta(fresh).Columns)
	}
	d := newColumnDecoder(fresh, 1)
	for text, want := range map[string]bool{"1 day 02:00:00": true, "25:00:00": false, "1 mon": false, "1 day -01:00:00": false} {
		months, days, micros, _ := sqltype.ParseInterval(text)
		raw := sqltype.AppendInt8Binary(nil, micros)
		raw = sqltype.AppendInt4Binary(sqltype.AppendInt4Binary(raw, days), months)
		if v, err := d.value(raw); (err == nil) != want || want && string(sqltype.AppendInterval(nil, v)) != text {
			t.Errorf("%s: %d, %v", text, v, err)
		}
	}
}
