package engine

import (
	"maps"

	"pgaccel/catalog"
	"pgaccel/plan"
)

// known is what the catalogs say at a snapshot. It is the same for whoever has a snapshot that shows the same
// transactions (pg_current_snapshot, whose text is that), in any session: a gate is told which one is known, and
// does not read them again, which is a third of its time, while nothing is committed. What a session says of itself
// (settings, rights, what names mean) is asked for each time, as are functions that answer as of now; and all in REPEATABLE
// READ, where what has come since counts. It is never changed.
type known struct {
	text         string // of the snapshot
	server       string
	operators    string // catalog.OperatorsSQL
	fingerprints map[uint32]catalog.Fingerprint
	functions    map[string]bool // arrays of names, as the gate has them, none of which is shadowed
}

// gateFunctions is the parameter of a gate that has the names of functions.
const gateFunctions = 4

// functionsKnown bounds the arrays of names.
const functionsKnown = 1 << 10

// GateCall is a gate that is to be run.
type GateCall struct {
	Form   GateForm
	Params []string
	known  *known // what it does not ask for while the snapshot is the same; nil: nothing
}

// call returns the gate of a statement over tables.
func (e *Engine) call(form GateForm, params []string, deps *plan.Deps) GateCall {
	c := GateCall{Form: form, Params: append(params[:len(params):len(params)], "")}
	k := e.known.Load()
	if k == nil || !k.functions[params[gateFunctions]] {
		return c
	}
	for _, t := range references(deps) {
		if k.fingerprints[t.Meta.OID] == "" {
			return c
		}
	}
	c.known, c.Params[len(params)] = k, k.text
	return c
}

// learn notes what a gate has said of the catalogs.
func (e *Engine) learn(g *gateRow, functions string) {
	if g.known != nil || g.standby || !g.noXID || g.repeatable() || g.shadowed || g.server != e.store.Server() {
		return // on a standby the text does not say all that the snapshot shows
	}
	k := &known{text: g.text, server: g.server, operators: g.operators, fingerprints: map[uint32]catalog.Fingerprint{}, functions: map[string]bool{functions: true}}
	if last := e.known.Load(); last != nil && len(last.functions) < functionsKnown && last.text == k.text && last.server == k.server && last.operators == k.operators {
		maps.Copy(k.fingerprints, last.fingerprints)
		maps.Copy(k.functions, last.functions)
	}
	for _, t := range g.tables {
		if t.oid != 0 && t.fingerprint != "" {
			k.fingerprints[t.oid] = t.fingerprint
		}
	}
	e.known.Store(k) // what another one has learned meanwhile is asked for again
}

// fill has a gate's answer say what it was not asked for.
func (k *known) fill(g *gateRow) {
	g.known, g.operators = k, k.operators
	for i := range g.tables {
		g.tables[i].fingerprint = k.fingerprints[g.tables[i].oid]
	}
}
