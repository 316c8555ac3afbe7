package plan

import (
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// Zones are the time zones that a Star is executed in.
type Zones struct {
	Used    bool                     // there are calls that depend on a time zone
	Session *sqltype.Zone            // nil: it is UTC
	Named   map[string]*sqltype.Zone // Deps.Zones; nil of a name of UTC
}

// Moment returns when it is a local time in the session's zone.
func (zs Zones) Moment(local int64) (utc int64, err error) {
	if zs.Session == nil {
		return local, nil
	}
	v, err := sqlfn.MomentOf(zs.Session).Apply([]vector.Value{{I: local}})
	return v.I, err
}

// zonedFunction is a function in a time zone: of the table, or, by its kinds, that of a cast.
type zonedFunction struct {
	f        *sqlfn.Function
	from, to vector.Kind
	zone     *sqltype.Zone
}

// inZone returns a call that depends on a time zone as it is in that zone. Calls are planned as they are in UTC,
// where a moment is its local time.
func (v values) inZone(c *Call) Expr {
	switch {
	case c.Op == OpCast && v.zones.Used:
		return v.castIn(c)
	case c.Op != OpFunc:
		return c
	}
	switch c.Func.Zone {
	case sqlfn.SessionZone:
		if z := v.zones.Session; z != nil {
			return v.call(c, zonedFunction{f: c.Func, zone: z}, func() *sqlfn.Function { return c.Func.In(z) })
		}
	case sqlfn.NamedZone:
		z := v.zones.Named[c.Func.ZoneName(c.Site())]
		if z != nil {
			return v.call(c, zonedFunction{f: c.Func, zone: z}, func() *sqlfn.Function { return c.Func.In(z) })
		}
		return inUTC(c)
	}
	return c
}

// call returns a call of another function, the same for all that have the same.
func (v values) call(c *Call, key zonedFunction, build func() *sqlfn.Function) Expr {
	f := v.zoned[key]
	if f == nil {
		f = build()
		v.zoned[key] = f
	}
	d := *c
	d.Op, d.Func = OpFunc, f
	return constantMoment(&d)
}

// constantMoment returns a call of constants as a constant, where its result is a date or a timestamp.
func constantMoment(c *Call) Expr {
	switch c.T.Kind {
	case vector.Date, vector.Timestamp, vector.TimestampTZ:
	default:
		return c
	}
	return folded(c)
}

// folded returns a call of constants as a constant.
func folded(c *Call) Expr {
	args := make([]vector.Value, len(c.Args))
	for i, a := range c.Args {
		k, ok := a.(Const)
		if !ok {
			return c
		}
		args[i] = k.Value()
	}
	v, err := c.Func.Apply(args)
	if err != nil {
		return c // where it fails, if it is computed
	}
	return Const{v.Datum(c.T)}
}

// castIn returns a cast between moments and local times or dates as it is in the session's zone.
func (v values) castIn(c *Call) Expr {
	z := v.zones.Session
	if k, ok := c.Args[0].(Const); ok && z == nil && c.T.Kind == vector.TimestampTZ && k.Type().Kind == vector.Timestamp {
		return Const{vector.Datum{Type: c.T, I: k.I, Null: k.Null}}
	}
	if z == nil {
		return c
	}
	from, to := c.Args[0].Type().Kind, c.T.Kind
	key := zonedFunction{from: from, to: to, zone: z}
	switch {
	case from == vector.TimestampTZ && to == vector.Timestamp:
		return v.call(c, key, func() *sqlfn.Function { return sqlfn.LocalTime(z) })
	case from == vector.TimestampTZ && to == vector.Date:
		return v.call(c, key, func() *sqlfn.Function { return sqlfn.LocalDate(z) })
	case from == vector.TimestampTZ && (to == vector.Text || to == vector.Varchar) && c.T.Typmod < 0:
		return v.call(c, key, func() *sqlfn.Function { return sqlfn.LocalText(z, to) })
	case to == vector.TimestampTZ && from == vector.Timestamp:
		return v.call(c, key, func() *sqlfn.Function { return sqlfn.MomentOf(z) })
	case to == vector.TimestampTZ && from == vector.Date:
		d, t := *c, vector.TypeOf(vector.Timestamp)
		d.Args = []Expr{&Call{Op: OpCast, Args: c.Args, T: t}}
		if k, ok := c.Args[0].(Const); ok && !k.Null && sqltype.InZones(k.I*sqltype.MicrosPerDay) && k.I == k.I*sqltype.MicrosPerDay/sqltype.MicrosPerDay {
			d.Args = []Expr{Const{vector.Datum{Type: t, I: k.I * sqltype.MicrosPerDay}}}
		}
		key.from = vector.Timestamp
		return v.call(&d, key, func() *sqlfn.Function { return sqlfn.MomentOf(z) })
	}
	return c
}

// inUTC returns a call of a function in a zone that is UTC as what it is there.
func inUTC(c *Call) Expr {
	switch d := *c; c.Func.Name {
	case "timezone":
		if k, ok := c.Args[1].(Const); ok {
			return Const{vector.Datum{Type: c.T, I: k.I, Null: k.Null}}
		}
		d.Op, d.Func, d.Args = OpCast, nil, c.Args[1:]
		return &d
	case "date_trunc":
		d.Func, d.Args = sqlfn.Lookup("date_trunc", vector.Text, vector.TimestampTZ), c.Args[:2]
		return &d
	}
	return c
}
