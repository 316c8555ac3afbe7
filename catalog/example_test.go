package catalog_test

import (
	"fmt"

	"pgaccel/catalog"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

func ExampleTable() {
	t := &catalog.Table{
		OID: 16384, Schema: "public", Name: "orders",
		Columns: []catalog.Column{
			{Name: "id", TypeOID: sqltype.OIDInt8, Type: vector.TypeOf(vector.Int8), NotNull: true},
			{Name: "code", TypeOID: 1562, Unsupported: "varbit"},
		},
		Indexes:  []catalog.Index{{Name: "orders_pkey", Columns: []int{0}, Unique: true}},
		Identity: []int{0},
	}
	c := &catalog.Catalog{Tables: []*catalog.Table{t}}
	fmt.Println(c.ByOID(16384).QualifiedName(), len(c.Lookup("", "orders")))
	fmt.Println(t.Column("code"), t.UniqueOn([]int{0, 1}), t.HashIdentity())
	// Output:
	// public.orders 1
	// 1 true false
}

func ExampleParseLSN() {
	lsn, err := catalog.ParseLSN("1/A2B3C4D")
	fmt.Printf("%#x %v\n", lsn, err)
	// Output: 0x10a2b3c4d <nil>
}

func ExampleQuoteIdentifier() {
	fmt.Println(catalog.QuoteIdentifier(`my "table"`), catalog.QuoteLiteral("it's"))
	// Output: "my ""table""" 'it''s'
}
