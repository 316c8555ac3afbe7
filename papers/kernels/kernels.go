package kernels

import (
	"embed"
	"maps"

	blocks "pgaccel/kernels"
)

//go:embed *.cuh
var sources embed.FS

// Headers returns them and the building blocks by name, as device.Source.Headers wants them.
func Headers() map[string]string {
	headers := blocks.Headers()
	maps.Copy(headers, blocks.Read(sources))
	return headers
}
