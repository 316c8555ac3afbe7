package proxy

import (
	"time"

	"pgaccel/engine"
	"pgaccel/wire"
)

// watch remembers the text of a statement that is relayed without a look, until the server has answered it: one that
// takes long is told to the engine (engine.Watcher). That is a share of the truth only: texts up to engine.SeenTextMax, a
// Query or a batch that executes one statement, few and short prepared statements under a name.
type watch struct {
	engine engine.Watcher // nil for none
	text   []byte         // of what runs; empty where it is not known
	// unnamed is the text of the unnamed statement, named are those of others.
	unnamed []byte
	named   map[string]string
}

const (
	// watchedNames bounds the texts of prepared statements that a session remembers, and watchedText each one's bytes.
	watchedNames = 16
	watchedText  = 2 << 10
	// watchedIdle is how many bytes of the last text a session at rest keeps room for.
	watchedIdle = 1 << 10
)

// query notes the text of a Query.
func (w *watch) query(text []byte) {
	if w.engine != nil && len(text) <= engine.SeenTextMax {
		w.text = append(w.text[:0], text...)
	}
}

// parse notes the text that a name stands for from now on; nil for one that is not watched.
func (w *watch) parse(name, text []byte) {
	if w.engine == nil {
		return
	}
	if len(name) == 0 {
		if w.unnamed = w.unnamed[:0]; len(text) <= watchedText {
			w.unnamed = append(w.unnamed, text...)
		}
		return
	}
	delete(w.named, string(name))
	if text == nil || len(text) > watchedText || len(w.named) >= watchedNames {
		return
	}
	if w.named == nil {
		w.named = map[string]string{}
	}
	w.named[string(name)] = string(text)
}

// bind notes that the statement of that name is about to be executed.
func (w *watch) bind(message []byte) {
	if len(w.named) == 0 && len(w.unnamed) == 0 {
		return
	}
	w.text = w.text[:0]
	if _, rest, err := wire.CString(message[wire.HeaderLen:]); err == nil {
		switch name, _, err := wire.CString(rest); {
		case err != nil:
		case len(name) == 0:
			w.text = append(w.text, w.unnamed...)
		default:
			w.text = append(w.text, w.named[string(name)]...)
		}
	}
}

// forgetNames notes that no name stands for a text that is known.
func (w *watch) forgetNames() {
	w.unnamed = w.unnamed[:0]
	clear(w.named)
}

// forget notes that what runs is not known, or has failed.
func (w *watch) forget() { w.text = w.text[:0] }

// ended tells of what ran, n statements, for so long.
func (w *watch) ended(n uint64, took time.Duration) {
	if n == 1 && took >= engine.SeenMin && len(w.text) > 0 {
		w.engine.Seen(string(w.text), took)
	}
	if w.text = w.text[:0]; cap(w.text) > watchedIdle {
		w.text = nil
	}
}
