package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"pgaccel/colstore"
	"pgaccel/engine"
	"pgaccel/gpu"
	"pgaccel/gpu/device"
	"pgaccel/internal/checkedfile"
)

// prewarmer brings the columns of a database that devices had to a device that comes, so that first queries after a
// start read what is there, as pg_prewarm's autoprewarm does with blocks. With a data directory that goes beyond
// the process: which they are is in a file (doc.go).
type prewarmer struct {
	d      *database
	device *deviceSide
	file   string // "": none
	cancel context.CancelFunc
	done   chan struct{}

	generation int          // gpu.Manager.Generation when due was filled last
	had        []warmColumn // that devices had when it was looked last, or are due
	written    []warmColumn // what the file has
	unwell     bool         // it could not be written, which has been said
	due        []warmColumn // to be brought
	tried      time.Time    // when that was tried last
	losses     int          // devices that were lost while something was brought

	// Of what was brought since due was filled.
	came    time.Time
	columns int
	bytes   int64
	took    time.Duration
}

// warmColumn names what devices have of a column: its values, or the strings of its dictionary.
type warmColumn struct {
	Table   string `json:"table"`
	Column  string `json:"column"`
	Strings bool   `json:"strings,omitempty"`
}

const (
	prewarmMagic = "pgaccel prewarm 1\n"
	// prewarmTick is how often it is looked whether a device has come, prewarmEvery which columns devices have, and whether tables
	// are there that were missing.
	prewarmTick  = 200 * time.Millisecond
	prewarmEvery = 5 * time.Second
	// prewarmWait is how long tables are waited for: they may be copied anew, or gone.
	prewarmWait = time.Hour
	// prewarmLosses is after how many devices that were lost meanwhile nothing is brought ahead any more.
	prewarmLosses = 2
)

// startPrewarmer returns nil where there is nothing to do.
func startPrewarmer(ctx context.Context, d *database, device *deviceSide) *prewarmer {
	if device == nil || device.supervisor == nil {
		return nil
	}
	p := &prewarmer{d: d, device: device, done: make(chan struct{})}
	if d.cfg.DataDir != "" {
		p.file = filepath.Join(d.cfg.DataDir, "prewarm")
		p.read()
	}
	ctx, p.cancel = context.WithCancel(ctx)
	go func() {
		defer close(p.done)
		p.run(ctx)
	}()
	return p
}

func (p *prewarmer) close() {
	if p != nil {
		p.cancel()
		<-p.done
	}
}

func (p *prewarmer) run(ctx context.Context) {
	tick := time.NewTicker(prewarmTick)
	defer tick.Stop()
	var looked time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		n, ok := p.device.manager.Generation()
		if !ok {
			continue
		}
		if n != p.generation { // there is nothing on it
			p.generation, p.came, p.tried, p.columns, p.bytes, p.took = n, time.Now(), time.Time{}, 0, 0, 0
			if p.due = nil; p.losses < prewarmLosses {
				p.due = slices.Clone(p.had)
			}
		}
		if len(p.due) > 0 && time.Since(p.tried) >= prewarmEvery {
			p.bring(ctx)
			p.tried = time.Now()
		}
		if time.Since(looked) >= prewarmEvery {
			p.look()
			looked = time.Now()
		}
	}
}

// bring brings what is due of the tables that are there.
func (p *prewarmer) bring(ctx context.Context) {
	tables := map[string]uint32{}
	for _, st := range p.d.store.Statuses() {
		if st.State == colstore.StateReady {
			tables[st.Name] = st.OID
		}
	}
	began := time.Now()
	before := p.columns
	var missing []warmColumn
	for _, c := range p.due {
		oid, ok := tables[c.Table]
		if !ok || ctx.Err() != nil {
			missing = append(missing, c)
			continue
		}
		bytes, err := p.prewarm(ctx, oid, c)
		if kind := device.KindOf(err); kind == device.FaultLost || kind == device.FaultUnavailable {
			// What it ended at is not due for the next one, which may not bear it either.
			p.losses++
			p.had = slices.DeleteFunc(p.had, func(o warmColumn) bool { return o == c })
			p.write()
			p.d.log.Warn("a device was lost while a column was brought to it", "table", c.Table, "column", c.Column, "error", err)
			return
		}
		switch {
		case err == nil:
			p.columns++
			p.bytes += bytes
		case errors.Is(err, engine.ErrNotCopied), ctx.Err() != nil:
			missing = append(missing, c)
		case errors.Is(err, gpu.ErrNoRoom): // there may be for a smaller one
		default:
			p.d.log.Warn("a column was not brought to the device ahead", "table", c.Table, "column", c.Column, "error", err)
		}
	}
	p.due = missing
	if p.took += time.Since(began); p.columns > before {
		p.d.log.Info("columns that devices had are there again", "columns", p.columns, "bytes", p.bytes, "took", p.took.Round(time.Millisecond), "missing", len(missing))
	}
	if time.Since(p.came) > prewarmWait {
		p.due = nil
	}
}

// prewarm brings a column. Nothing that is optional may end the process.
func (p *prewarmer) prewarm(ctx context.Context, oid uint32, c warmColumn) (bytes int64, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("internal error: %v", r)
		}
	}()
	return p.d.engine.Prewarm(ctx, oid, c.Column, c.Strings)
}

// look notes which columns devices have, most of their segments at least.
func (p *prewarmer) look() {
	now := slices.Clone(p.due)
	noted := map[warmColumn]bool{}
	for _, c := range now {
		noted[c] = true
	}
	type counts struct{ segments, there int }
	of := map[warmColumn]counts{}
	var order []warmColumn
	for _, size := range p.d.store.ColumnSizes() {
		if size.AttNum == 0 || len(size.IDs) == 0 {
			continue
		}
		c := warmColumn{Table: size.Table, Column: size.Column, Strings: size.Codec == "dictionary"}
		_, there := p.device.manager.Resident(size.IDs)
		n, again := of[c] // its segments have several codecs
		if !again {
			order = append(order, c)
		}
		of[c] = counts{n.segments + len(size.IDs), n.there + there}
	}
	for _, c := range order {
		if n := of[c]; 2*n.there > n.segments && !noted[c] {
			now = append(now, c)
		}
	}
	if n, ok := p.device.manager.Generation(); !ok || n != p.generation {
		return // nothing is there any more
	}
	p.had = now
	p.write()
}

func (p *prewarmer) read() {
	checkedfile.RemoveUnfinished(filepath.Dir(p.file))
	b, err := checkedfile.Read(p.file, prewarmMagic)
	if err == nil {
		err = json.Unmarshal(b, &p.had)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.d.log.Warn("the list of columns that devices had cannot be read: queries bring them", "file", p.file, "error", err)
		p.had = nil
	}
	p.written = slices.Clone(p.had)
}

// write brings the file up to had.
func (p *prewarmer) write() {
	if p.file == "" || slices.Equal(p.had, p.written) {
		return
	}
	b, err := json.Marshal(p.had)
	if err == nil {
		err = checkedfile.Write(p.file, prewarmMagic, b)
	}
	if err == nil {
		p.written, p.unwell = slices.Clone(p.had), false
	} else if !p.unwell {
		p.unwell = true
		p.d.log.Warn("the list of columns that devices had cannot be written", "file", p.file, "error", err)
	}
}
