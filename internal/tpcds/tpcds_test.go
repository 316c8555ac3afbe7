package tpcds

import (
	"bytes"
	"strings"
	"testing"

	"pgaccel/internal/pgload"
)

func generated(t *testing.T, table string, parts int) []byte {
	t.Helper()
	var text bytes.Buffer
	for part := range parts {
		if err := Source.Generate(table, 0.01, part, parts, &text); err != nil {
			t.Fatal(err)
		}
	}
	return text.Bytes()
}

// columnsOf reads a table's columns out of schema.sql.
func columnsOf(table string) (names []string) {
	_, body, _ := strings.Cut(Source.Schema(), "CREATE TABLE "+table+" (")
	body, _, _ = strings.Cut(body, "\n);")
	for _, column := range strings.Split(body, ", ") {
		for _, column := range strings.Split(column, ",\n") {
			names = append(names, strings.Fields(column)[0])
		}
	}
	return names
}

func TestTables(t *testing.T) {
	for _, table := range Source.Tables {
		whole := generated(t, table, 1)
		if !bytes.Equal(whole, generated(t, table, 7)) {
			t.Errorf("%s in 7 parts differs from the whole", table)
		}
		rows, err := Source.Rows(table, 0.01)
		if got := int64(bytes.Count(whole, []byte("\n"))); err != nil || got != rows {
			t.Errorf("%s: %d rows, Rows says %d (%v)", table, got, rows, err)
		}
		want := len(columnsOf(table))
		for line := range bytes.Lines(whole) {
			if got := bytes.Count(line, []byte("\t")) + 1; got != want {
				t.Fatalf("%s: %d columns, want %d: %q", table, got, want, line)
			}
		}
		if !strings.Contains(pgload.KeysOf(Source.Keys(), table), "PRIMARY KEY") {
			t.Errorf("%s has no key", table)
		}
	}
}

// TestReturns: each return is of a sale, about one of ten; foreign keys are null in 4 to 5 per cent.
func TestReturns(t *testing.T) {
	for _, c := range []struct{ sales, returns, item, order, customer string }{
		{"store_sales", "store_returns", "_item_sk", "_ticket_number", "ss_customer_sk"},
		{"catalog_sales", "catalog_returns", "_item_sk", "_order_number", "cs_bill_customer_sk"},
		{"web_sales", "web_returns", "_item_sk", "_order_number", "ws_bill_customer_sk"},
	} {
		at := func(table, suffix string) int {
			for i, name := range columnsOf(table) {
				if strings.HasSuffix(name, suffix) {
					return i
				}
			}
			t.Fatal(table, suffix)
			return 0
		}
		keys := func(table string) (all map[string]bool, nulls float64) {
			all = map[string]bool{}
			item, order, customer := at(table, c.item), at(table, c.order), 0
			if table == c.sales {
				customer = at(table, c.customer)
			}
			for line := range bytes.Lines(generated(t, table, 1)) {
				f := strings.Split(string(line), "\t")
				all[f[item]+" "+f[order]] = true
				if f[customer] == `\N` {
					nulls++
				}
			}
			return all, nulls / float64(len(all))
		}
		sold, nulls := keys(c.sales)
		back, _ := keys(c.returns)
		for k := range back {
			if !sold[k] {
				t.Fatalf("%s: %s was not sold", c.returns, k)
			}
		}
		if share := float64(len(back)) / float64(len(sold)); share < 0.09 || share > 0.115 || nulls < 0.035 || nulls > 0.055 {
			t.Errorf("%s: %.3f returned, %.3f null", c.sales, share, nulls)
		}
		if rows, _ := Source.Rows(c.sales, 0.01); rows != int64(len(sold)) {
			t.Errorf("%s: an order has an item twice", c.sales)
		}
	}
}

// TestKeyAt: the row that holds on a day is of the business key, and holds.
func TestKeyAt(t *testing.T) {
	for id := range 30 {
		for d := salesFirst; d < salesFirst+salesDays; d += 17 {
			v := revisionOf(keyAt(id, d))
			if v.id != id || starts[v.of][v.number] > d || v.number+1 < v.of && starts[v.of][v.number+1] <= d {
				t.Fatalf("id %d on %s: %+v", id, dateText(d), v)
			}
		}
	}
}

func TestQueries(t *testing.T) {
	if n := len(Queries()); n != queryCount {
		t.Errorf("%d statements", n)
	}
	for _, q := range Queries() {
		if a := q.Draw(0, 1); strings.Contains(a, "[") || a != q.Draw(0, 1) {
			t.Errorf("%s: %s", q.Name, a)
		}
	}
}
