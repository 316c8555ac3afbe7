package kernels

import "embed"

//go:embed *.cuh
var sources embed.FS

// Headers returns the building blocks by name, as device.Source.Headers wants them.
func Headers() map[string]string { return Read(sources) }

// Read returns the embedded files of a folder by name.
func Read(from embed.FS) map[string]string {
	files, err := from.ReadDir(".")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	headers := make(map[string]string, len(files))
	for _, f := range files {
		text, err := from.ReadFile(f.Name())
		if err != nil {
			panic("BUG: " + err.Error())
		}
		headers[f.Name()] = string(text)
	}
	return headers
}
