package sqlfn

import (
	"math"
	"strings"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// Functions of moments in a time zone. The table has them as they are in UTC; In returns them as they are in
// another zone. Casts between moments and local times are functions there, too, and operators in UTC.

// ZoneUse says which time zone a function's result depends on.
type ZoneUse uint8

// The zones.
const (
	NoZone      ZoneUse = iota
	SessionZone         // TimeZone
	NamedZone           // that an argument names, which is constant
)

// ZoneName returns the zone that the arguments of a call of a NamedZone function name.
func (f *Function) ZoneName(c Call) string {
	if v := c.Args[f.zoneArg].Const; v != nil {
		return v.Str
	}
	return ""
}

// In returns a function of a moment as it is in a time zone.
func (f *Function) In(z *sqltype.Zone) *Function {
	in := *f
	in.Zone, in.InZone = NoZone, z
	f.in(&in, z)
	return &in
}

// localOf makes f, of the moment that argument i is, the function of the local time.
func localOf(i int) func(f *Function, z *sqltype.Zone) {
	return func(f *Function, z *sqltype.Zone) {
		eval, kernel := f.Eval, f.Kernel
		f.Eval = func(args []vector.Value) (vector.Value, error) {
			local, err := localTime(z, args[i].I)
			if err != nil {
				return vector.NullValue, err
			}
			args = append([]vector.Value(nil), args...)
			args[i].I = local
			return eval(args)
		}
		if around := f.Around; around != nil {
			f.Around = func(c Call, at int) func(v int64) (lo, hi int64) {
				if of := around(c, at); of != nil {
					return aroundLocal(z, of)
				}
				return nil
			}
		}
		if kernel != nil {
			f.Kernel = func(c Call, at int) *Kernel {
				if k := kernel(c, at); k != nil {
					return k.ofLocal(z)
				}
				return nil
			}
		}
	}
}

// ofField makes a field of a moment that of its local time. epoch has no zone.
func ofField(f *Function, z *sqltype.Zone) {
	utc, kernel := f.Eval, f.Kernel
	localOf(1)(f, z)
	eval, local := f.Eval, f.Kernel
	f.Eval = func(args []vector.Value) (vector.Value, error) {
		if strings.EqualFold(args[0].Str, "epoch") {
			return utc(args)
		}
		return eval(args)
	}
	if kernel == nil {
		return
	}
	f.Kernel = func(c Call, i int) *Kernel {
		if strings.EqualFold(c.Args[0].Const.Str, "epoch") {
			return kernel(c, i)
		}
		return local(c, i)
	}
}

func localTime(z *sqltype.Zone, v int64) (int64, error) {
	local, ok := z.Local(v)
	if !ok {
		return 0, failed("timestamp out of range")
	}
	return local, nil
}

func utcTime(z *sqltype.Zone, v int64) (int64, error) {
	utc, ok := z.UTC(v)
	if !ok {
		return 0, failed("timestamp out of range")
	}
	return utc, nil
}

const zoneMargin = 2 * dayMicros // see sqltype.InZones

// ofLocal returns a kernel of timestamps as one of moments, by their local time.
func (k *Kernel) ofLocal(z *sqltype.Zone) *Kernel {
	in := &Kernel{First: max(k.First, sqltype.TimestampFirst) + zoneMargin, Last: min(k.Last, sqltype.TimestampLast) - zoneMargin, Fails: k.Fails, Min: k.Min, Max: k.Max}
	in.F = func(v int64) (int64, error) {
		if v < in.First || v > in.Last { // infinite, too
			return 0, failed("timestamp out of range")
		}
		local, err := localTime(z, v)
		if err != nil {
			return 0, err
		}
		return k.F(local)
	}
	if k.Monotone {
		in.Range = func(lo, hi int64) (int64, int64, error) {
			if lo < in.First || hi > in.Last {
				return 0, 0, failed("timestamp out of range")
			}
			least, greatest, _ := z.Offsets(lo, hi)
			lo, err := k.F(lo + least)
			if err != nil {
				return 0, 0, err
			}
			hi, err = k.F(hi + greatest)
			return lo, hi, err
		}
	}
	if k.Around != nil {
		around := aroundLocal(z, k.Around)
		in.Around = func(v int64) (int64, int64) {
			lo, hi := around(v)
			return max(in.First, lo), min(in.Last, hi)
		}
		in.Every = func(lo, hi int64) int64 { return zoneSteps(z, k.Every(lo, hi), lo, hi) }
	}
	return in
}

// aroundLocal is Kernel.Around of a function of local time as one of moments.
func aroundLocal(z *sqltype.Zone, around func(v int64) (lo, hi int64)) func(v int64) (lo, hi int64) {
	return func(v int64) (int64, int64) {
		offset, first, last := z.Offset(v)
		lo, hi := around(v + offset)
		return max(first, lo-offset), min(last, hi-offset)
	}
}

// zoneSteps returns a time of fixed length of which the steps of a function of local time, which are
// multiples of every, are multiples in UTC, too; 0 where that is less than a minute.
func zoneSteps(z *sqltype.Zone, every, lo, hi int64) int64 {
	_, _, step := z.Offsets(lo-every, hi) // from the multiple before lo on
	if step = sqltype.GCD(step, every); step%minuteMicros != 0 {
		return 0
	}
	return step
}

// LocalTime is the local time of a moment in a time zone, the cast of timestamptz to timestamp.
func LocalTime(z *sqltype.Zone) *Function {
	return &Function{Name: "timestamp", OID: oidTimestampOfTZ, Args: []Param{{Kind: vector.TimestampTZ}}, Result: vector.Timestamp, InZone: z,
		Eval:   timeAt(0, z, localTime),
		Kernel: func(Call, int) *Kernel { return localKernel(z) },
	}
}

// LocalDate is the date of a moment in a time zone, the cast of timestamptz to date.
func LocalDate(z *sqltype.Zone) *Function {
	date := func(v int64) (int64, error) { return sqltype.FloorDiv(v, dayMicros), nil }
	k := &Kernel{F: date, First: sqltype.TimestampFirst, Last: sqltype.TimestampLast, Monotone: true,
		Around: func(v int64) (int64, int64) { return unitAround("day", v) }, Every: everyUnit("day")}
	k = k.ofLocal(z)
	return &Function{Name: "date", OID: oidDateOfTZ, Args: []Param{{Kind: vector.TimestampTZ}}, Result: vector.Date, InZone: z,
		Eval: func(args []vector.Value) (vector.Value, error) {
			v, err := k.F(args[0].I)
			return vector.Value{I: v}, err
		},
		Kernel: func(Call, int) *Kernel { return k },
	}
}

// LocalText is the text of a moment in a time zone, the cast of timestamptz to text in DateStyle ISO.
func LocalText(z *sqltype.Zone, k vector.Kind) *Function {
	format := &sqltype.DateFormat{Rules: z}
	return &Function{Name: "text", Args: []Param{{Kind: vector.TimestampTZ}}, Result: k, InZone: z, Total: true,
		Eval: func(args []vector.Value) (vector.Value, error) {
			return vector.Value{Str: string(format.AppendTimestampTZ(nil, args[0].I))}, nil
		},
	}
}

// MomentOf is when it is a local time in a time zone, the cast of timestamp to timestamptz.
func MomentOf(z *sqltype.Zone) *Function {
	return &Function{Name: "timestamptz", OID: oidTZOfTimestamp, Args: []Param{{Kind: vector.Timestamp}}, Result: vector.TimestampTZ, InZone: z,
		Eval:   timeAt(0, z, utcTime),
		Kernel: func(Call, int) *Kernel { return momentKernel(z) },
	}
}

// The functions of the casts in pg_proc.
const (
	oidTimestampOfTZ = 2027
	oidTZOfTimestamp = 2028
	oidDateOfTZ      = 1178
)

// timeAt returns the Eval that is f of argument i.
func timeAt(i int, z *sqltype.Zone, f func(*sqltype.Zone, int64) (int64, error)) func(args []vector.Value) (vector.Value, error) {
	return func(args []vector.Value) (vector.Value, error) {
		v, err := f(z, args[i].I)
		return vector.Value{I: v}, err
	}
}

// Infinite times are what they are, so that these kernels take all; next to the ends of the range they fail.

func localKernel(z *sqltype.Zone) *Kernel {
	return &Kernel{F: func(v int64) (int64, error) { return localTime(z, v) }, First: math.MinInt64, Last: math.MaxInt64,
		Range: func(lo, hi int64) (int64, int64, error) {
			if !sqltype.InZones(lo) || !sqltype.InZones(hi) {
				return 0, 0, failed("timestamp out of range")
			}
			least, greatest, _ := z.Offsets(lo, hi)
			return lo + least, hi + greatest, nil
		},
		Shift: func(v int64) (int64, int64) {
			_, first, last := z.Offset(v)
			return first, last
		}}
}

func momentKernel(z *sqltype.Zone) *Kernel {
	return &Kernel{F: func(v int64) (int64, error) { return utcTime(z, v) }, First: math.MinInt64, Last: math.MaxInt64,
		Range: func(lo, hi int64) (int64, int64, error) { return momentRange(z, lo, hi) }}
}

// momentRange bounds when local times are.
func momentRange(z *sqltype.Zone, lo, hi int64) (int64, int64, error) {
	if !sqltype.InZones(lo) || !sqltype.InZones(hi) {
		return 0, 0, failed("timestamp out of range")
	}
	least, greatest, _ := z.Offsets(lo-zoneMargin, hi+zoneMargin)
	return lo - greatest, hi - least, nil
}

// truncIn makes date_trunc of moments that of a zone: units of a day and more are made of the local time, and
// the moment of their beginning is found; lesser ones keep the offset (timestamptz_trunc_internal).
func truncIn(f *Function, z *sqltype.Zone) {
	trunc := func(unit string) func(v int64) (int64, error) {
		return func(v int64) (int64, error) {
			local, err := localTime(z, v)
			if err != nil {
				return 0, err
			}
			start, err := dateTrunc(unit, local)
			if err != nil {
				return 0, err
			}
			if unitMicros(unit) < dayMicros {
				return v - (local - start), nil
			}
			return utcTime(z, start)
		}
	}
	f.Eval = func(args []vector.Value) (vector.Value, error) {
		if !sqltype.InZones(args[1].I) {
			return vector.NullValue, failed("timestamp out of range")
		}
		v, err := trunc(strings.ToLower(args[0].Str))(args[1].I)
		return vector.Value{I: v}, err
	}
	kernel := truncKernel(vector.TimestampTZ)
	f.Kernel = func(c Call, i int) *Kernel {
		k := kernel(c, i)
		if k == nil {
			return nil
		}
		in := k.ofLocal(z)
		in.F = trunc(strings.ToLower(c.Args[0].Const.Str))
		local := in.Range
		in.Range = func(lo, hi int64) (int64, int64, error) {
			lo, hi, err := local(lo, hi)
			if err != nil {
				return 0, 0, err
			}
			return momentRange(z, lo, hi)
		}
		return in
	}
}

// addIntervalIn adds months, days and time to a moment, the months and the days to its local time, each for
// itself (timestamptz_pl_interval).
func addIntervalIn(z *sqltype.Zone, v, months, days, micros int64) (int64, error) {
	if !sqltype.InZones(v) {
		return 0, failed("timestamp out of range")
	}
	for _, step := range [][2]int64{{months, 0}, {0, days}} {
		if step == [2]int64{} {
			continue
		}
		local, err := localTime(z, v)
		if err != nil {
			return 0, err
		}
		if local, err = addInterval(local, step[0], step[1], 0); err != nil {
			return 0, err
		}
		if v, err = utcTime(z, local); err != nil {
			return 0, err
		}
	}
	return addInterval(v, 0, 0, micros)
}

func plusIntervalIn(f *Function, z *sqltype.Zone) {
	add := func(v, months, days, micros int64) (int64, error) { return addIntervalIn(z, v, months, days, micros) }
	f.Eval = func(args []vector.Value) (vector.Value, error) {
		months, days, micros := intervalFields(args[1].Str)
		v, err := add(args[0].I, months, days, micros)
		return vector.Value{I: v}, err
	}
	f.Kernel = func(c Call, i int) *Kernel {
		if i != 0 {
			return nil
		}
		months, days, micros := intervalFields(c.Args[1].Const.Str)
		k := plusKernel(months, days, micros)
		k.First, k.Last = sqltype.TimestampFirst+zoneMargin, sqltype.TimestampLast-zoneMargin
		k.F, k.Shift = func(v int64) (int64, error) { return add(v, months, days, micros) }, nil
		within := plusRange(months, days, micros, 2*zoneMargin)
		if k.Range = within; k.Monotone {
			k.Monotone = false
			shift := days*dayMicros + micros
			k.Range = func(lo, hi int64) (int64, int64, error) { // the offset changes by less than a day each way
				_, _, err := within(lo, hi)
				return lo + shift - zoneMargin, hi + shift + zoneMargin, err
			}
		}
		return k
	}
}

// momentIn makes of the text of a local time the moment.
func momentIn(f *Function, z *sqltype.Zone) {
	eval := f.Eval
	f.Eval = func(args []vector.Value) (vector.Value, error) {
		v, err := eval(args)
		if err == nil && !v.Null {
			v.I, err = utcTime(z, v.I)
		}
		return v, err
	}
}

// zoneConstant takes the names of zones of the tz database that are no abbreviations of offsets, which the
// server looks for first (DecodeTimezoneName).
var zoneConstant = Param{Kind: vector.Text, Constants: []string{"UTC", "Etc/UTC", "GMT", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"}, Also: func(name string) bool {
	if sqltype.NamesUTC(name) {
		return true
	}
	region, city, ok := strings.Cut(name, "/")
	return ok && region != "" && city != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_/+-", r)
	})
}}

