package olap

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pgaccel/gpu"
	"pgaccel/gpu/program"
)

// TestDeviceRelations compares queries of several stars with the reference, where a device computes what
// it can of them: with lookups of relations, and for existence, which it makes of tables.
func TestDeviceRelations(t *testing.T) {
	buildsSmall(t)
	d := newPlainDevice()
	asked := map[string]int{}
	for i, n := range []int{0, 1, 64, 129, 513, 1300} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			d.fail = nil
			if i%2 == 0 {
				hashesAll(t)
			}
			if n == 129 || n == 64 { // what the device does not do after all is the processor's, hash tables too
				d.fail = func(asked int) (*program.Result, error) {
					if asked%3 > 0 {
						return nil, gpu.ErrBusy
					}
					return nil, nil
				}
			}
			w := newRelationWorld(t, rand.New(rand.NewPCG(17, uint64(n))), n, 1024)
			for i, sql := range relationQueries {
				if n > 129 && (testing.Short() && (i+n)%12 != 0 || strings.Contains(sql, "lateral")) {
					continue // the reference takes long
				}
				before := d.asked
				if !w.run(t, sql, Options{Workers: 1 + i%3, Device: d, DeviceWait: true}) && n < 600 && w.run(t, sql, Options{}) {
					t.Errorf("%s: forwarded with a device", sql)
				}
				asked[sql] += d.asked - before
			}
		})
	}
	repeats := d.repeats
	for sql, want := range map[string]int{
		// A table that is scanned beside a relation, and the star that this is of.
		"select d.name, s.c from dim d join (select k, count(*) c from fact group by k) s on s.k = d.id":                                                    2,
		"select f.g, count(*), max(s.a) from fact f cross join (select avg(n) a from fact) s where f.n > s.a group by f.g having count(*) < max(s.a) + 100": 1,
		"select count(*) from fact where g in (select g from fact group by g having count(*) > 20)":                                                         2,
		"select count(*) from dim d where exists (select 1 from fact f where f.k = d.id)":                                                                   1,
		"select count(*) from dim d where not exists (select 1 from fact f where f.k = d.id and f.g > 1)":                                                   1,
		"select count(*) from fact where k in (select k from many)":                                                                                         1,
		// A relation that is scanned, at every length, and the star that it is of.
		"select c, count(*) from (select k, count(*) c from fact group by k) s group by c order by c": 8,
		"select count(*), sum(g) from (select id, g from fact order by id limit 70) s where g > 1":    3,
	} {
		if asked[sql] < want {
			t.Errorf("%s: the device was asked %d times", sql, asked[sql])
		}
	}
	if repeats == 0 {
		t.Error("no lookup was made on the device of keys that come again")
	}
	total := 0
	for _, n := range asked {
		if n > 0 {
			total++
		}
	}
	t.Logf("%d of %d statements asked the device, steps %v, lookups %v, %d built, %d of keys that come again", total, len(asked), d.steps, d.kinds, d.built, repeats)
	t.Logf("%d scans of relations, %d lookups of many partners, %d hash tables to be made", d.relations, d.many, d.hashed)
	if d.hashed == 0 {
		t.Error("no hash table was made by the device")
	}
	if total*3 < len(asked) || d.relations < 50 || d.many < 10 || d.sinks[program.SinkGroups] == 0 || d.sinks[program.SinkBitmap] == 0 {
		t.Errorf("%d of %d statements asked the device, sinks %v", total, len(asked), d.sinks)
	}
}
