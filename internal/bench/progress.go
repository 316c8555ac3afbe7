package bench

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress shows long work: a bar on a terminal, a line every few seconds elsewhere.
type progress struct {
	w        io.Writer
	terminal bool
}

func newProgress(w io.Writer) *progress {
	if w == nil {
		w = io.Discard
	}
	f, ok := w.(*os.File)
	return &progress{w, ok && term.IsTerminal(int(f.Fd()))}
}

// say prints a line.
func (p *progress) say(format string, args ...any) { fmt.Fprintf(p.w, format+"\n", args...) }

// work is one piece of long work of a known size, done in parts by several goroutines.
type work struct {
	p     *progress
	name  string
	total int64
	begun time.Time
	bar   *progressbar.ProgressBar

	mu   sync.Mutex
	part map[string]int64
	last time.Time
}

const logEvery = 5 * time.Second

func (p *progress) start(name string, total int64) *work {
	w := &work{p: p, name: name, total: total, begun: time.Now(), last: time.Now(), part: map[string]int64{}}
	if p.terminal {
		w.bar = progressbar.NewOptions64(max(total, 1), progressbar.OptionSetWriter(p.w), progressbar.OptionSetDescription(name),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish())
	}
	return w
}

// set tells how far a part is; the parts' sum is shown.
func (w *work) set(part string, n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.part[part] = n
	var sum int64
	for _, n := range w.part {
		sum += n
	}
	if w.bar != nil {
		w.bar.Set64(min(sum, w.total-1)) // the bar would end itself at the total
		return
	}
	if now := time.Now(); now.Sub(w.last) >= logEvery {
		w.last = now
		w.p.say("%s: %d of %d (%.0f s)", w.name, sum, w.total, time.Since(w.begun).Seconds())
	}
}

// note says what is going on beside the count.
func (w *work) note(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bar != nil {
		w.bar.Describe(w.name + " (" + text + ")")
	}
}

// tables is a pgload.Progress, which notes the steps of the largest table that come after
// its rows.
func (w *work) tables(largest string) func(table, step string, rows, total int64) {
	return func(table, step string, rows, _ int64) {
		w.set(table, rows)
		if table == largest && (step == "keys" || step == "vacuum") {
			w.note(step + " of " + table)
		}
	}
}

// done ends the bar and says how long the work took.
func (w *work) done() {
	if w.bar != nil {
		w.bar.Finish()
	}
	w.p.say("%s: %.1f s", w.name, time.Since(w.begun).Seconds())
}
