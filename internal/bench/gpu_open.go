package bench

import (
	"context"
	"errors"
	"log/slog"

	"pgaccel/colstore"
	"pgaccel/gpu"
	"pgaccel/gpu/worker"
	"pgaccel/internal/server"
)

// open starts the worker. The function that it returns ends it.
func (r *gpuRun) open(ctx context.Context) (func(), error) {
	kind, env, err := server.WorkerOf(r.Device)
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(r.Progress, &slog.HandlerOptions{Level: slog.LevelWarn}))
	c, err := worker.Start(ctx, worker.StartOptions{Path: r.DeviceWorker, Kind: kind, Env: env, Log: log})
	if err != nil {
		return nil, err
	}
	r.ex = c
	return func() { c.Close() }, nil
}

// gpuManager is a manager over the run's worker and one store.
type gpuManager struct{}

func (r *gpuRun) manager(store *colstore.Store, memory int64) (*gpuManager, error) {
	return nil, errors.New("not yet")
}

func (m *gpuManager) runner() gpu.Runner { return nil }

// forget drops what is kept of dimensions' filters.
func (m *gpuManager) forget() {}

func (m *gpuManager) close() {}
