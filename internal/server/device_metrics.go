package server

import (
	"maps"

	"pgaccel/gpu"
	"pgaccel/gpu/device"
)

var (
	deviceQueriesDesc   = databaseDesc("pgaccel_device_queries_total", "Accelerated executions by the device that ran them; cpu where none did.", "device")
	deviceFallbacksDesc = databaseDesc("pgaccel_device_fallbacks_total", "Executions that a device was offered and that the processor answered, by reason.", "reason")
	deviceUpDesc        = processDesc("pgaccel_device_up", "1 while there is a device that queries can run on, else 0.")
	deviceRestartsDesc  = processDesc("pgaccel_device_worker_restarts_total", "Processes with a device (--device-worker) that ended after they had answered.")
	deviceFaultsDesc    = processDesc("pgaccel_device_faults_total", "Failures of a device by kind.", "device", "kind")
	deviceBudgetDesc    = processDesc("pgaccel_device_memory_limit_bytes", "Bytes of a device's memory that may be used (--device-memory).", "device")
	deviceUsedDesc      = processDesc("pgaccel_device_memory_bytes", "Bytes of a device's memory in use.", "device")
	deviceKeptDesc      = processDesc("pgaccel_device_kept_bytes", "Bytes of a device's memory that are kept between queries, by what they hold.", "device", "content")
	deviceCopiedDesc    = processDesc("pgaccel_device_copied_bytes_total", "Bytes copied to a device.", "device")
	deviceReadDesc      = databaseDesc("pgaccel_device_read_bytes_total", "Bytes of columns, as encoded on devices, that queries have read there.")
	deviceKernelDesc    = processDesc("pgaccel_device_kernel_seconds_total", "Time that queries have computed on a device.", "device")
	deviceCompilesDesc  = processDesc("pgaccel_device_compiles_total", "Kernels compiled for a device, by result.", "device", "result")
	deviceCompilingDesc = processDesc("pgaccel_device_compile_seconds_total", "Time until kernels were there, of each: compiled, or loaded where they had been before.", "device")
	deviceEvictionsDesc = processDesc("pgaccel_device_evictions_total", "What was kept in a device's memory and gave way.", "device")
	deviceStreamedDesc  = processDesc("pgaccel_device_streamed_queries_total", "Queries whose columns did not fit into a device's memory and passed through it.", "device")
	deviceSharedDesc    = processDesc("pgaccel_device_shared_queries_total", "Queries that got the result of an equal one that was under way on a device.", "device")
	deviceRidesDesc     = processDesc("pgaccel_device_shared_scans_total", "Queries that scanned a table that does not fit a device's memory together with others.", "device")
	deviceGrownDesc     = processDesc("pgaccel_device_grown_queries_total", "Times that a query had more groups than expected, and was computed again with room for them.", "device")
	deviceBitmapsDesc   = databaseDesc("pgaccel_device_bitmap_queries_total", "Executions of which bitmap indexes said, on a device, which rows to look at.")
	deviceRunningDesc   = processDesc("pgaccel_device_queries", "Queries on a device now, by state.", "device", "state")
	deviceColumnDesc    = databaseDesc("pgaccel_column_device_bytes", "Bytes of device memory that a column has, with the strings of its dictionary.", "table", "column")
)

// collectDevices reads what a database's queries have counted.
func (c *databaseCollector) collectDevices(gauge, counter send) {
	queries := map[string]int64{"cpu": 0} // there from the start, so that a rate over it is defined
	if e := c.d.engine; e != nil {
		maps.Copy(queries, e.DeviceQueries())
		work := e.DeviceWork()
		counter(deviceBitmapsDesc, float64(work.Indexed))
		counter(deviceReadDesc, float64(work.Read))
		for reason, n := range e.DeviceFallbacks() {
			counter(deviceFallbacksDesc, float64(n), reason)
		}
	}
	for name, n := range queries {
		counter(deviceQueriesDesc, float64(n), name)
	}
	if c.device == nil {
		return
	}
	type column struct{ table, name string }
	bytes := map[column]int64{}
	for _, size := range c.d.store.ColumnSizes() {
		if n := c.device.resident(size.IDs); n > 0 {
			bytes[column{size.Table, size.Column}] += n
		}
	}
	for col, n := range bytes {
		gauge(deviceColumnDesc, float64(n), col.table, col.name)
	}
}

// collect reads what devices have counted.
func (s *deviceSide) collect(gauge, counter send) {
	up := 0.0
	if s.up() {
		up = 1
	}
	gauge(deviceUpDesc, up)
	if s == nil {
		return
	}
	counter(deviceRestartsDesc, float64(s.restarts()))
	for _, d := range s.status() {
		if d.Kind == "" {
			if d.Name = s.lastName(); d.Name == "none" { // why it is away may change, and belongs into no label
				continue // there has been none
			}
		}
		collectDevice(&d, gauge, counter)
	}
}

// collectDevice sends one device's.
func collectDevice(d *gpu.DeviceStatus, gauge, counter send) {
	name := d.Name
	for kind := device.FaultOther; kind <= device.FaultUnavailable; kind++ {
		counter(deviceFaultsDesc, float64(d.Faults[kind]), name, kind.String())
	}
	gauge(deviceBudgetDesc, float64(d.Budget), name)
	gauge(deviceUsedDesc, float64(d.Used), name)
	for content, n := range d.Kept {
		gauge(deviceKeptDesc, float64(n), name, content)
	}
	counter(deviceCopiedDesc, float64(d.BytesCopied), name)
	counter(deviceKernelDesc, d.KernelSeconds, name)
	counter(deviceCompilesDesc, float64(d.Compiles-d.CompileFaults), name, "compiled")
	counter(deviceCompilesDesc, float64(d.CompileFaults), name, "failed")
	counter(deviceCompilingDesc, d.CompileSeconds, name)
	counter(deviceEvictionsDesc, float64(d.Evictions), name)
	counter(deviceStreamedDesc, float64(d.Streamed), name)
	counter(deviceSharedDesc, float64(d.Shared), name)
	counter(deviceRidesDesc, float64(d.Rides), name)
	counter(deviceGrownDesc, float64(d.Grown), name)
	gauge(deviceRunningDesc, float64(d.Running), name, "running")
	gauge(deviceRunningDesc, float64(d.Waiting), name, "waiting")
}
