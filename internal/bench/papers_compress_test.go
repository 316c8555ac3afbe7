package bench

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// TestPapersCompression: the quick run checks its own answers; here, that every column
// and width has its line.
func TestPapersCompression(t *testing.T) {
	var out bytes.Buffer
	if err := papersCompression(context.Background(), &out, true); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(lineorderNames, "None / it") {
		if !strings.Contains(out.String(), "\n"+name+" ") {
			t.Errorf("nothing of %q in\n%s", name, out.String())
		}
	}
	if n := strings.Count(out.String(), "\n   30 "); n != 2 {
		t.Errorf("30 bits are measured %d times, want 2", n)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := papersCompression(ctx, &out, true); err == nil {
		t.Error("runs although it is cancelled")
	}
}
