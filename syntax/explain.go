package syntax

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// Explain is what EXPLAIN shows, and how.
type Explain struct {
	Analyze, Verbose, Costs, Timing, Summary bool
	Format                                   string // text, json, yaml or xml
}

// Explain recognises EXPLAIN of a SELECT, with options that every server takes. query is that SELECT, nil for
// anything else.
func (t *Text) Explain() (x *Explain, query *Text) {
	if t.refused != "" || len(t.stmts) != 1 {
		return nil, nil
	}
	s := t.stmts[0].Stmt.GetExplainStmt()
	if s == nil || s.Query.GetSelectStmt() == nil {
		return nil, nil
	}
	if x = explainOptions(s.Options); x == nil {
		return nil, nil
	}
	tokens := t.behindOptions(len(s.Options) > 0)
	if len(tokens) == 0 {
		return nil, nil
	}
	start := int(tokens[0].Start)
	return x, &Text{SQL: t.SQL[start-t.start:], stmts: []*pg.RawStmt{{Stmt: s.Query}}, tokens: tokens, start: start}
}

// behindOptions returns the tokens of an EXPLAIN behind its options, which stand in parentheses or are
// the keywords ANALYZE and VERBOSE. A SELECT may stand in parentheses, too.
func (t *Text) behindOptions(options bool) []*pg.ScanToken {
	tokens := slices.DeleteFunc(slices.Clone(t.tokens), func(token *pg.ScanToken) bool {
		return token.Token == pg.Token_SQL_COMMENT || token.Token == pg.Token_C_COMMENT
	})
	if len(tokens) < 2 {
		return nil
	}
	tokens = tokens[1:]
	switch {
	case !options:
		return tokens
	case tokens[0].Token == pg.Token_ASCII_40:
		end := slices.IndexFunc(tokens, func(token *pg.ScanToken) bool { return token.Token == pg.Token_ASCII_41 })
		return tokens[end+1:]
	}
	for len(tokens) > 0 && slices.Contains([]pg.Token{pg.Token_ANALYZE, pg.Token_ANALYSE, pg.Token_VERBOSE}, tokens[0].Token) {
		tokens = tokens[1:]
	}
	return tokens
}

// explainOptions reads the options, as ExplainQuery in explain.c does: of one that is given twice the last
// counts. It is nil where that would refuse them, where they are others, and where a server of a supported version
// has not got them.
func explainOptions(options []*pg.Node) *Explain {
	x := &Explain{Costs: true, Timing: true, Format: "text"}
	timing, summary := false, false
	for _, n := range options {
		o := n.GetDefElem()
		if o.GetDefname() == "format" {
			x.Format = o.Arg.GetString_().GetSval()
			if !slices.Contains([]string{"text", "json", "yaml", "xml"}, x.Format) {
				return nil
			}
			continue
		}
		value, ok := boolean(o.GetArg())
		if !ok {
			return nil
		}
		switch o.GetDefname() {
		case "analyze":
			x.Analyze = value
		case "verbose":
			x.Verbose = value
		case "costs":
			x.Costs = value
		case "timing":
			x.Timing, timing = value, true
		case "summary":
			x.Summary, summary = value, true
		case "buffers", "settings": // no buffers are read, no setting of the planner counts
		default:
			return nil
		}
	}
	if !timing {
		x.Timing = x.Analyze
	}
	if !summary {
		x.Summary = x.Analyze
	}
	if x.Timing && !x.Analyze {
		return nil
	}
	return x
}

// Relations returns the names in FROM of a SELECT, those of its sub-selects included, as they are written: a schema, ""
// where none is, and the relation. Some may be of WITH.
func (t *Text) Relations() (names [][2]string) {
	sel, _ := t.Select()
	if sel == nil {
		return nil
	}
	Walk(t.stmts[0].Stmt, func(n *pg.Node) bool {
		if r := n.GetRangeVar(); r != nil && r.Catalogname == "" {
			name := [2]string{r.Schemaname, r.Relname}
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		return true
	})
	return names
}
