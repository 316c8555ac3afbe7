package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestLogsHaveUnits: a duration in the log has a unit in either format.
func TestLogsHaveUnits(t *testing.T) {
	for format, want := range map[string]string{"json": `"took":"1.079s"`, "text": "took=1.079s"} {
		var b bytes.Buffer
		log, err := newLogger(&b, format, "info", new(slog.LevelVar))
		if err != nil {
			t.Fatal(err)
		}
		log.Info("table copied", "took", 1079*time.Millisecond)
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s: %s", format, b.String())
		}
	}
}

func TestMissing(t *testing.T) {
	for n, want := range map[int]string{1: "1 requirement is not met", 2: "2 requirements are not met"} {
		if got := missing(n).Error(); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
