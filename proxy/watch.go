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
	// executes says that text is that of a statement that an EXECUTE executes; prepares is the name that a PREPARE gives to
	// prepared, once the server has done so.
	executes           bool
	prepares, prepared string
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
		w.resolve()
	}
}

// resolve looks for the statement that the text executes by name.
func (w *watch) resolve() {
	w.executes, w.prepares = false, ""
	switch name, sql := w.engine.Prepared(w.text); {
	case name == "":
	case sql != "":
		w.prepares, w.prepared = name, sql
	default:
		w.text, w.executes = append(w.text[:0], w.named[name]...), true
	}
}

// succeeded notes that the server has done what a tag says.
func (w *watch) succeeded(tag []byte) {
	if w.prepares != "" && string(tag) == "PREPARE" {
		w.parse([]byte(w.prepares), []byte(w.prepared))
	}
	w.prepares = ""
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
	w.resolve()
}

// forgetNames notes that no name stands for a text that is known.
func (w *watch) forgetNames() {
	w.unnamed = w.unnamed[:0]
	clear(w.named)
}

// forget notes that what runs is not known, or has failed.
func (w *watch) forget() { w.text, w.executes, w.prepares = w.text[:0], false, "" }

// ended tells of what ran, n statements, for so long.
func (w *watch) ended(n uint64, took time.Duration) {
	switch {
	case n != 1 || len(w.text) == 0:
	case w.executes:
		w.engine.Executed(string(w.text), took)
	case took >= engine.SeenMin:
		w.engine.Seen(string(w.text), took)
	}
	w.executes = false
	if w.text = w.text[:0]; cap(w.text) > watchedIdle {
		w.text = nil
	}
}
