package pushdown_test

import (
	"fmt"

	"pgaccel/catalog"
	"pgaccel/pushdown"
	"pgaccel/sqltype"
	"pgaccel/syntax"
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
		if st := pushdown.Plan(syntax.Parse(sql), nil, c); st.Forward != nil {
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
