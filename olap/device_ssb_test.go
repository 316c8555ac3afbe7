package olap_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"pgaccel/gpu"
	"pgaccel/gpu/program"
	"pgaccel/olap"
)

// seen is a device that computes a row at a time and keeps the last query.
type seen struct{ last *program.Query }

func (d *seen) Limits() (gpu.Limits, bool) {
	return gpu.Limits{SharedBytes: 227 << 10, Memory: 64 << 30}, true
}

func (d *seen) Run(_ context.Context, q *program.Query, _ gpu.RunOptions) (*program.Result, gpu.Stats, error) {
	d.last = q
	r, err := program.Reference(q)
	return r, gpu.Stats{Device: "plain:0"}, err
}

// outline says what a query's program does, for the log.
func outline(q *program.Query) string {
	s := fmt.Sprintf("place %d of %d groups, %d digits;", q.Sink.Place, q.Groups, len(q.Sink.Digits))
	for _, step := range q.Steps {
		node := func(n int) string {
			if x := q.Nodes[n]; x.Op == program.OpColumn {
				return fmt.Sprintf("column %d", x.Index)
			}
			return fmt.Sprintf("node %d", n)
		}
		switch step.Kind {
		case program.StepRange:
			s += fmt.Sprintf(" range %s %v", node(step.Node), q.Ranges[step.Index])
		case program.StepProbe:
			l, d := q.Program.Lookups[step.Index], &q.Lookups[step.Index]
			s += fmt.Sprintf(" probe %s kind %d of %d keys", node(l.Key), l.Kind, d.Size)
			if d.Build != nil {
				s += " built"
			}
		default:
			s += fmt.Sprintf(" kind %d %s", step.Kind, node(step.Node))
		}
		s += fmt.Sprintf(" (%d/1000),", step.Permille)
	}
	return s
}

// TestSSBOnDevice checks that a device computes all 13 queries: with lookups that it makes,
// with those that the processor makes, and with those that were kept.
func TestSSBOnDevice(t *testing.T) {
	defer olap.BuildOnDevice(100)()
	d := &seen{}
	for _, q := range ssbQueries(t, 0.02) {
		want := q.run(t, 2)
		var ids []uint64
		for turn := range 6 {
			var did olap.Report
			got, err := olap.Execute(t.Context(), q.q, q.in, olap.Options{Device: d, DeviceWait: true, Report: &did})
			if err != nil || did.Device == "" {
				t.Fatalf("%s: %v, %+v", q.name, err, did)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: another answer on a device", q.name)
			}
			t.Logf("%s: %s", q.name, outline(d.last))
			built := 0
			for i := range d.last.Lookups {
				if d.last.Lookups[i].ID == 0 {
					t.Errorf("%s: a lookup that cannot be kept", q.name)
				}
				ids = append(ids, d.last.Lookups[i].ID)
				if d.last.Lookups[i].Build != nil {
					built++
				}
			}
			if (built > 0) != (turn < 2 && len(d.last.Lookups) > 0) {
				t.Errorf("%s: %d lookups are to be built, turn %d", q.name, built, turn)
			}
		}
		n := len(ids) / 6
		made := ids[2*n : 3*n]
		if !reflect.DeepEqual(ids[:n], ids[n:2*n]) || !reflect.DeepEqual(made, ids[3*n:4*n]) || !reflect.DeepEqual(made, ids[5*n:]) {
			t.Errorf("%s: lookups have other numbers each time: %v", q.name, ids)
		}
	}
}
