package olap

import (
	"pgaccel/gpu"
)

// Report says who computed a query, for Options.Report.
type Report struct {
	// Device names what computed the groups, or found the rows, as gpu.Stats does; empty
	// where the processor did all of it.
	Device string
	// Fallback says why a device that was offered did not: one of few words, for metrics.
	// Empty where none was offered, or it computed.
	Fallback string
	Stats    gpu.Stats // of all of the device's queries
}
