package plan

import (
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
)

// defaultCollation is the OID of the database's collation (pg_collation.dat), which text of no column has.
const defaultCollation = 100

// casedFunction is a function under a collation that has these cases.
type casedFunction struct {
	f     *sqlfn.Function
	cases *sqltype.Cases
}

// inCases returns a call that changes the case of letters, or ignores it, as it is under its collation where the cases of that are
// known. Calls are planned so that they fail outside of ASCII.
func (v values) inCases(e Expr) Expr {
	c, ok := e.(*Call)
	if !ok || c.Func == nil || !c.Func.CanCases() || len(v.cases) == 0 {
		return e
	}
	collation := uint32(defaultCollation)
	for _, a := range c.Args {
		if oid := a.Type().Collation.OID; oid != 0 {
			collation = oid
			break
		}
	}
	cases := v.cases[collation]
	if cases == nil {
		return e
	}
	key := casedFunction{c.Func, cases}
	f := v.cased[key]
	if f == nil {
		f = c.Func.InCases(cases)
		v.cased[key] = f
	}
	d := *c
	if d.Func = f; d.Op == OpFunc {
		return folded(&d)
	}
	return &d
}
