package olap

import "testing"

// TestLateKeys: keys that others decide are looked up for the groups that a LIMIT leaves.
func TestLateKeys(t *testing.T) {
	for sql, late := range map[string]int{
		"select d.id, d.name, sum(f.n) s from fact f join dim d on d.id = f.k group by d.id, d.name order by s desc, d.id limit 5":                                        1,
		"select d.name, upper(d.name), f.k, count(*) from fact f join dim d on d.id = f.k group by d.name, d.r, f.k order by 4, f.k limit 3 offset 2":                     2,
		"select d.id, d.name, d.r, count(*) c from fact f join dim d on d.id = f.k group by d.id, d.name, d.r order by c, d.r, d.id limit 4":                              2,
		"select e.name, d.id, count(*) from fact f join dim d on d.id = f.k join dim e on e.id = d.r group by d.id, e.name, d.r order by d.id limit 6":                    2,
		"select f.id, f.t, f.n from fact f group by f.id, f.t, f.n order by f.id desc limit 7":                                                                            2,
		"select f.id, f.t, d.name, d.id, sum(f.g) from fact f join dim d on d.id = f.k group by f.id, f.t, d.name, d.id order by 5, f.id limit 7":                         3,
		"select d.id, d.name, count(*) c from fact f join dim d on d.id = f.k group by d.id, d.name having count(*) > 1 order by c, d.id limit 5":                         1,
		"select s.id, s.name from (select d.id, d.name, count(*) c from fact f join dim d on d.id = f.k group by d.id, d.name order by c, d.id limit 5) s where s.id > 2": 0,
		// Not: the first is by such a key, a condition reads it, nothing decides it, or there is no LIMIT.
		"select d.id, d.name, count(*) from fact f join dim d on d.id = f.k group by d.id, d.name order by d.name, d.id limit 5":                  0,
		"select d.id, d.name, count(*) from fact f join dim d on d.id = f.k group by d.id, d.name having d.name > min(f.t) order by d.id limit 5": 0,
		"select f.k, d.name, count(*) from fact f left join dim d on d.id = f.k group by f.k, d.name order by 3, f.k limit 5":                     0,
		"select f.g, f.t, count(*) from fact f group by f.g, f.t order by 3, f.g, f.t limit 5":                                                    0,
		"select d.id, d.name, count(*) from fact f join dim d on d.id = f.k group by d.id, d.name order by d.id":                                  0,
		"select d.id, d.name, count(*) from fact f join dim d on d.id = f.k group by rollup (d.id, d.name) order by d.id, 3 limit 4000":           0,
	} {
		atEdges(t, func(n int, w *relationWorld, opt Options) {
			if !w.run(t, sql, opt) {
				t.Errorf("%s: forwarded with %d rows", sql, n)
			}
			if !testing.Short() || n == 129 || n == 2500 {
				onDevice := opt
				onDevice.Device, onDevice.DeviceWait = newOnPlainDevice().device, true
				w.run(t, sql, onDevice)
			}
			x := w.execution(t, sql, opt, func(x *execution) error {
				err := x.begin()
				x.late()
				return err
			})
			got := 0
			if x.lateKeys != nil {
				got = len(x.lateKeys.exprs)
			}
			if n == 2500 && got != late {
				t.Errorf("%s: %d late keys, not %d", sql, got, late)
			}
		})
	}
}
