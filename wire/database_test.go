package wire

import (
	"slices"
	"testing"
)

// TestWithDatabase: the packet asks for another database, whether it named one, several or none, and is else what it was.
func TestWithDatabase(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"user\x00u\x00\x00", "user\x00u\x00database\x00d\x00\x00"},
		{"user\x00u\x00database\x00x\x00options\x00-c a=b\x00\x00", "user\x00u\x00options\x00-c a=b\x00database\x00d\x00\x00"},
		{"database\x00x\x00database\x00\x00user\x00u\x00\x00", "user\x00u\x00database\x00d\x00\x00"},
		{"\x00", "database\x00d\x00\x00"},
	} {
		packet := AppendStartup(nil, Version32, []byte(c.body))
		list, err := StartupParameters(packet)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := WithDatabase(packet, list, "d"), AppendStartup(nil, Version32, []byte(c.want)); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", c.body, got, want)
		}
	}
}
