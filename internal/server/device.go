package server

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pgaccel/gpu/device"
)

// deviceChoice is what --device says.
type deviceChoice struct {
	kind     string // auto, cpu, cuda or emu
	ordinals []int  // of cuda, ascending; nil: every one there is
}

// parseDevice reads auto, cpu, emu, cuda, cuda:0 or cuda:0,2. Nothing is auto.
func parseDevice(text string) (deviceChoice, error) {
	kind, list, listed := strings.Cut(strings.TrimSpace(text), ":")
	c := deviceChoice{kind: kind}
	switch kind {
	case "":
		c.kind = "auto"
	case "auto", "cpu", "cuda", "emu":
	default:
		return c, fmt.Errorf("--device %s: use auto, cpu, cuda, cuda:N[,M...] or emu", text)
	}
	if !listed {
		return c, nil
	}
	if kind != "cuda" {
		return c, fmt.Errorf("--device %s: only cuda is followed by numbers, as in cuda:0,1", text)
	}
	for _, part := range strings.Split(list, ",") {
		n, err := strconv.ParseUint(strings.TrimSpace(part), 10, 16)
		if err != nil {
			return c, fmt.Errorf("--device %s: %q is not the number of a device, which counts from 0", text, part)
		}
		if slices.Contains(c.ordinals, int(n)) {
			return c, fmt.Errorf("--device %s: device %d is named twice", text, n)
		}
		c.ordinals = append(c.ordinals, int(n))
	}
	slices.Sort(c.ordinals)
	return c, nil
}

// WorkerOf reads a device's name as --device has it, and returns the kind of worker and
// the numbers of the devices to use, nil for all. It is an error for one that has no
// worker.
func WorkerOf(text string) (device.Kind, []int, error) {
	c, err := parseDevice(text)
	if err == nil && c.kind == "cpu" {
		err = fmt.Errorf("--device %s: that is no device", text)
	}
	return c.worker(), c.ordinals, err
}

// worker is the kind of worker.
func (c deviceChoice) worker() device.Kind {
	if c.kind == "emu" {
		return device.Emulator
	}
	return device.CUDA
}
