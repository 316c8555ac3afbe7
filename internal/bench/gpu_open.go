package bench

import (
	"context"
	"log/slog"
	"os"
	"strings"

	"pgaccel/colstore"
	"pgaccel/gpu"
	"pgaccel/gpu/worker"
	"pgaccel/internal/server"
)

// open starts a worker.
func (r *gpuRun) open(ctx context.Context) error {
	kind, ordinals, err := server.WorkerOf(r.Device)
	if err != nil {
		return err
	}
	r.ordinals = ordinals
	r.log = slog.New(slog.NewTextHandler(r.Progress, &slog.HandlerOptions{Level: slog.LevelWarn}))
	c, err := worker.Start(ctx, worker.StartOptions{Path: r.DeviceWorker, Kind: kind, Log: r.log})
	if err != nil {
		return err
	}
	r.ex = c
	return nil
}

// close ends the worker, where there is one: all device memory is free again.
func (r *gpuRun) close() {
	if r.ex != nil {
		r.ex.Close()
		r.ex = nil
	}
}

// handOver gives up the device, and the data, for a pgaccel that has a worker of its own with all of the device's memory.
// It returns the device's kind.
func (r *gpuRun) handOver() (kind string) {
	r.close()
	r.dropData()
	kind, _, _ = strings.Cut(r.Device, ":")
	return kind
}

// dropData gives the tables back.
func (r *gpuRun) dropData() {
	if r.data != nil {
		r.data.close()
		r.data = nil
	}
}

// gpuManager is a manager over the run's worker and one store.
type gpuManager struct {
	*gpu.Manager
	file *os.File
}

// manager returns one whose devices hold nothing yet. memory is the budget of each, 0 for
// what gpu.Options makes of it; share is gpu.Options.Share.
func (r *gpuRun) manager(store *colstore.Store, memory int64, share bool) (*gpuManager, error) {
	f, offset, err := store.Memory().Share()
	if err != nil {
		return nil, err
	}
	m := &gpuManager{gpu.New(gpu.Options{Memory: memory, Devices: r.ordinals, File: f, Offset: offset, Share: share, Log: r.log}), f}
	if err := m.Attach(r.ex); err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

// close ends the use of the devices and gives back what they hold.
func (m *gpuManager) close() {
	m.Close()
	m.file.Close()
}
