package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"pgaccel/internal/ssb"
	"pgaccel/olap"
	"pgaccel/vector"
)

// clientsMany is how many clients ask at once.
const clientsMany = 16

// askAtOnce has clients ask one query after the other for a while, at least one each: ask is told
// which client it is and how many queries that has asked. The first error ends all.
func askAtOnce(ctx context.Context, clients int, duration time.Duration, ask func(ctx context.Context, client, k int) error) (n int64, took time.Duration, err error) {
	var asked atomic.Int64
	all, each := errgroup.WithContext(ctx)
	began := time.Now()
	for client := range clients {
		all.Go(func() error {
			for k := 0; (k == 0 || time.Since(began) < duration) && each.Err() == nil; k++ {
				if err := ask(each, client, k); err != nil {
					return err
				}
				asked.Add(1)
			}
			return nil
		})
	}
	if err = all.Wait(); err == nil {
		err = ctx.Err()
	}
	return asked.Load(), time.Since(began), err
}

// turns is what clients ask in turns.
type turns struct {
	name    string
	queries []ssbPlanned
	want    []*vector.Batch         // the processor's answers
	of      func(client, k int) int // the query that a client asks after k others
	rows    [][]any                 // of the table
}

// ssbClients has clients in this process ask what is resident.
func (r *gpuRun) ssbClients(ctx context.Context, d *ssbData, queries []ssbPlanned) error {
	constants, err := d.sameShape(clientsMany * 4)
	if err != nil {
		return err
	}
	return r.clients(ctx, d, "ssb", "columns resident", r.DeviceMemory, allInTurns(queries),
		// No client ever asks what another one does.
		&turns{name: "q1.1, other constants", queries: constants, of: func(client, k int) int { return (client + k*clientsMany) % len(constants) }})
}

// allInTurns has each client begin with another query.
func allInTurns(queries []ssbPlanned) *turns {
	return &turns{name: "the 13 queries", queries: queries, of: func(client, k int) int { return (client + k) % len(queries) }}
}

// clients has clients in this process ask at once, with and without gpu.Options.Share: which
// joins queries that are equal, so that its gain is that of the queries under way that are, and has
// others scan together what does not fit.
// memory is each device's budget, where says what that means.
func (r *gpuRun) clients(ctx context.Context, d *ssbData, part, where string, memory int64, work ...*turns) error {
	for _, w := range work {
		for i := range w.queries {
			want, err := olap.Execute(ctx, w.queries[i].q, w.queries[i].in, olap.Options{})
			if err != nil {
				return fmt.Errorf("%s on the processor: %w", w.queries[i].name, err)
			}
			w.want = append(w.want, want)
		}
	}
	var failed error
	for _, equal := range []bool{false, true} {
		if failed = r.clientsOf(ctx, d, memory, work, equal); failed != nil {
			break
		}
	}
	t := gpuTable{Part: part, Title: fmt.Sprintf("Clients in process, queries in turns, %s%s, scale factor %v", where, r.whoseData(), r.Scale),
		Columns: []string{"queries", "clients", "shared", "queries/s", "median ms", "99 % ms", "of them joined", "scanned together", "GB/s copied"},
		Notes:   []string{"From the plan to the rows, each answer compared with the processor's. joined: to one that is equal and waits or runs; together: with others, what does not fit; copied: to the device."}}
	for _, w := range work {
		t.Rows = append(t.Rows, w.rows...)
	}
	return r.showSoFar(t, failed)
}

// sameShape plans n queries that are q1.1 with other constants, no two of them equal.
func (d *ssbData) sameShape(n int) ([]ssbPlanned, error) {
	sql := ssb.Queries()[0].SQL
	list := make([]ssbPlanned, n)
	for i := range list {
		discount := i % 9
		other := strings.NewReplacer("d_year = 1993", "d_year = "+strconv.Itoa(1992+i%7),
			"BETWEEN 1 AND 3", fmt.Sprintf("BETWEEN %d AND %d", discount, discount+2),
			"lo_quantity < 25", "lo_quantity < "+strconv.Itoa(20+i%11)).Replace(sql)
		var err error
		if list[i], err = d.plan(fmt.Sprintf("q1.1 (%d)", i), other); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// unequal plans the 13 queries for each of n clients, without the first days, of which each
// client leaves out as many as no other: no two are equal. Those of a client are side by side; quick
// is one for each.
func (d *ssbData) unequal(n int, quick bool) ([]ssbPlanned, error) {
	queries := ssb.Queries()
	if quick {
		queries = queries[:1]
	}
	var list []ssbPlanned
	for client := range n {
		for _, query := range queries {
			other := strings.Replace(query.SQL, "\nWHERE ", fmt.Sprintf("\nWHERE d_datekey > %d AND ", 19920101+client), 1)
			p, err := d.plan(fmt.Sprintf("%s (%d)", query.Name, client), other)
			if err != nil {
				return nil, err
			}
			list = append(list, p)
		}
	}
	return list, nil
}

// eachItsOwn has each of clientsMany clients ask those of a list that are its own.
func eachItsOwn(name string, queries []ssbPlanned) *turns {
	each := len(queries) / clientsMany
	return &turns{name: name, queries: queries, of: func(client, k int) int { return client%clientsMany*each + (client+k)%each }}
}

// clientsOf measures work on a manager of its own that shares equal queries or does not; then with
// one client, too.
func (r *gpuRun) clientsOf(ctx context.Context, d *ssbData, memory int64, work []*turns, equal bool) error {
	m, err := r.manager(d.store, memory, equal)
	if err != nil {
		return err
	}
	defer m.close()
	counts := []int{1, clientsMany}
	if equal {
		counts = counts[1:]
	}
	duration := 3 * time.Second
	if r.Quick {
		duration = time.Millisecond
	}
	for _, w := range work {
		for i := range w.queries { // compiles, brings the columns
			if err := w.ask(ctx, m, 0, i); err != nil {
				return err
			}
		}
		for _, clients := range counts {
			before := m.Status()[0]
			times := make([][]time.Duration, clients)
			n, took, err := askAtOnce(ctx, clients, duration, func(ctx context.Context, client, k int) error {
				began := time.Now()
				err := w.ask(ctx, m, client, w.of(client, k))
				times[client] = append(times[client], time.Since(began))
				return err
			})
			if err != nil {
				return fmt.Errorf("%d clients: %w", clients, err)
			}
			all := slices.Concat(times...)
			slices.Sort(all)
			after := m.Status()[0]
			w.rows = append(w.rows, []any{w.name, clients, map[bool]string{true: "yes", false: "no"}[equal], float64(n) / took.Seconds(),
				milliseconds(median(all)), milliseconds(all[len(all)*99/100]), share(float64(after.Shared-before.Shared), float64(n)), share(float64(after.Rides-before.Rides), float64(n)),
				float64(after.BytesCopied-before.BytesCopied) / took.Seconds() / 1e9})
		}
	}
	return nil
}

// ask has a device answer a query, and compares.
func (w *turns) ask(ctx context.Context, m *gpuManager, client, i int) error {
	q := &w.queries[i]
	got, _, err := q.onDevice(ctx, m, uint64(client)+1)
	if err != nil {
		return fmt.Errorf("%s: %w", q.name, err)
	}
	if diff := differentRows(w.want[i], got); diff != "" {
		return errors.New(q.name + ": " + diff)
	}
	return nil
}
