package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"pgaccel/colstore"
	"pgaccel/gpu"
	"pgaccel/gpu/device"
	"pgaccel/gpu/worker"
)

// deviceSide is what pgaccel has of devices: a worker process that has them, kept running,
// and a manager that uses them while it runs. The nil one is of --device cpu.
type deviceSide struct {
	choice     deviceChoice
	kind       device.Kind
	log        *slog.Logger
	manager    *gpu.Manager
	supervisor *worker.Supervisor // nil where there is no worker to run
	reason     string             // then: why
	file       *os.File           // column memory; nil where it cannot be shared

	mu    sync.Mutex
	watch chan struct{} // closed when the last client's end has been told
	name  string        // of the first device that there was last, for metrics
}

// cacheVariable tells the worker where to keep compiled kernels; without it that is the user's cache directory.
const cacheVariable = "PGACCEL_GPU_CACHE_DIR"

// startDevice begins to look for devices, and returns before it has found any: until then,
// and where there are none, the processor answers. Only what cannot be meant is an error.
func startDevice(ctx context.Context, cfg *Config, memory *colstore.Memory) (*deviceSide, error) {
	choice, err := parseDevice(cfg.Device)
	if err != nil || choice.kind == "cpu" {
		return nil, err
	}
	if cfg.DeviceMemory < 0 {
		return nil, fmt.Errorf("--device-memory %d: that is no size", cfg.DeviceMemory)
	}
	s := &deviceSide{choice: choice, log: cfg.Logger}
	s.kind = choice.worker()
	path := cfg.DeviceWorker
	if path == "" {
		path, err = worker.Find(s.kind)
	} else if err := executable(path); err != nil {
		return nil, fmt.Errorf("--device-worker %s: %w", path, err)
	}
	o := gpu.Options{Memory: cfg.DeviceMemory, Devices: choice.ordinals, Share: true, Log: cfg.Logger}
	var env []string
	if cfg.DataDir != "" {
		// What is compiled is there after a restart, in a container, too, whose home folder is not.
		kernels := filepath.Join(cfg.DataDir, "kernels")
		o.Kernels = filepath.Join(kernels, "list")
		if _, chosen := os.LookupEnv(cacheVariable); !chosen {
			env = append(env, cacheVariable+"="+kernels)
		}
	}
	if err == nil {
		if s.file, o.Offset, err = memory.Share(); err != nil {
			s.log.Warn("column memory cannot be shared with a device's process: columns are sent to it", "error", err)
		}
		o.File, err = s.file, nil
	}
	s.manager = gpu.New(o)
	if path == "" {
		s.none(reasonOf(err))
		return s, nil
	}
	s.supervisor = worker.Supervise(ctx, worker.SupervisorOptions{
		StartOptions: worker.StartOptions{Path: path, Kind: s.kind, Env: env, Log: cfg.Logger},
		Started:      s.attach,
	})
	return s, nil
}

// executable is an error unless path is a program.
func executable(path string) error {
	info, err := os.Stat(path)
	var of *os.PathError
	switch {
	case errors.As(err, &of):
		return of.Err
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return errors.New("it is not a program")
	}
	return nil
}

// reasonOf is an error without the words that "device: none" says anyway.
func reasonOf(err error) string {
	var fault *device.Fault
	if errors.As(err, &fault) && fault.Call == "" {
		return fault.Text
	}
	return err.Error()
}

// none notes that there will be no device as long as this process lives.
func (s *deviceSide) none(reason string) {
	s.reason = reason
	s.manager.Detach(reason)
	if s.choice.kind == "auto" {
		s.log.Info("device: none", "reason", reason)
		return
	}
	s.log.Warn("device: none. Queries are computed by the processor, although a device was asked for", "device", s.choice.kind, "reason", reason)
}

// attach has the manager use a new client's devices until it ends.
func (s *deviceSide) attach(c *worker.Client) {
	s.mu.Lock()
	if s.watch != nil {
		<-s.watch // or it would detach this one
	}
	s.watch = make(chan struct{})
	watch := s.watch
	s.mu.Unlock()
	devices := c.Devices()
	for _, n := range s.choice.ordinals {
		if n >= len(devices) {
			s.log.Warn("there is no such device", "device", fmt.Sprintf("%s:%d", s.kind, n), "devices", len(devices))
		}
	}
	err := s.manager.Attach(c)
	if err != nil {
		s.log.Warn("device: none", "reason", reasonOf(err))
	} else {
		all := s.manager.Status()
		s.mu.Lock()
		s.name = all[0].Name
		s.mu.Unlock()
		for _, d := range all {
			s.log.Info("device", "name", d.Name, "model", d.Model, "memory", d.Memory, "budget", d.Budget)
		}
	}
	go func() {
		defer close(watch)
		<-c.Done()
		if err == nil {
			s.manager.Detach(reasonOf(c.Err()))
		}
	}()
}

// close ends the worker. No query may be under way.
func (s *deviceSide) close() {
	if s == nil {
		return
	}
	s.manager.Close()
	if s.supervisor != nil {
		s.supervisor.Close()
	}
	if s.file != nil {
		s.file.Close()
	}
}

// up reports whether there is a device.
func (s *deviceSide) up() bool {
	if s == nil {
		return false
	}
	_, ok := s.manager.Limits()
	return ok
}

// restarts is how many workers have ended.
func (s *deviceSide) restarts() int {
	if s == nil || s.supervisor == nil {
		return 0
	}
	return s.supervisor.State().Restarts
}

// status is the manager's; where there is no device one entry says why.
func (s *deviceSide) status() []gpu.DeviceStatus {
	all := s.manager.Status()
	if s.supervisor != nil && !s.up() {
		if state := s.supervisor.State(); state.Phase != worker.Running {
			all[0].Name = state.String()
			if state.Phase == worker.Starting {
				all[0].Name = "none (starting)"
			}
		}
	}
	return all
}

// lastName is the name of the first device that there was last, "none" before.
func (s *deviceSide) lastName() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.name == "" {
		return "none"
	}
	return s.name
}

// resident returns the bytes of device memory that columns have.
func (s *deviceSide) resident(ids []uint64) int64 {
	bytes, _ := s.manager.Resident(ids)
	return bytes
}

// describe is for people: "device cuda:0 (NVIDIA H200)", or "device: none (reason)".
func (s *deviceSide) describe() string {
	if s == nil {
		return "device: none (--device cpu)"
	}
	text := ""
	for _, d := range s.status() {
		if text != "" {
			text += ", "
		}
		text += d.Name
		if d.Model != "" {
			text += fmt.Sprintf(" (%s, %d of %d MiB used, %d queries)", d.Model, d.Used>>20, d.Budget>>20, d.Queries)
		}
	}
	return "device: " + text
}
