package syntax

import (
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// Setting is a statement about a setting whose name begins with that of the schema pgaccel.
type Setting struct {
	Name  string // in lower case
	Value string // of a SET to one constant
	Set   bool   // it is such
	Show  bool
	Local bool
	// Start and End are where the statement is in the text. Alone says that it is all of that.
	Start, End int
	Alone      bool
}

// Settings returns the statements of the text that set, reset or show settings of pgaccel's.
func (t *Text) Settings() (list []Setting) {
	for _, raw := range t.stmts {
		s := Setting{Start: int(raw.StmtLocation), End: int(raw.StmtLocation + raw.StmtLen), Alone: len(t.stmts) == 1}
		if raw.StmtLen == 0 {
			s.End = len(t.SQL)
		}
		if show := raw.Stmt.GetVariableShowStmt(); show != nil {
			s.Name, s.Show = strings.ToLower(show.Name), true
		}
		if set := raw.Stmt.GetVariableSetStmt(); set != nil {
			s.Name, s.Local = strings.ToLower(set.Name), set.IsLocal
			if set.Kind == pg.VariableSetKind_VAR_SET_VALUE && len(set.Args) == 1 {
				s.Value, s.Set = constantText(set.Args[0].GetAConst())
			}
		}
		if strings.HasPrefix(s.Name, VirtualSchema+".") {
			list = append(list, s)
		}
	}
	return list
}

// constantText is the text that SET makes of a constant.
func constantText(c *pg.A_Const) (text string, ok bool) {
	switch {
	case c.GetSval() != nil:
		return c.GetSval().Sval, true
	case c.GetIval() != nil:
		return strconv.Itoa(int(c.GetIval().Ival)), true
	case c.GetFval() != nil:
		return c.GetFval().Fval, true
	}
	return "", false
}
