package engine

import (
	"errors"
	"slices"
	"time"

	"pgaccel/plan"
	"pgaccel/vector"
)

// vain is an execution that was computed and then forwarded, for a reason that comes again as long as the rows are
// about the same: the next ones with the same values and settings are forwarded behind their gate. Those before it are not
// forwarded at once: only the gate says the settings that decide on some of the reasons, and who insists.
type vain struct {
	why               *plan.Forward
	at                time.Time
	params, constants []vector.Datum
	ties, timeZone    string
}

const (
	vainFloor = 2 * time.Millisecond // of what was computed: less is not worth remembering
	vainFor   = 5 * time.Minute
	vainBytes = 4 << 10 // of the values
)

// lastingly reports whether an execution that is forwarded for the reason would be again.
func lastingly(r plan.Reason) bool {
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
	if d.vain == nil || !d.statement.engine.opt.Trials || took < vainFloor || len(d.deps.Cased) > 0 || !errors.As(err, &f) || !lastingly(f.Reason) {
		return
	}
	size := 0
	for _, v := range slices.Concat(params, constants) {
		size += len(v.Str)
	}
	if size <= vainBytes {
		d.vain.Store(&vain{f, time.Now(), slices.Clone(params), slices.Clone(constants), g.ties, g.timeZone})
	}
}

// inVain says why an execution would be computed in vain, nil where that is not known.
func (d *decision) inVain(g *gateRow, params, constants []vector.Datum) *plan.Forward {
	if d.vain == nil {
		return nil
	}
	v := d.vain.Load()
	if v == nil || g.mode == "force" || time.Since(v.at) > vainFor || v.ties != g.ties || v.timeZone != g.timeZone ||
		!slices.Equal(v.params, params) || !slices.Equal(v.constants, constants) {
		return nil
	}
	return v.why
}
