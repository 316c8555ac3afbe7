package server

import (
	"context"
	"encoding/json"
	"errors"
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

	attached int           // gpu.Manager.Attached when due was filled last
	had      []warmColumn  // that devices had when it was looked last, or are due
	due      []warmColumn  // to be brought
	came     time.Time     // when that was
	brought  int           // since then
	bytes    int64         // of these
	took     time.Duration // likewise
}

// warmColumn names what devices have of a column: its values, or the strings of its dictionary.
type warmColumn struct {
	Table   string `json:"table"`
	Column  string `json:"column"`
	Strings bool   `json:"strings,omitempty"`
}

const (
	prewarmMagic = "pgaccel prewarm 1\n"
	// prewarmEvery is how often it is looked which columns devices have, prewarmTick whether one has come, or a table
	// that had been missing.
	prewarmEvery = 5 * time.Second
	prewarmTick  = 200 * time.Millisecond
	// prewarmWait is how long tables are waited for: they may be copied anew, or gone.
	prewarmWait = time.Hour
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

// close notes what devices have now.
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
			p.look()
			return
		case <-tick.C:
		}
		n, ok := p.device.manager.Attached()
		if !ok {
			continue
		}
		if n != p.attached { // there is nothing on it
			p.attached, p.due = n, slices.Clone(p.had)
			p.came, p.brought, p.bytes, p.took = time.Now(), 0, 0, 0
		}
		if len(p.due) > 0 {
			p.bring(ctx)
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
	before := p.brought
	var missing []warmColumn
	for i, c := range p.due {
		if ctx.Err() != nil {
			missing = append(missing, p.due[i:]...)
			break
		}
		oid, ok := tables[c.Table]
		if !ok {
			missing = append(missing, c)
			continue
		}
		bytes, err := p.d.engine.Prewarm(ctx, oid, c.Column, c.Strings)
		if kind := device.KindOf(err); kind == device.FaultLost || kind == device.FaultUnavailable {
			return // all of it is due for the next one
		}
		switch {
		case err == nil:
			p.brought++
			p.bytes += bytes
		case errors.Is(err, engine.ErrNotCopied), ctx.Err() != nil:
			missing = append(missing, c)
		case errors.Is(err, gpu.ErrNoRoom): // there may be for a smaller one
		default:
			p.d.log.Warn("a column was not brought to the device ahead", "table", c.Table, "column", c.Column, "error", err)
		}
	}
	p.due = missing
	if p.took += time.Since(began); p.brought > before {
		p.d.log.Info("columns that devices had are there again", "columns", p.brought, "bytes", p.bytes, "took", p.took.Round(time.Millisecond), "missing", len(missing))
	}
	if time.Since(p.came) > prewarmWait {
		p.due = nil
	}
}

// look notes which columns devices have.
func (p *prewarmer) look() {
	if n, ok := p.device.manager.Attached(); !ok || n != p.attached {
		return // what they had is still to be brought
	}
	now := slices.Clone(p.due)
	for _, size := range p.d.store.ColumnSizes() {
		c := warmColumn{Table: size.Table, Column: size.Column, Strings: size.Codec == "dictionary"}
		if size.AttNum != 0 && !slices.Contains(now, c) && p.device.resident(size.IDs) > 0 {
			now = append(now, c)
		}
	}
	if !slices.Equal(now, p.had) {
		p.had = now
		p.write()
	}
}

func (p *prewarmer) read() {
	b, err := checkedfile.Read(p.file, prewarmMagic)
	if err == nil {
		err = json.Unmarshal(b, &p.had)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.d.log.Warn("the list of columns that devices had cannot be read: queries bring them", "file", p.file, "error", err)
		p.had = nil
	}
}

func (p *prewarmer) write() {
	if p.file == "" {
		return
	}
	b, err := json.Marshal(p.had)
	if err == nil {
		err = checkedfile.Write(p.file, prewarmMagic, b)
	}
	if err != nil {
		p.d.log.Warn("the list of columns that devices had cannot be written", "file", p.file, "error", err)
	}
}
