package server

import (
	"reflect"
	"testing"
)

func TestParseDevice(t *testing.T) {
	for text, want := range map[string]deviceChoice{
		"": {kind: "auto"}, "auto": {kind: "auto"}, "cpu": {kind: "cpu"}, "emu": {kind: "emu"}, "cuda": {kind: "cuda"},
		"cuda:0": {"cuda", []int{0}}, "cuda:3,1": {"cuda", []int{1, 3}}, " cuda:0, 2 ": {"cuda", []int{0, 2}},
	} {
		if got, err := parseDevice(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"gpu", "CUDA", "cuda:", "cuda:a", "cuda:-1", "cuda:0,0", "cuda:0,", "emu:0", "auto:1", "cpu:", "cuda:99999"} {
		if got, err := parseDevice(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
