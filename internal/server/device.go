package server

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
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
