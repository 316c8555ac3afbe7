package engine

import (
	"context"
	"errors"
	"time"

	"pgaccel/colstore"
	"pgaccel/gpu"
	"pgaccel/olap"
	"pgaccel/plan"
	"pgaccel/vector"
)

// How long a shape takes on a device shows once its kernels are compiled and its columns are there. An
// execution that the processor answers because they are not is computed on the device after that, for
// nobody: by the next execution of the shape both sides' times are known, if it comes no sooner. What
// that takes is mostly the device's time, and little is done at once.

const (
	// warmUps is how often a shape is computed on the device: the first time brings the columns.
	warmUps = 2
	// warmUpsAtOnce bounds the shapes that are warmed up.
	warmUpsAtOnce = 2
	// warmUpMax bounds a warm-up, compiling included. Versions of tables are held as long as it computes.
	warmUpMax = 30 * time.Second
	// preparesMost bounds the statements that wait for what Prepared does.
	preparesMost = 64
)

// begin reports whether nobody warms up the shape, and the device has not been timed.
func (c *deviceChoice) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.warming || c.timings[onDevice].n >= warmUps {
		return false
	}
	c.warming = true
	return true
}

// timed reports whether the device's time is known.
func (c *deviceChoice) timed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.timings[onDevice].n >= warmUps
}

func (c *deviceChoice) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.warming = false
}

// warmUp times an execution on the device, on a goroutine of its own.
func (e *Engine) warmUp(d *decision, bound *plan.Star, indexes olap.IndexUse) {
	if !d.shape.choice.begin() {
		return
	}
	if e.devices.warming.Add(1) > warmUpsAtOnce {
		e.devices.warming.Add(-1)
		d.shape.choice.end()
		return
	}
	go func() {
		defer e.devices.warming.Add(-1)
		defer d.shape.choice.end()
		ctx, cancel := context.WithTimeout(context.Background(), warmUpMax)
		defer cancel()
		for n := 0; n <= warmUps && !d.shape.choice.timed() && e.warmUpOnce(ctx, d, bound, indexes); n++ { // the first one waits for kernels
		}
	}()
}

// warmUpOnce computes the query on the newest versions; false where the device did not.
func (e *Engine) warmUpOnce(ctx context.Context, d *decision, bound *plan.Star, indexes olap.IndexUse) bool {
	opt := e.execution()
	var report olap.Report
	opt.Device, opt.Indexes, opt.Report = gpu.Blocking(e.opt.Device), indexes, &report
	start := time.Now()
	err := e.computeAndDrop(ctx, d, bound, opt)
	took := time.Since(start)
	e.devices.add(report.Stats)
	if ctx.Err() != nil || report.Device == "" && report.Stats.Kernel == 0 {
		return false
	}
	worked := err == nil && report.Device != ""
	if !worked || report.Stats.Compile == 0 {
		d.shape.choice.add(onDevice, took, report.Stats.BytesRead, &e.devices.processor)
	}
	return worked
}

// computeAndDrop computes the query on the newest versions, and drops the result.
func (e *Engine) computeAndDrop(ctx context.Context, d *decision, bound *plan.Star, opt olap.Options) error {
	in, f := e.view(d.deps, colstore.Everything)
	if f != nil {
		return f
	}
	defer releaseAll(in)
	memory := &reservation{of: &e.memory}
	defer memory.release()
	if opt.Rank != nil {
		opt.Rank = d.rank
	}
	opt.Reserve, opt.Ties = memory.grow, true
	batch, err := func() (batch *vector.Batch, err error) {
		defer recovered(&batch, &err)
		return olap.Execute(ctx, bound, in, opt)
	}()
	batch.Release()
	var forwarded *plan.Forward
	if err != nil && err != olap.ErrPrepared && !errors.As(err, &forwarded) && ctx.Err() == nil {
		e.log.Warn("a statement was computed on a device for its time, and failed", "error", err, "query", d.shape.text)
	}
	return err
}

// Prepared implements Decision: kernels are compiled, once a shape. Which they are is known where no values are
// missing, of parameters or of the server; what depends on a time zone has the same in any. No right has been shown yet:
// nothing is copied to a device or computed, compilers work behind what executions wait for, and no client sees what for.
func (d *decision) Prepared() {
	e := d.statement.engine
	if e.opt.Device == nil || d.forward != nil || d.explain != nil || len(d.deps.Params)+len(d.deps.ServerConsts) > 0 {
		return
	}
	if _, ok := e.opt.Device.Limits(); !ok || !d.shape.choice.prepare() {
		return
	}
	zones, f := e.zonesOf(ended, d.deps, false, "")
	if f != nil {
		return
	}
	bound, f := d.bind(nil, nil, plan.Rules{Zones: zones, Cases: e.casesOf(d.deps)})
	if f != nil {
		return
	}
	if e.devices.prepares.Add(1) > preparesMost {
		e.devices.prepares.Add(-1)
		return
	}
	go func() {
		defer e.devices.prepares.Add(-1)
		e.devices.preparing.Lock()
		defer e.devices.preparing.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), warmUpMax)
		defer cancel()
		opt := e.execution()
		opt.Device, opt.Prepare = e.opt.Device, true
		_ = e.computeAndDrop(ctx, d, bound, opt) // ErrPrepared, or what an execution will meet
	}()
}

// prepare reports, once, that the shape has not been computed.
func (c *deviceChoice) prepare() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.prepared || c.timings[onDevice].n > 0 {
		return false
	}
	c.prepared = true
	return true
}
