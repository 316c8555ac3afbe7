package replica

import (
	"pgaccel/catalog"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// Columns of interval are held in 64 bits as long as all of their values are days of 24 hours and a time of the same sign: of these
// equal ones print alike. A column that has another value is copied again as one of the opaque type.

const reasonInterval = "it holds an interval with months, with more hours than a day has, or of two signs"

// wholeInterval reads one that is held in 64 bits.
func (c *columnDecoder) wholeInterval(v []byte) (int64, error) {
	d, ok := c.receive(v)
	if !ok {
		return 0, &columnError{col: c.col, reason: reasonInterval}
	}
	return d.I, nil
}

// opaqueInterval makes a column that is of vector.Interval an opaque one, which it may be already; ok is false of others, and of
// domains, which are left out.
func opaqueInterval(c *catalog.Column) (ok bool) {
	if sqltype.IsOpaqueInterval(c.Type) {
		return true
	}
	if c.Type.Kind != vector.Interval || c.Domain {
		return false
	}
	t := sqltype.OpaqueIntervalType
	t.Typmod = c.Type.Typmod
	c.Type = t
	return true
}

// keepIntervals notes the columns of a saved table that are opaque intervals: so is what the catalog says of it.
func (r *registry) keepIntervals(meta *catalog.Table) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range meta.Columns {
		if !sqltype.IsOpaqueInterval(c.Type) {
			continue
		}
		if r.badColumns[meta.OID] == nil {
			r.badColumns[meta.OID] = map[int16]string{}
		}
		r.badColumns[meta.OID][c.AttNum] = reasonInterval
	}
}
