package worker

import (
	"fmt"
	"slices"
	"testing"

	"pgaccel/gpu/device"
)

// TestModulesLoad: launches of one module do not wait for another to be loaded; what two load is loaded once in the end.
func TestModulesLoad(t *testing.T) {
	d := newMemDriver()
	m := newModules(d, 8)
	there, err := m.add("there", "m", []byte("there"))
	if err != nil {
		t.Fatal(err)
	}
	loading, hold := make(chan struct{}, 2), make(chan struct{})
	d.loading = func(string) {
		loading <- struct{}{}
		<-hold
	}
	numbers := make(chan device.Module, 2)
	for range 2 {
		go func() {
			n, err := m.add("new", "m", []byte("new"))
			if err != nil {
				t.Error(err)
			}
			numbers <- n
		}()
		<-loading
	}
	e, err := m.acquire(there)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.function(e, "f", 0); err != nil {
		t.Error(err)
	}
	m.release(e)
	close(hold)
	if a, b := <-numbers, <-numbers; a != b || a == there || len(d.loaded) != 2 {
		t.Errorf("modules %d and %d, %d are loaded", a, b, len(d.loaded))
	}
}

func TestModules(t *testing.T) {
	d := newMemDriver()
	m := newModules(d, 2)
	var numbers []device.Module
	for i := range 4 {
		n, err := m.add(fmt.Sprint("key", i), "m", []byte(fmt.Sprint("image", i)))
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, n)
	}
	if len(d.loaded) != 2 {
		t.Errorf("%d modules are loaded", len(d.loaded))
	}
	first, err := m.acquire(numbers[0]) // loads it again
	if err != nil {
		t.Fatal(err)
	}
	if d.loaded[first.handle] != "image0" {
		t.Errorf("%q is loaded", d.loaded[first.handle])
	}
	for _, n := range numbers[1:] { // each throws out the one before, but not the one in use
		e, err := m.acquire(n)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.function(e, "f", 0); err != nil {
			t.Error(err)
		}
		m.release(e)
	}
	if d.loaded[first.handle] != "image0" {
		t.Error("a module in use was unloaded")
	}
	again, err := m.acquire(numbers[0])
	if err != nil || again != first || d.loaded[first.handle] != "image0" {
		t.Errorf("%v, %v", again, err)
	}
	m.release(first)
	m.release(again)
	if len(d.loaded) > 3 {
		t.Errorf("%d modules are loaded", len(d.loaded))
	}
	for _, n := range slices.Concat(numbers, numbers) {
		e, err := m.acquire(n)
		if err != nil {
			t.Fatal(err)
		}
		m.release(e)
	}
	if len(d.loaded) != 2 {
		t.Errorf("%d modules are loaded", len(d.loaded))
	}
	if _, err := m.acquire(99); device.KindOf(err) != device.FaultLaunch {
		t.Errorf("got %v", err)
	}
}
