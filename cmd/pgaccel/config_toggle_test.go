package main

import "testing"

func TestToggle(t *testing.T) {
	f := func(text string, want, ok bool) {
		t.Helper()
		v := toggle(!want)
		if err := v.Set(text); (err == nil) != ok || ok && bool(v) != want {
			t.Errorf("%q: %v, %v", text, v, err)
		}
	}
	f("on", true, true)
	f("true", true, true)
	f("off", false, true)
	f("false", false, true)
	f("", false, false)
	f("yes", false, false)
}
