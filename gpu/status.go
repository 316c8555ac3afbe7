package gpu

import (
	"fmt"
	"maps"

	"pgaccel/gpu/device"
)

// DeviceStatus is what a device has and has done, for metrics and pgaccel.device. Counters
// go on when a device comes back.
type DeviceStatus struct {
	Name  string // "cuda:0", "emu:0"; "none (reason)" where there is no device
	Kind  device.Kind
	Model string // "NVIDIA H200"
	Arch  string

	Memory  int64            // bytes of the device
	Budget  int64            // bytes that may be used
	Used    int64            // bytes in use, of queries that run besides
	Held    int64            // bytes taken from the device to be used
	Kept    map[string]int64 // bytes kept between queries: column, live rows, bits, table, lookup, index, image, buffers
	Running int              // queries that run
	Waiting int              // queries that wait for a stream, for buffers, or for a scan of their table to end

	Queries       uint64 // that ended well
	Shared        uint64 // that got the result of an equal one (Options.Share); of the first device
	Rides         uint64 // that scanned together with others (likewise) what does not fit
	Grown         uint64 // that ran again because there were more groups than expected; likewise
	Busy          uint64 // that were left to the CPU because the device was busy
	Compiling     uint64 // likewise, because their kernel was being compiled
	Refused       uint64 // likewise, because their kernel failed before
	Faults        map[device.FaultKind]uint64
	Compiles      uint64
	CompileFaults uint64
	// CompileSeconds is the time until kernels were there, of each: compiled, or loaded where an earlier process has done so.
	CompileSeconds float64
	CacheHits      uint64 // queries that found their kernel compiled
	ImageHits      uint64 // columns of queries that were found whole
	ImageMisses    uint64
	Evictions      uint64
	Streamed       uint64 // queries whose columns did not fit
	BytesCopied    uint64 // to the device
	KernelSeconds  float64
}

// counters are kept for a device while it comes and goes; under Manager.mu.
type counters struct {
	queries, busy, compiling, refused, streamed uint64
	shared, rides, grown                        uint64
	imageHits, imageMisses                      uint64
	bytesCopied                                 uint64
	kernelMillis                                float64
	faults                                      map[device.FaultKind]uint64
	// Of devices that are gone.
	compiles, compileFaults, cacheHits, evictions uint64
	compileSeconds                                float64
}

// Status tells of all devices; where there is none, one with its name says why.
func (m *Manager) Status() []DeviceStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.set == nil {
		s := DeviceStatus{Name: fmt.Sprintf("none (%s)", m.reason)}
		if len(m.counters) > 0 {
			m.counters[0].status(&s)
		}
		return []DeviceStatus{s}
	}
	all := make([]DeviceStatus, len(m.set.devs))
	for i, d := range m.set.devs {
		s := &all[i]
		s.Name, s.Kind, s.Model, s.Arch, s.Memory = d.name, d.info.Kind, d.info.Name, d.info.Arch, d.info.Memory
		m.counters[i].status(s)
		d.addTo(s)
	}
	return all
}

func (c *counters) status(s *DeviceStatus) {
	s.Shared, s.Rides, s.Grown = c.shared, c.rides, c.grown
	s.Queries, s.Busy, s.Compiling, s.Refused, s.Streamed = c.queries, c.busy, c.compiling, c.refused, c.streamed
	s.ImageHits, s.ImageMisses = c.imageHits, c.imageMisses
	s.BytesCopied, s.KernelSeconds = c.bytesCopied, c.kernelMillis/1000
	s.Faults = maps.Clone(c.faults)
	s.Compiles, s.CompileFaults, s.CacheHits, s.Evictions = c.compiles, c.compileFaults, c.cacheHits, c.evictions
	s.CompileSeconds = c.compileSeconds
}

// addTo adds what a device that is there knows itself.
func (d *dev) addTo(s *DeviceStatus) {
	d.mu.Lock()
	a := d.cache.arena
	s.Budget, s.Used, s.Held = d.budget, a.used, a.held
	s.Kept = map[string]int64{}
	for kind, n := range d.cache.bytes {
		s.Kept[itemNames[kind]] += n
	}
	s.Evictions += d.cache.evicted
	d.mu.Unlock()
	d.queue.mu.Lock()
	s.Waiting, s.Running = d.queue.length, d.queue.streams-len(d.queue.free)
	d.queue.mu.Unlock()
	d.setQueue.mu.Lock()
	s.Waiting += d.setQueue.length
	d.setQueue.mu.Unlock()
	riding, waiting := d.convoys.count()
	s.Waiting += waiting
	s.Running += riding
	d.modules.mu.Lock()
	s.Compiles += d.modules.compiles
	s.CompileFaults += d.modules.failures
	s.CompileSeconds += d.modules.took.Seconds()
	s.CacheHits += d.modules.hits
	d.modules.mu.Unlock()
}

// Resident returns how many bytes of device memory columns have, by SegmentColumn.ID, and how many of them have some,
// all devices together.
func (m *Manager) Resident(columnIDs []uint64) (bytes int64, columns int) {
	set := m.current()
	if set == nil {
		return 0, 0
	}
	for _, d := range set.devs {
		d.mu.Lock()
		for _, id := range columnIDs {
			if n := d.cache.columns[id]; n > 0 {
				bytes += n
				columns++
			}
		}
		d.mu.Unlock()
	}
	return bytes, columns
}
