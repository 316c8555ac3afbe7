package olap

import (
	"math/rand/v2"
	"testing"
)

// TestExistence: a join for existence whose keys are marked in a bitmap is as one of all rows.
func TestExistence(t *testing.T) {
	for i, sql := range []string{
		"select d.id, d.name from dim d where exists (select 1 from fact f where f.k = d.id)",
		"select d.id, d.name from dim d where not exists (select 1 from fact f where f.k = d.id)",
		"select d.id, exists (select 1 from fact f where f.k = d.id and f.n > 3) from dim d",
		"select d.id, not exists (select 1 from fact f where f.k = d.id) is not true from dim d",
		"select d.id from dim d where d.id in (select f.k from fact f where f.g = 1)",
		"select d.id from dim d where d.id not in (select f.k from fact f where f.k is not null and f.n < 9)",
		"select f.id, f.k from fact f where exists (select 1 from fact o where o.id = f.k)",
		"select f.id, f.k from fact f where not exists (select 1 from fact o where o.k = f.id and o.g > 1)",
		"select count(*) from fact f where not exists (select 1 from fact o where o.n = f.n and o.id > 9)",
	} {
		for _, n := range []int{0, 1, 63, 64, 65, 128, 129, 511, 512, 513, 1025} {
			if testing.Short() && n > 129 && (i+n)%12 != 0 {
				continue // under the race detector the reference takes minutes
			}
			w := newRelationWorld(t, rand.New(rand.NewPCG(11, uint64(n))), n, 1024)
			if !w.run(t, sql, Options{Workers: 1 + n%3, Eager: true}) || !w.run(t, sql, Options{Workers: 2}) {
				t.Errorf("%s: forwarded", sql)
			}
		}
	}
}
