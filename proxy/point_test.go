package proxy

import (
	"context"
	"strconv"
	"testing"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/engine"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// BenchmarkPointQuery is what the machine does for a point query, on a table that is
// copied ("accounts") and on another: the difference is what the copy costs it.
func BenchmarkPointQuery(b *testing.B) {
	store := colstore.New(colstore.Options{MemoryLimit: 64 << 20})
	defer store.Close()
	store.SetCatalog(&catalog.Catalog{Tables: []*catalog.Table{{OID: 42, Schema: "public", Name: "accounts", Fingerprint: "x",
		Columns: []catalog.Column{{Name: "aid", AttNum: 1, TypeOID: sqltype.OIDInt4, Type: vector.TypeOf(vector.Int4)}}}}})
	e := engine.New(engine.Options{Store: store})
	z, c := raw('Z', "I"), raw('C', "SELECT 1\x00")
	for _, table := range []string{"accounts", "anywhere"} {
		sql := "SELECT aid FROM " + table + " WHERE aid = "
		for name, f := range map[string]func(i int) (client, server []byte){
			"simple": func(i int) ([]byte, []byte) {
				return query(sql + strconv.Itoa(i%1000)), join(oneColumn, oneRow, c, z)
			},
			"extended": func(i int) ([]byte, []byte) {
				return join(parse("", sql+"$1"), bind("", "", []string{strconv.Itoa(i % 1000)}), describe('P', ""), execute("", 0), syncing()),
					join(raw('1', ""), raw('2', ""), oneColumn, oneRow, c, z)
			},
			"prepared": func(i int) ([]byte, []byte) {
				client, server := join(bind("", "p", []string{strconv.Itoa(i % 1000)}), describe('P', ""), execute("", 0), syncing()),
					join(raw('2', ""), oneColumn, oneRow, c, z)
				if i == 0 {
					client, server = join(parse("p", sql+"$1"), client), join(raw('1', ""), server)
				}
				return client, server
			},
		} {
			b.Run(table+"/"+name, func(b *testing.B) {
				s := newSession(context.Background(), e, noObserver{})
				s.server(startAnswers)
				b.ReportAllocs()
				for i := range b.N {
					b.StopTimer()
					client, server := f(i)
					b.StartTimer()
					if n := s.client(client); n != len(client) {
						b.Fatal("held")
					}
					s.toServer.parts = s.toServer.parts[:0]
					if n := s.server(server); n != len(server) {
						b.Fatal("held")
					}
					s.toClient.parts = s.toClient.parts[:0]
				}
				if s.opaque {
					b.Fatal("lost")
				}
			})
		}
	}
}
