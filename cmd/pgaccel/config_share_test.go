package main

import "testing"

func TestShare(t *testing.T) {
	f := func(text string, want float64, ok bool) {
		t.Helper()
		var s share
		if err := s.Set(text); (err == nil) != ok || ok && float64(s) != want {
			t.Errorf("%q: %v, %v", text, float64(s), err)
		}
	}
	f("1%", 0.01, true)
	f(" 100 % ", 1, true)
	f("0.5", 0.5, true)
	f("0.01", 0.01, true)
	f("0", 0, true)
	f("1", 1, true)
	f("0.5%", 0.005, true)
	f("2", 0, false)
	f("101%", 0, false)
	f("-1%", 0, false)
	f("NaN", 0, false)
	f("some", 0, false)
	f("", 0, false)
}
