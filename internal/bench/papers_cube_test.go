package bench

import (
	"strings"
	"testing"
)

// TestPapersCube runs the quick comparison, which fails on any wrong answer.
func TestPapersCube(t *testing.T) {
	var out strings.Builder
	if err := papersCube(t.Context(), &out, true); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{"B1", "B2", "B3", "M1", "M2", "M3"} {
		if strings.Count(out.String(), query+" ") != 2 {
			t.Errorf("%s is not in both tables:\n%s", query, out.String())
		}
	}
	t.Log("\n" + out.String())
}
