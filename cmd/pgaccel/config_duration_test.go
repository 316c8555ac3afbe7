package main

import "testing"

func TestOptionalDuration(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		var v optionalDuration
		if err := v.Set(text); (err == nil) != (want != "") || err == nil && v.String() != want {
			t.Errorf("%q: %s, %v", text, v.String(), err)
		}
	}
	f("off", "off")
	f("0", "0s")
	f("1500ms", "1.5s")
	f("-1", "")
	f("-1s", "")
	f("500", "")
	f("", "")
}
