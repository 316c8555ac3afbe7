package pushdown_test

import (
	"fmt"

	"pgaccel/catalog"
	"pgaccel/pushdown"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

func ExamplePlan() {
	c := &catalog.Catalog{Tables: []*catalog.Table{{
		OID: 16384, Schema: "public", Name: "orders", Rows: 1_000_000,
		Columns: []catalog.Column{
			{Name: "id", AttNum: 1, TypeOID: sqltype.OIDInt8, Type: vector.TypeOf(vector.Int8), NotNull: true},
			{Name: "amount", AttNum: 2, TypeOID: sqltype.OIDInt4, Type: vector.TypeOf(vector.Int4)},
		},
	}}}
	for _, sql := range []string{
		"SELECT sum(amount) FROM orders WHERE id > 10",
		"SELECT sum(amount) FROM elsewhere",
		"SELECT random() FROM orders",
	} {
		if st := pushdown.Plan(sql, nil, c); st.Forward != nil {
			fmt.Println("forward:", st.Forward.Reason)
		} else {
			fmt.Println("can be answered")
		}
	}
	// Output:
	// can be answered
	// forward: no accelerated table
	// forward: volatile
}

func ExampleSplitPrefix() {
	s, ok := pushdown.SplitPrefix("BEGIN; SELECT 1")
	fmt.Printf("%q %q %v\n", s.Prefix, s.Last, ok)
	_, ok = pushdown.SplitPrefix("SELECT 1; SELECT 2")
	fmt.Println(ok)
	// Output:
	// "BEGIN;" " SELECT 1" true
	// false
}
