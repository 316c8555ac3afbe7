package pushdown

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/plan"
	"pgaccel/vector"
)

// The bits of a frame (FRAMEOPTION_* in parsenodes.h).
const (
	frameWritten       = 0x00001
	frameRows          = 0x00004
	frameGroups        = 0x00008
	startUnbounded     = 0x00020
	endUnbounded       = 0x00100
	startAtRow         = 0x00200
	endAtRow           = 0x00400
	startPreceding     = 0x00800
	endPreceding       = 0x01000
	startFollowing     = 0x02000
	endFollowing       = 0x04000
	frameExcludesRow   = 0x08000
	frameExcludesGroup = 0x10000
	frameExcludesTies  = 0x20000
)

// frame analyses a window's frame.
func (a *analyzer) frame(d *pg.WindowDef, order []plan.Order, s *scope) (f plan.Frame) {
	has := func(bit int32) bool { return d.FrameOptions&bit != 0 }
	switch {
	case has(frameRows):
		f.Mode = plan.Rows
	case has(frameGroups):
		f.Mode = plan.Groups
	}
	switch {
	case has(frameExcludesRow):
		f.Exclude = plan.ExcludeCurrentRow
	case has(frameExcludesGroup):
		f.Exclude = plan.ExcludeGroup
	case has(frameExcludesTies):
		f.Exclude = plan.ExcludeTies
	}
	bound := func(unbounded plan.BoundKind, isUnbounded, atRow, preceding, following bool, offset *pg.Node) (b plan.Bound) {
		switch {
		case isUnbounded:
			b.Kind = unbounded
		case atRow:
			b.Kind = plan.CurrentRow
		case preceding:
			b = a.frameOffset(offset, f.Mode, order, s)
			b.Kind = plan.Preceding
		case following:
			b = a.frameOffset(offset, f.Mode, order, s)
			b.Kind = plan.Following
		default:
			fail(plan.ReasonShape, "a window frame of this form")
		}
		return b
	}
	f.Start = bound(plan.UnboundedPreceding, has(startUnbounded), has(startAtRow), has(startPreceding), has(startFollowing), d.StartOffset)
	f.End = bound(plan.UnboundedFollowing, has(endUnbounded), has(endAtRow), has(endPreceding), has(endFollowing), d.EndOffset)
	return f
}

// frameOffset analyses the offset of a frame's bound: which type it has of those that the key's
// in_range functions take is transformFrameOffset's choice (parse_clause.c).
func (a *analyzer) frameOffset(n *pg.Node, mode plan.FrameMode, order []plan.Order, s *scope) (b plan.Bound) {
	a.at = n
	t := vector.TypeOf(vector.Int8)
	if mode == plan.Range {
		if len(order) != 1 {
			fail(plan.ReasonShape, "a window's RANGE over other than one key")
		}
		switch key := order[0].Expr.Type(); {
		case key.Kind.IsInt():
			t = vector.TypeOf(key.Kind)
		case key.Kind == vector.Numeric:
			t = vector.NumericType(vector.VaryingScale)
		case key.Kind.IsFloat():
			t = vector.TypeOf(vector.Float8)
		case key.Kind == vector.Date, key.Kind == vector.Time, key.Kind == vector.Timestamp, key.Kind == vector.TimestampTZ:
			var ok bool
			if b.By, ok = intervalConst(n); !ok {
				b.By, ok = intervalOf(n.GetAConst().GetSval().GetSval())
			}
			if !ok {
				fail(plan.ReasonFunction, "a window frame by other than a constant interval of whole numbers")
			}
			if b.By.Sign() < 0 {
				fail(plan.ReasonEvaluation, "a window frame with a negative offset")
			}
			if key.Kind == vector.TimestampTZ && b.By.Months|b.By.Days != 0 {
				a.needsUTC = true // which days begin when
			}
			return b
		default:
			fail(plan.ReasonType, "a window's RANGE of "+key.Kind.String())
		}
	}
	var v value
	outer := a.noAggs
	a.noAggs = "aggregate in a window frame"
	a.noSubselects("a window frame", func() { v = a.expr(n, s) })
	a.noAggs = outer
	b.Offset = a.resolve(v, t)
	if c, ok := b.Offset.(plan.Const); ok && (c.Null || c.Datum.Type.Kind != vector.Float8 && c.Decimal().Unscaled.Sign() < 0) {
		fail(plan.ReasonEvaluation, "a window frame with an offset that is null or negative")
	}
	switch k := b.Offset.Type().Kind; {
	case readsRows(b.Offset):
		fail(plan.ReasonShape, "a window frame that depends on rows")
	case t.Kind.IsInt() && !k.IsInt(), t.Kind == vector.Numeric && !k.IsInt() && k != vector.Numeric, t.Kind == vector.Float8 && !isNumber(k):
		fail(plan.ReasonType, "a window frame by "+k.String())
	case mode != plan.Range, t.Kind == vector.Float8:
		a.callsCast(v, t.Kind)
		b.Offset = a.cast(b.Offset, t)
	case t.Kind == vector.Numeric:
		a.callsCast(v, t.Kind)
	}
	return b
}
