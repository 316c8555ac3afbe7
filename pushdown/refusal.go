package pushdown

import (
	"fmt"
	"slices"

	"pgaccel/plan"
)

// Refusal is one thing in a statement that is not answered.
type Refusal struct {
	Forward *plan.Forward
	At      int // the byte of the text at which it begins; -1 where that is not known
}

// maxRefused bounds what is collected: a text may hold thousands of the same.
const maxRefused = 20

// stopped is the panic that ends an analysis whose refusals are noted.
type stopped struct{}

// fail ends the analysis of what surrounds it: it is caught in attempt, or in Plan. Deep
// recursion over syntax trees reads better without an error result on each call.
func fail(r plan.Reason, detail string) {
	panic(&plan.Forward{Reason: r, Detail: detail})
}

// noteRefusal notes a refusal of what is being analysed.
func (a *analyzer) noteRefusal(f *plan.Forward) {
	a.noted++
	x := Refusal{f, a.text.Location(a.written(a.at))}
	if !slices.ContainsFunc(a.refused, func(o Refusal) bool {
		return o.At == x.At && o.Forward.Reason == f.Reason && o.Forward.Detail == f.Detail
	}) {
		a.refused = append(a.refused, x)
	}
	if len(a.refused) == maxRefused {
		a.enough = true
		panic(stopped{})
	}
}

// tooLarge ends the analysis because of a limit.
func (a *analyzer) tooLarge(detail string) {
	a.noteRefusal(&plan.Forward{Reason: plan.ReasonShape, Detail: detail})
	a.enough = true
	panic(stopped{})
}

// attempt runs f, which analyses a part of a statement that others do not depend on, and notes
// why it is refused if it is. Who called it goes on, and calls stop before anything depends on it.
func (a *analyzer) attempt(f func()) {
	at, outer, before, since, ctes, around, lateral, in := a.at, a.block, block{}, a.since, a.ctes, a.outer, a.lateral, a.inView
	if outer != nil {
		before = *outer
	}
	a.since = a.noted
	defer func() {
		a.since = since
		switch p := recover().(type) {
		case nil:
			return
		case *plan.Forward:
			a.noteRefusal(p)
		case stopped:
			if a.enough {
				panic(p)
			}
		default:
			panic(p)
		}
		a.at, a.block, a.ctes, a.outer, a.lateral, a.inView = at, outer, ctes, around, lateral, in
		if outer != nil { // where aggregates are allowed is as before
			outer.noAggs, outer.rows = before.noAggs, before.rows
		}
	}()
	f()
}

// stop ends the analysis of what the innermost attempt is about if anything of it is refused.
func (a *analyzer) stop() {
	if a.noted > a.since {
		panic(stopped{})
	}
}

// caught makes the statement's refusal of what a panic of Plan was.
func (a *analyzer) caught(p any) []Refusal {
	switch p := p.(type) {
	case stopped:
	case *plan.Forward:
		if len(a.refused) < maxRefused-1 {
			a.noteRefusal(p)
		}
	default:
		return []Refusal{{&plan.Forward{Reason: plan.ReasonInternalError, Detail: fmt.Sprint(p)}, a.text.Location(a.written(a.at))}}
	}
	return a.refused
}
