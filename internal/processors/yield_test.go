package processors

import (
	"testing"
	"time"
)

// A turn ends once its time is over, and the clock is looked at between some pieces only.
func TestTurn(t *testing.T) {
	var c Turn
	for range turnPieces - 1 {
		c.Next()
	}
	if !c.since.IsZero() {
		t.Error("the first turn is over before the clock is looked at")
	}
	if c.Next(); c.since.IsZero() {
		t.Fatal("the first turn does not end")
	}
	begun := time.Now().Add(time.Hour) // nothing is over
	c.since = begun
	for range 10 * turnPieces {
		c.Next()
	}
	if !c.since.Equal(begun) {
		t.Error("a turn ends early")
	}
	over := time.Now().Add(-turn)
	c.since = over
	for range turnPieces {
		c.Next()
	}
	if c.since.Equal(over) {
		t.Error("a turn does not end")
	}
}
