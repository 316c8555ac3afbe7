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
		for n := 0; n < warmUps && e.warmUpOnce(ctx, d, bound, indexes); n++ {
		}
	}()
}

// warmUpOnce computes the query on the newest versions; false where the device did not.
func (e *Engine) warmUpOnce(ctx context.Context, d *decision, bound *plan.Star, indexes olap.IndexUse) bool {
	in, f := e.view(d.deps, colstore.Everything)
	if f != nil {
		return false
	}
	defer releaseAll(in)
	memory := &reservation{of: &e.memory}
	defer memory.release()
	opt := e.execution()
	if opt.Rank != nil {
		opt.Rank = d.rank
	}
	var report olap.Report
	opt.Reserve, opt.Device, opt.Indexes, opt.Report, opt.Ties = memory.grow, gpu.Patient(e.opt.Device), indexes, &report, true
	start := time.Now()
	batch, err := func() (batch *vector.Batch, err error) {
		defer recovered(&batch, &err)
		return olap.Execute(ctx, bound, in, opt)
	}()
	took := time.Since(start)
	batch.Release()
	e.devices.add(report.Stats)
	var forwarded *plan.Forward
	if err != nil && !errors.As(err, &forwarded) && ctx.Err() == nil {
		e.log.Warn("a statement was computed on a device for its time, and failed", "error", err, "query", d.shape.text)
	}
	if ctx.Err() != nil || report.Device == "" && report.Stats.Kernel == 0 {
		return false
	}
	d.shape.choice.add(onDevice, took)
	return err == nil && report.Device != ""
}
