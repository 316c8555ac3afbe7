package bench

import (
	"context"
	"testing"
	"time"

	"pgaccel/internal/ssb"
	"pgaccel/olap"
)

// TestSSBData: the columns hold as many rows as the generator says, and every query is
// planned and has an answer.
func TestSSBData(t *testing.T) {
	began := time.Now()
	const scale = 0.02
	d, err := loadSSB(t.Context(), generatedSSB{scale}, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	t.Logf("%d rows in %v, %d bytes", d.rows, time.Since(began), d.bytes)
	for _, meta := range d.cat.Tables {
		want, err := ssb.Source.Rows(meta.Name, scale)
		if err != nil {
			t.Fatal(err)
		}
		if meta.Rows != want {
			t.Errorf("%s has %d rows instead of %d", meta.Name, meta.Rows, want)
		}
	}
	queries, err := d.queries()
	if err != nil {
		t.Fatal(err)
	}
	if len(queries) != 13 {
		t.Fatalf("%d queries", len(queries))
	}
	for _, q := range queries {
		b, err := olap.Execute(context.Background(), q.q, q.in, olap.Options{})
		if err != nil {
			t.Fatalf("%s: %v", q.name, err)
		}
		if b.Rows == 0 && q.name != "q3.4" && q.name != "q3.3" && q.name != "q4.3" {
			t.Errorf("%s has no rows", q.name)
		}
	}
}
