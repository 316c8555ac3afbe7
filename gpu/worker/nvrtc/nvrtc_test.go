package nvrtc

import (
	"slices"
	"strings"
	"testing"
)

func TestTargets(t *testing.T) {
	l := &Library{Major: 11, Minor: 8, Archs: []int{52, 70, 80, 86, 90}}
	for arch, want := range map[string]string{
		"sm_90":  "--gpu-architecture=sm_90",
		"sm_89":  "--gpu-architecture=compute_86",
		"sm_100": "--gpu-architecture=compute_90",
		"sm_120": "--gpu-architecture=compute_90",
	} {
		got, ptx, err := l.Target(arch)
		if got != want || ptx != strings.Contains(want, "compute") || err != nil {
			t.Errorf("%s: %s, %v, %v", arch, got, ptx, err)
		}
	}
	for _, arch := range []string{"sm_35", "emu", "sm_x", ""} {
		if got, _, err := l.Target(arch); err == nil {
			t.Errorf("%s: %s", arch, got)
		}
	}
}

func TestOptions(t *testing.T) {
	got := (&Library{Major: 12}).Options([]string{"A=1"}, true, true)
	if want := []string{"-std=c++20", "-default-device", "-lineinfo", "--relocatable-device-code=true", "-DA=1"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got := (&Library{Major: 11}).Options(nil, false, false); got[0] != "-std=c++17" {
		t.Errorf("got %q", got)
	}
}

func TestBetter(t *testing.T) {
	v := func(major, minor int) *Library { return &Library{Major: major, Minor: minor} }
	for _, c := range []struct {
		l, o   *Library
		driver int
		want   bool
	}{
		{v(13, 0), v(12, 9), 13, true},
		{v(13, 0), v(12, 9), 12, false},
		{v(12, 4), v(13, 0), 12, true},
		{v(12, 9), v(12, 4), 12, true},
		{v(12, 4), v(12, 4), 12, false},
		{v(13, 0), v(12, 9), 0, true},
		{v(13, 1), v(13, 0), 12, true},
	} {
		if got := c.l.better(c.o, c.driver); got != c.want {
			t.Errorf("%s against %s on a driver of %d: %v", c.l.Version(), c.o.Version(), c.driver, got)
		}
	}
}

func TestOpenFails(t *testing.T) {
	if _, err := open("/nowhere/libnvrtc.so"); err == nil || !strings.Contains(err.Error(), "/nowhere/libnvrtc.so") {
		t.Errorf("got %v", err)
	}
	if _, err := open("libc.so.6"); err == nil || !strings.Contains(err.Error(), "nvrtcVersion") {
		t.Errorf("got %v", err)
	}
}
