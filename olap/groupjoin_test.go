package olap

import (
	"testing"

	"pgaccel/plan"
)

// TestGroupJoin: what is aggregated of a table whose rows multiply is aggregated before it is joined, where groups are rows of
// the first table.
func TestGroupJoin(t *testing.T) {
	for sql, before := range map[string]bool{
		"select d.id, count(f.id) from dim d left join fact f on f.k = d.id group by d.id":                                                                                       true,
		"select d.id, d.name, count(*), count(f.n), sum(f.n), min(f.t), max(f.g), avg(f.n), count(distinct f.g) from dim d left join fact f on f.k = d.id group by d.id, d.name": true,
		"select c, count(*) from (select d.id, count(f.id) c from dim d left join fact f on f.k = d.id and f.g > 1 and f.t like '%a%' group by d.id) s group by c":               false, // the inner one is
		"select d.id, count(f.id) c from dim d left join fact f on f.k = d.id where d.r > 0 group by d.id having count(f.id) > 1 order by c desc, d.id limit 7":                  true,
		"select d.id, sum(f.n) + 1 from dim d left join fact f on f.k = d.id group by d.id having count(*) = 1 or sum(f.n) is null":                                              true,
		"select d.id, e.name, count(f.id) from dim d left join fact f on f.k = d.id join dim e on e.id = d.r group by d.id, e.name":                                              true,
		"select d.id, count(f.w), max(f.t) from dim d left join many f on f.k = d.id and f.w > 2 group by d.id":                                                                  true,
		// Not: other groups, a value of both, or one that is not null for nulls.
		"select d.r, count(f.id) from dim d left join fact f on f.k = d.id group by d.r":                                false,
		"select d.id, sum(f.n + d.r) from dim d left join fact f on f.k = d.id group by d.id":                           false,
		"select d.id, f.g, count(f.id) from dim d left join fact f on f.k = d.id group by d.id, f.g":                    false,
		"select d.id, count(coalesce(f.g, 1)) from dim d left join fact f on f.k = d.id group by d.id":                  false,
		"select d.id, count(*) filter (where f.g is null) from dim d left join fact f on f.k = d.id group by d.id":      false,
		"select d.id, count(f.id) from dim d left join fact f on f.k = d.id where coalesce(f.g, d.r) > 1 group by d.id": false,
		"select d.id, sum(f.n / f.g) from dim d left join fact f on f.k = d.id group by d.id":                           false,
		"select d.id, count(f.id) from dim d left join fact f on f.k = d.id group by rollup (d.id)":                     false,
	} {
		atEdges(t, func(n int, w *relationWorld, opt Options) {
			answered := w.run(t, sql, opt)
			if !testing.Short() || n == 129 || n == 2500 {
				onDevice := opt
				onDevice.Device, onDevice.DeviceWait = newOnPlainDevice().device, true
				w.run(t, sql, onDevice)
			}
			x := w.execution(t, sql, opt, func(x *execution) error {
				x.relations, x.readers = map[*plan.Relation]*relation{}, readers(x.q)
				return x.groupJoin()
			})
			if got := !x.q.Grouped; n == 2500 && (got != before || !answered && before) {
				t.Errorf("%s: before the join %v, answered %v", sql, got, answered)
			}
		})
	}
}
