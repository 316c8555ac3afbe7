package bench

import (
	"context"
	"io"
	"strings"
	"testing"
)

func TestPapersSections(t *testing.T) {
	err := Papers(context.Background(), PapersOptions{Only: "squares"}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), strings.Join(PapersSections(), ", ")) {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, only := range PapersSections() {
		if err := Papers(ctx, PapersOptions{Quick: true, Only: only}, io.Discard); err != context.Canceled {
			t.Errorf("%s: error %v", only, err)
		}
	}
}
