package olap

import (
	"math/rand/v2"
	"slices"

	"pgaccel/catalog"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// otherKinds are the kinds that have no column in ownShape: the generators know nothing of
// them but what sqltype has.
var otherKinds = slices.DeleteFunc(vector.Kinds(), func(k vector.Kind) bool {
	return slices.ContainsFunc(ownShape, func(c catalog.Column) bool { return c.Type.Kind == k })
})

// shape are the columns of random tables.
var shape = func() []catalog.Column {
	columns := slices.Clone(ownShape)
	for _, k := range otherKinds {
		columns = append(columns, catalog.Column{Name: sqltype.Of(k).Name, Type: vector.TypeOf(k)})
	}
	return columns
}()

// comparableTypes are the types that conditions compare.
var comparableTypes = func() []vector.Type {
	types := slices.Clone(ownComparable)
	for _, k := range otherKinds {
		if !k.IsDocument() {
			types = append(types, vector.TypeOf(k))
		}
	}
	return types
}()

// otherDatum makes a value of one of otherKinds: few values, or the ends of the type.
func otherDatum(r *rand.Rand, k vector.Kind, edge bool) vector.Datum {
	typ := sqltype.Of(k)
	if edge && typ.Ranged() {
		return vector.Int(k, []int64{typ.Least, typ.Greatest}[r.IntN(2)])
	}
	d, _ := typ.Parse(typ.Samples[r.IntN(len(typ.Samples))])
	return d
}
