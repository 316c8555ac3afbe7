package server

import (
	"maps"

	"github.com/prometheus/client_golang/prometheus"

	"pgaccel/gpu"
	"pgaccel/gpu/device"
)

var (
	deviceQueriesDesc   = desc("pgaccel_device_queries_total", "Accelerated executions by the device that ran them; cpu where none did.", "device")
	deviceFallbacksDesc = desc("pgaccel_device_fallbacks_total", "Executions that a device was offered and that the processor answered, by reason.", "reason")
	deviceUpDesc        = desc("pgaccel_device_up", "1 while there is a device that queries can run on, else 0.")
	deviceRestartsDesc  = desc("pgaccel_device_worker_restarts_total", "Processes with a device (--device-worker) that ended after they had answered.")
	deviceFaultsDesc    = desc("pgaccel_device_faults_total", "Failures of a device by kind.", "device", "kind")
	deviceBudgetDesc    = desc("pgaccel_device_memory_limit_bytes", "Bytes of a device's memory that may be used (--device-memory).", "device")
	deviceUsedDesc      = desc("pgaccel_device_memory_bytes", "Bytes of a device's memory in use.", "device")
	deviceKeptDesc      = desc("pgaccel_device_kept_bytes", "Bytes of a device's memory that are kept between queries, by what they hold.", "device", "content")
	deviceCopiedDesc    = desc("pgaccel_device_copied_bytes_total", "Bytes copied to a device.", "device")
	deviceKernelDesc    = desc("pgaccel_device_kernel_seconds_total", "Time that queries have computed on a device.", "device")
	deviceCompilesDesc  = desc("pgaccel_device_compiles_total", "Kernels compiled for a device, by result.", "device", "result")
	deviceCompilingDesc = desc("pgaccel_device_compile_seconds_total", "Time until kernels were there, of each: compiled, or loaded where they had been before.", "device")
	deviceEvictionsDesc = desc("pgaccel_device_evictions_total", "What was kept in a device's memory and gave way.", "device")
	deviceStreamedDesc  = desc("pgaccel_device_streamed_queries_total", "Queries whose columns did not fit into a device's memory and passed through it.", "device")
	deviceSharedDesc    = desc("pgaccel_device_shared_queries_total", "Queries that got the result of an equal one that was under way on a device.", "device")
	deviceRidesDesc     = desc("pgaccel_device_shared_scans_total", "Queries that scanned a table that does not fit a device's memory together with others.", "device")
	deviceGrownDesc     = desc("pgaccel_device_grown_queries_total", "Times that a query had more groups than expected, and was computed again with room for them.", "device")
	deviceBitmapsDesc   = desc("pgaccel_device_bitmap_queries_total", "Executions of which bitmap indexes said, on a device, which rows to look at.")
	deviceRunningDesc   = desc("pgaccel_device_queries", "Queries on a device now, by state.", "device", "state")
	deviceColumnDesc    = desc("pgaccel_column_device_bytes", "Bytes of device memory that a column's segments have.", "table", "column")
)

// collectDevices reads what queries and devices have counted.
func (c *storeCollector) collectDevices(ch chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, t prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, t, v, labels...)
	}
	const counter, gauge = prometheus.CounterValue, prometheus.GaugeValue
	queries := map[string]int64{"cpu": 0} // there from the start, so that a rate over it is defined
	if e := c.s.engine; e != nil {
		maps.Copy(queries, e.DeviceQueries())
		send(deviceBitmapsDesc, counter, float64(e.DeviceWork().Indexed))
		for reason, n := range e.DeviceFallbacks() {
			send(deviceFallbacksDesc, counter, float64(n), reason)
		}
	}
	for name, n := range queries {
		send(deviceQueriesDesc, counter, float64(n), name)
	}
	up := 0.0
	if c.s.device.up() {
		up = 1
	}
	send(deviceUpDesc, gauge, up)
	if c.s.device == nil {
		return
	}
	send(deviceRestartsDesc, counter, float64(c.s.device.restarts()))
	for _, d := range c.s.device.status() {
		if d.Kind == "" {
			if d.Name = c.s.device.lastName(); d.Name == "none" { // why it is away may change, and belongs into no label
				continue // there has been none
			}
		}
		collectDevice(&d, send)
	}
	type column struct{ table, name string }
	bytes := map[column]int64{}
	for _, size := range c.s.store.ColumnSizes() {
		if n := c.s.device.resident(size.IDs); n > 0 {
			bytes[column{size.Table, size.Column}] += n
		}
	}
	for col, n := range bytes {
		send(deviceColumnDesc, gauge, float64(n), col.table, col.name)
	}
}

// collectDevice sends one device's.
func collectDevice(d *gpu.DeviceStatus, send func(d *prometheus.Desc, t prometheus.ValueType, v float64, labels ...string)) {
	const counter, gauge = prometheus.CounterValue, prometheus.GaugeValue
	name := d.Name
	for kind := device.FaultOther; kind <= device.FaultUnavailable; kind++ {
		send(deviceFaultsDesc, counter, float64(d.Faults[kind]), name, kind.String())
	}
	send(deviceBudgetDesc, gauge, float64(d.Budget), name)
	send(deviceUsedDesc, gauge, float64(d.Used), name)
	for content, n := range d.Kept {
		send(deviceKeptDesc, gauge, float64(n), name, content)
	}
	send(deviceCopiedDesc, counter, float64(d.BytesCopied), name)
	send(deviceKernelDesc, counter, d.KernelSeconds, name)
	send(deviceCompilesDesc, counter, float64(d.Compiles-d.CompileFaults), name, "compiled")
	send(deviceCompilesDesc, counter, float64(d.CompileFaults), name, "failed")
	send(deviceCompilingDesc, counter, d.CompileSeconds, name)
	send(deviceEvictionsDesc, counter, float64(d.Evictions), name)
	send(deviceStreamedDesc, counter, float64(d.Streamed), name)
	send(deviceSharedDesc, counter, float64(d.Shared), name)
	send(deviceRidesDesc, counter, float64(d.Rides), name)
	send(deviceGrownDesc, counter, float64(d.Grown), name)
	send(deviceRunningDesc, gauge, float64(d.Running), name, "running")
	send(deviceRunningDesc, gauge, float64(d.Waiting), name, "waiting")
}
