package gpu

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"time"

	"pgaccel/gpu/device"
	"pgaccel/gpu/program"
	"pgaccel/internal/checkedfile"
)

// The kernels that were used last are in a file (Options.Kernels), so that those of the last process are compiled for a
// device before queries ask: package gpu's comment has its form. It holds what package program has made of shapes, which
// no value of a query or of a row is in.

const (
	kernelListMagic = "pgaccel kernels 1\n"
	// kernelsKept is how many kernels, the latest, are listed, and compiled for a device when it comes.
	kernelsKept = 256
	// kernelsEvery is how often the list is written, where it has changed.
	kernelsEvery = 10 * time.Second
)

// kernelList is the file's content.
type kernelList struct {
	// Headers is program.HeadersVersion: sources of others would not be asked for.
	Headers string         `json:"headers"`
	Kernels []listedKernel `json:"kernels"` // the one used last comes first
}

type listedKernel struct {
	Name string `json:"name"`
	Code string `json:"code"`
}

// readKernels returns the sources that a list has. What is damaged is a warning; of another version, nothing.
func (m *Manager) readKernels() []*device.Source {
	b, err := checkedfile.Read(m.opt.Kernels, kernelListMagic)
	var list kernelList
	if err == nil {
		err = json.Unmarshal(b, &list)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, checkedfile.ErrMagic), err == nil && list.Headers != program.HeadersVersion():
		m.opt.Log.Info("the list of kernels is of another version: they are compiled when queries need them", "file", m.opt.Kernels)
		return nil
	case err != nil:
		m.opt.Log.Warn("the list of kernels cannot be read: they are compiled when queries need them", "file", m.opt.Kernels, "error", err)
		return nil
	}
	var sources []*device.Source
	for _, k := range list.Kernels[:min(len(list.Kernels), kernelsKept)] {
		s := program.ScanSource(k.Name, k.Code)
		sources = append(sources, &s)
	}
	return sources
}

// kernels returns the sources of the kernels that were used last, then those of the list, without what does not compile.
func (m *Manager) kernels() (sources []*device.Source) {
	named := map[string]bool{}
	s := m.current()
	for _, k := range append(m.shapes.latest(kernelsKept), m.listed...) {
		if len(sources) == kernelsKept || named[k.Name] || s != nil && s.devs[0].modules.refused(k.Name) {
			continue
		}
		named[k.Name] = true
		sources = append(sources, k)
	}
	return sources
}

// keepKernels writes the list until the manager is closed.
func (m *Manager) keepKernels() {
	defer close(m.listKept)
	tick := time.NewTicker(kernelsEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			m.writeKernels(false)
		case <-m.closing:
			m.writeKernels(true)
			return
		}
	}
}

// writeKernels writes the list where other kernels are among it than were; with order, or in another order.
func (m *Manager) writeKernels(order bool) {
	list, names := kernelList{Headers: program.HeadersVersion()}, map[string]bool{}
	for _, k := range m.kernels() {
		list.Kernels = append(list.Kernels, listedKernel{k.Name, k.Code})
		names[k.Name] = true
	}
	if len(names) == 0 || !order && maps.Equal(names, m.written) {
		return
	}
	b, err := json.Marshal(&list)
	if err == nil {
		err = checkedfile.Write(m.opt.Kernels, kernelListMagic, b)
	}
	if err != nil {
		m.opt.Log.Warn("the list of kernels cannot be written", "file", m.opt.Kernels, "error", err)
	}
	m.written = names // nor tried again before it changes
}
