package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pgaccel/colstore"
	"pgaccel/olap"
)

// coprocessor has data that does not fit into the device's memory: the budget is a
// quarter of the columns that the 13 queries read, so that every query brings its columns from
// host memory. Beside its time stands what the bytes alone take over the bus, compressed
// and as plain 4-byte values. Then several clients ask at once.
func (r *gpuRun) coprocessor(ctx context.Context) error {
	d, err := r.ssbData(ctx)
	if err != nil {
		return err
	}
	planned, err := d.queries()
	if err != nil {
		return err
	}
	data := readBytes(planned)
	budget := max(data/4, 4<<20) // less holds no buffers to stream through
	unequal, err := d.unequal(clientsMany, r.Quick)
	if err != nil {
		return err
	}
	return errors.Join(r.coprocessorAlone(ctx, d, planned, data, budget),
		r.clients(ctx, d, "coprocessor", fmt.Sprintf("%s of columns, %s of device memory", size(data), size(budget)), budget, allInTurns(planned), eachItsOwn("the 13, no two equal", unequal)))
}

// coprocessorAlone has one query run at a time.
func (r *gpuRun) coprocessorAlone(ctx context.Context, d *ssbData, planned []ssbPlanned, data, budget int64) error {
	m, err := r.manager(d.store, budget, false)
	if err != nil {
		return err
	}
	defer m.close()
	t := gpuTable{Part: "coprocessor", Title: fmt.Sprintf("Larger than memory%s: %s of columns in host memory, %s of device memory; medians of %d runs in ms",
		r.whoseData(), size(data), size(budget), r.Runs),
		Columns: []string{"query", "time", "MB read", "its copy", "time / its copy", "MB copied", "their copy", "time / their copy", "plain MB", "plain copy", "plain copy / time", "kernels", "CPU"}}
	var wrong []string
	var failed error
queries:
	for i := range planned {
		q := &planned[i]
		fmt.Fprintf(r.Progress, "coprocessor: %s\n", q.name)
		began := time.Now()
		want, err := olap.Execute(ctx, q.q, q.in, olap.Options{})
		if err != nil {
			failed = fmt.Errorf("%s on the processor: %w", q.name, err)
			break
		}
		cpu := milliseconds(time.Since(began))
		var took []time.Duration
		var did olap.Report
		for run := range r.Runs + 1 {
			began := time.Now()
			got, report, err := q.onDevice(ctx, m, 0)
			if err != nil {
				failed = fmt.Errorf("%s: %w", q.name, err)
				break queries
			}
			did = report
			if run > 0 {
				took = append(took, time.Since(began))
			}
			if diff := differentRows(want, got); diff != "" {
				wrong = append(wrong, q.name+": "+diff)
			}
		}
		// The fact table's columns that the query reads, as plain 4-byte integers.
		plain := 4 * d.rows * int64(len(q.reads[q.q.Tables[0].Table]))
		ms := milliseconds(median(took))
		row := []any{q.name, ms}
		rate := r.copies.Host * 1e6 // bytes a millisecond
		for _, bytes := range []int64{readBytes(planned[i : i+1]), did.Stats.BytesCopied} {
			row = append(row, float64(bytes)/1e6, nil, nil)
			if alone := float64(bytes) / rate; rate > 0 && bytes > 0 {
				row[len(row)-2], row[len(row)-1] = alone, ms/alone
			}
		}
		row = append(row, float64(plain)/1e6, nil, nil, did.Stats.Kernel, cpu)
		if alone := float64(plain) / rate; rate > 0 {
			row[len(row)-4], row[len(row)-3] = alone, alone/ms
		}
		t.Rows = append(t.Rows, row)
	}
	t.Notes = []string{fmt.Sprintf("copy: the bytes at the rate of host to device that was measured in this run, %.1f GB/s. MB read: the encoded columns that a query reads; MB copied: what of them was not on the device yet. plain: the columns of lineorder that a query reads, at 4 bytes a value.", r.copies.Host)}
	return errors.Join(r.showSoFar(t, failed), wrongAnswers(wrong))
}

// readBytes is the size of the encoded columns that some of the queries read.
func readBytes(queries []ssbPlanned) (bytes int64) {
	type column struct {
		table *colstore.Table
		n     int
	}
	seen := map[column]bool{}
	for i := range queries {
		for k, t := range queries[i].in.Tables {
			for _, n := range queries[i].reads[k] {
				if c := (column{t, n}); !seen[c] {
					seen[c] = true
					for _, seg := range t.Segments {
						bytes += int64(seg.Columns[n].Data.Bytes())
					}
				}
			}
		}
	}
	return bytes
}
