package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// historyMax is how many events are kept: enough to see what led to a violation.
const historyMax = 20000

// event is one statement as a session saw it, or something else worth knowing.
type event struct {
	start, end time.Time
	who        string
	sql        string
	args       []any
	answer     answer
	err        error
}

// history keeps the last events of all sessions. It is safe for several goroutines.
type history struct {
	mu     sync.Mutex
	began  time.Time
	events []event
	next   int
	total  int
}

func newHistory() *history {
	return &history{began: time.Now()}
}

func (h *history) add(e event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.total++
	if len(h.events) < historyMax {
		h.events = append(h.events, e)
		return
	}
	h.events[h.next] = e
	h.next = (h.next + 1) % historyMax
}

// note records something that is no statement.
func (h *history) note(who, format string, args ...any) {
	now := time.Now()
	h.add(event{start: now, end: now, who: who, sql: fmt.Sprintf(format, args...)})
}

// write prints the last n events in the order in which they ended, statements and
// answers cut to width.
func (h *history) write(w io.Writer, n, width int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ordered := append(append([]event{}, h.events[h.next:]...), h.events[:h.next]...)
	if len(ordered) > n {
		ordered = ordered[len(ordered)-n:]
	}
	fmt.Fprintf(w, "%d events, the last %d:\n", h.total, len(ordered))
	for _, e := range ordered {
		text := e.sql
		if len(e.args) > 0 {
			text += fmt.Sprint(" ", e.args)
		}
		result := clip(e.answer.String(), width)
		if e.err != nil {
			result = e.err.Error()
		}
		fmt.Fprintf(w, "%11.3f %+9.3f ms  %-18s %s -> %s\n", e.start.Sub(h.began).Seconds()*1000, e.end.Sub(e.start).Seconds()*1000,
			e.who, clip(text, width), result)
	}
}

func clip(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > n {
		return s[:n] + "..."
	}
	return s
}

func (h *history) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.total
}
