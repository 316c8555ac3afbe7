package kernels

import "embed"

//go:embed *.cuh
var sources embed.FS

// Headers returns the building blocks by name, as device.Source.Headers wants them.
func Headers() map[string]string {
	files, err := sources.ReadDir(".")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	headers := make(map[string]string, len(files))
	for _, f := range files {
		headers[f.Name()] = mustRead(f.Name())
	}
	return headers
}

// mustRead returns an embedded file.
func mustRead(name string) string {
	text, err := sources.ReadFile(name)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return string(text)
}