// errUnboundZone is of a function that no zone was given to: In gives it.
var errUnboundZone = failed("a time zone whose rules are not known")

// timezoneOf is timezone(zone, x), which AT TIME ZONE is, of a moment or of a local time.
func timezoneOf(oid uint32, of, to vector.Kind) Function {
	return Function{Name: "timezone", OID: oid, Args: []Param{zoneConstant, {Kind: of}}, Result: to, Zone: NamedZone,
		Samples: [][]string{nil, append([]string{"2024-03-31 02:30:00", "2024-10-27 02:30:00", "2024-03-31 01:00:00", "2024-10-27 01:00:00", "2024-10-27 00:59:59.999999"}, timestampSamples...)},
		Eval: func(args []vector.Value) (vector.Value, error) {
			if !sqltype.NamesUTC(args[0].Str) {
				return vector.NullValue, errUnboundZone
			}
			return vector.Value{I: args[1].I}, nil
		},
		in: func(f *Function, z *sqltype.Zone) {
			time, kernel := localTime, localKernel
			if of == vector.Timestamp {
				time, kernel = utcTime, momentKernel
			}
			f.Eval = timeAt(1, z, time)
			f.Kernel = func(_ Call, i int) *Kernel {
				if i != 1 {
					return nil
				}
				return kernel(z)
			}
		},
	}
}

// truncNamed is date_trunc(unit, x, zone).
func truncNamed() Function {
	f := dateTruncOf(1284, vector.TimestampTZ)
	f.Zone, f.zoneArg = NamedZone, 2
	f.Args, f.Samples = append(f.Args, zoneConstant), append(f.Samples, nil)
	eval := f.Eval
	f.Eval = func(args []vector.Value) (vector.Value, error) {
		if !sqltype.NamesUTC(args[2].Str) {
			return vector.NullValue, errUnboundZone
		}
		return eval(args)
	}
	kernel := f.Kernel
	f.Kernel = func(c Call, i int) *Kernel {
		if zone := c.Args[2].Const; zone == nil || !sqltype.NamesUTC(zone.Str) {
			return nil
		}
		return kernel(c, i)
	}
	return f
}
