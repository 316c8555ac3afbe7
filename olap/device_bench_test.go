package olap_test

import (
	"context"
	"os"
	"strconv"
	"sync/atomic"
	"testing"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/gpu"
	"pgaccel/gpu/device"
	"pgaccel/internal/ssb"
	"pgaccel/olap"
	"pgaccel/pushdown"
	"pgaccel/syntax"
)

// idle is an executor that does nothing at once: what is left is the host's share.
type idle struct{ next atomic.Uint64 }

func (n *idle) Devices() []device.Info {
	return []device.Info{{Kind: device.CUDA, Name: "idle", Arch: "sm_90", SMs: 132, ThreadsPerSM: 2048, SharedPerBlock: 227 << 10, SharedPerSM: 228 << 10, L2: 50 << 20, Memory: 140 << 30, Free: 140 << 30}}
}
func (n *idle) Share(*os.File) (device.File, error) { return 1, nil }
func (n *idle) Alloc(_ int, bytes int64) (device.Pointer, error) {
	return device.Pointer(n.next.Add(uint64(bytes+255)&^255) + 1<<30), nil
}
func (n *idle) Free(int, device.Pointer) error { return nil }
func (n *idle) Compile(context.Context, int, device.Source) (device.Module, error) {
	return device.Module(n.next.Add(256)), nil
}
func (n *idle) Close() error { return nil }
func (n *idle) Run(_ context.Context, _ int, b *device.Batch) (*device.Reply, error) {
	r := &device.Reply{}
	for i := range b.Commands {
		if c := &b.Commands[i]; c.Op == device.OpRead {
			r.Data = append(r.Data, make([]byte, c.Bytes))
		}
	}
	return r, nil
}

// wideSSB is the benchmark's queries over dimensions of that scale factor, and a lineorder of as
// many segments as it would have there: few that are repeated under new names.
func wideSSB(b *testing.B, scale float64) (out []ssbQuery) {
	cat := ssbTables(b)
	dims := &catalog.Catalog{Shadowed: cat.Shadowed}
	fact := &catalog.Catalog{Shadowed: cat.Shadowed}
	for _, t := range cat.Tables {
		if t.Name == "lineorder" {
			fact.Tables = append(fact.Tables, t)
		} else {
			dims.Tables = append(dims.Tables, t)
		}
	}
	tables := loadSSB(b, dims, scale)
	for oid, t := range loadSSB(b, fact, 0.05) {
		big := &colstore.Table{ID: colstore.NewID(), Meta: t.Meta, Dicts: t.Dicts, Snapshot: t.Snapshot}
		for i := range int(scale * 6e6 / 65536) {
			s := *t.Segments[i%(len(t.Segments)-1)]
			s.Slot = i
			s.Columns = append([]colstore.Column(nil), s.Columns...)
			for c := range s.Columns {
				s.Columns[c].ID = colstore.NewID()
			}
			big.Segments, big.Rows = append(big.Segments, &s), big.Rows+int64(s.Rows)
		}
		tables[oid] = big
	}
	for _, query := range ssb.Queries() {
		st := pushdown.Plan(syntax.Parse(query.SQL), nil, cat)
		if st.Star == nil {
			b.Fatalf("%s: %v", query.Name, st.Forward)
		}
		q := ssbQuery{name: query.Name, q: st.Star}
		for _, table := range st.Star.Tables {
			q.in.Tables = append(q.in.Tables, tables[table.Meta.OID])
		}
		out = append(out, q)
	}
	return out
}

// BenchmarkHostShare is what the host does for the 13 queries on a device that takes no
// time: warm, where all is kept; cold, where the joined tables are looked at as for the first
// query that asks so. PGACCEL_SSB_SCALE sets the scale factor.
func BenchmarkHostShare(b *testing.B) {
	scale := 1.0
	if s := os.Getenv("PGACCEL_SSB_SCALE"); s != "" {
		var err error
		if scale, err = strconv.ParseFloat(s, 64); err != nil {
			b.Fatal(err)
		}
	}
	queries := wideSSB(b, scale)
	m := gpu.New(gpu.Options{})
	if err := m.Attach(&idle{}); err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	for _, cold := range []bool{false, true} {
		name := "warm/"
		if cold {
			name = "cold/"
		}
		for _, q := range queries {
			b.Run(name+q.name, func(b *testing.B) {
				b.ReportAllocs()
				once := func() {
					if cold {
						b.StopTimer()
						m.Forget()
						olap.ForgetLookups()
						b.StartTimer()
					}
					var did olap.Report
					if _, err := olap.Execute(context.Background(), q.q, q.in, olap.Options{Device: m, DeviceWait: true, Report: &did}); err != nil {
						b.Fatal(err)
					}
					if did.Device == "" {
						b.Fatal(did.Fallback)
					}
				}
				for range 3 {
					once()
				}
				b.ResetTimer()
				for b.Loop() {
					once()
				}
			})
		}
	}
}
