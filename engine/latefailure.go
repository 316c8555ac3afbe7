package engine

import (
	"errors"
	"slices"
	"time"

	"pgaccel/plan"
	"pgaccel/vector"
)

// lateFailure is an execution that was computed and then forwarded, for a reason that comes again as long as the rows are
// about the same: the next ones with the same values and settings are forwarded behind their gate. Those before it are not
// forwarded at once: only the gate says the settings that decide on some of the reasons, and who insists.
type lateFailure struct {
	why               *plan.Forward
	at                time.Time
	params, constants []vector.Datum
	ties, timeZone    string
}

const (
	lateFailureFloor = 2 * time.Millisecond // of what was computed: less is not worth remembering
	lateFailureFor   = 5 * time.Minute
	lateFailureBytes = 4 << 10 // of the values
)

// recurs reports whether an execution that is forwarded for the reason would be again.
func recurs(r plan.Reason) bool {
	switch r {
	case plan.ReasonTies, plan.ReasonEvaluation, plan.ReasonCollation, plan.ReasonMemory:
		return true
	}
	return false
}

// failedLate takes note of an execution that has failed after so long. Not where the cases of letters may have been
// lacking, which are asked for then.
func (d *decision) failedLate(took time.Duration, g *gateRow, params, constants []vector.Datum, err error) {
	var f *plan.Forward
	if d.lateFailure == nil || !d.statement.engine.opt.Trials || took < lateFailureFloor || len(d.deps.Cased) > 0 || !errors.As(err, &f) || !recurs(f.Reason) {
		return
	}
	size := 0
	for _, v := range slices.Concat(params, constants) {
		size += len(v.Str)
	}
	if size <= lateFailureBytes {
		d.lateFailure.Store(&lateFailure{f, time.Now(), slices.Clone(params), slices.Clone(constants), g.ties, g.timeZone})
	}
}

// failedBefore says why an execution would be computed in vain, nil where that is not known.
func (d *decision) failedBefore(g *gateRow, params, constants []vector.Datum) *plan.Forward {
	if d.lateFailure == nil {
		return nil
	}
	v := d.lateFailure.Load()
	if v == nil || g.mode == "force" || time.Since(v.at) > lateFailureFor || v.ties != g.ties || v.timeZone != g.timeZone ||
		!slices.Equal(v.params, params) || !slices.Equal(v.constants, constants) {
		return nil
	}
	return v.why
}
