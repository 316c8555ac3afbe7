package replica

import (
	"errors"
	"testing"
	"time"
)

// TestHealthLag: the lag is the age of the oldest end of the log that the stream has not passed.
func TestHealthLag(t *testing.T) {
	h := newHealth()
	start := time.Now().Add(-time.Hour)
	end := uint64(1 << 30)
	h.looked(end, end-behindMin, start)
	if got := h.now(true, end-behindMin); got.Lag != 0 || got.LagBytes != behindMin {
		t.Errorf("behind by the least: %v, %d bytes", got.Lag, got.LagBytes)
	}
	for i := range 2*logEndsMax + 3 { // a second apart
		h.looked(end+uint64(i+1)*behindMin*2, end, start.Add(time.Duration(i)*time.Second))
		if len(h.ahead) > logEndsMax {
			t.Fatalf("%d positions are kept", len(h.ahead))
		}
	}
	if got := h.now(true, end); got.Lag < 59*time.Minute || got.LagBytes != int64(2*logEndsMax+3)*behindMin*2 {
		t.Errorf("far behind: %v, %d bytes", got.Lag, got.LagBytes)
	}
	half := end + uint64(logEndsMax)*behindMin*2
	if got := h.now(true, half); got.Lag < 50*time.Minute || got.Lag > 53*time.Minute || got.LagBytes != int64(logEndsMax+3)*behindMin*2 {
		t.Errorf("half of that: %v, %d bytes", got.Lag, got.LagBytes)
	}
	if got := h.now(false, half); got.Lag != 0 || got.LagBytes != 0 {
		t.Errorf("without a stream: %v, %d bytes", got.Lag, got.LagBytes)
	}
	if got := h.now(true, end<<1); got.Lag != 0 || got.LagBytes != 0 {
		t.Errorf("past the end: %v, %d bytes", got.Lag, got.LagBytes)
	}
}

func TestHealthCounts(t *testing.T) {
	h := newHealth()
	for _, oid := range []uint32{1, 2, 1, 1} {
		h.completed(oid)
	}
	h.failed(errors.New("a"), false)
	h.failed(errors.New("b"), true)
	h.saved()
	h.began()
	got := h.now(true, 0)
	if got.Copies != 4 || got.Recopies != 2 || got.LastError != "b" || got.LastErrorAt.IsZero() || got.SaveFailures != 1 || got.Saved.IsZero() || got.Streams != 1 {
		t.Errorf("%+v", got)
	}
}
