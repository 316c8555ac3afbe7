package syntax

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// Copy is how COPY ... TO STDOUT writes its rows.
type Copy struct {
	CSV, Binary              bool // else text
	Header                   bool
	Delimiter, Quote, Escape byte
	Null                     string
	ForceQuote               []string // columns
	ForceQuoteAll            bool

	// Table says that it names a table, and Columns are those that it lists of it, nil for all.
	Table   bool
	Columns []string
}

// Copy recognises COPY ... TO STDOUT with options that the server takes, as far as the text tells. rows
// is the SELECT of what it writes, nil for anything else: of a table, the rows of that alone.
func (t *Text) Copy() (c *Copy, rows *Text) {
	if t.refused != "" || len(t.stmts) != 1 {
		return nil, nil
	}
	s := t.stmts[0].Stmt.GetCopyStmt()
	if s == nil || s.IsFrom || s.IsProgram || s.Filename != "" || s.WhereClause != nil {
		return nil, nil
	}
	if c = copyOptions(s.Options); c == nil {
		return nil, nil
	}
	if s.Query == nil {
		return c.table(s)
	}
	if s.Query.GetSelectStmt() == nil || hasParameters(s.Query) {
		return nil, nil
	}
	return c, t.parenthesised(s.Query)
}

// hasParameters reports whether a query names parameters.
func hasParameters(query *pg.Node) (has bool) {
	Walk(query, func(n *pg.Node) bool {
		has = has || n.GetParamRef() != nil
		return true
	})
	return has
}

// parenthesised returns what stands in the first parentheses of the text, which is query.
func (t *Text) parenthesised(query *pg.Node) *Text {
	first := slices.IndexFunc(t.tokens, func(token *pg.ScanToken) bool { return token.Token == pg.Token_ASCII_40 })
	depth := 0
	for i := first; i >= 0 && i < len(t.tokens); i++ {
		switch t.tokens[i].Token {
		case pg.Token_ASCII_40:
			depth++
		case pg.Token_ASCII_41:
			depth--
		}
		if depth == 0 {
			start, end := int(t.tokens[first].End), int(t.tokens[i].Start)
			return &Text{SQL: t.SQL[start-t.start : end-t.start], stmts: []*pg.RawStmt{{Stmt: query}}, tokens: t.tokens[first+1 : i], start: start}
		}
	}
	return nil
}

// table is Copy of a table.
func (c *Copy) table(s *pg.CopyStmt) (*Copy, *Text) {
	if s.Relation.GetCatalogname() != "" {
		return nil, nil
	}
	list := "*"
	for i, n := range s.Attlist {
		name := n.GetString_().GetSval()
		if slices.Contains(c.Columns, name) {
			return nil, nil // the server refuses that
		}
		c.Columns = append(c.Columns, name)
		if i == 0 {
			list = quoted(name)
		} else {
			list += ", " + quoted(name)
		}
	}
	c.Table = true
	from := quoted(s.Relation.GetRelname())
	if schema := s.Relation.GetSchemaname(); schema != "" {
		from = quoted(schema) + "." + from
	}
	return c, Parse("SELECT " + list + " FROM ONLY " + from)
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// copyOptions reads the options, as ProcessCopyOptions in copy.c does; nil where it would refuse them, or
// where they are others than those of Copy.
func copyOptions(options []*pg.Node) *Copy {
	c := &Copy{}
	given := map[string]*pg.Node{}
	for _, n := range options {
		o := n.GetDefElem()
		if _, twice := given[o.GetDefname()]; o == nil || twice {
			return nil
		}
		given[o.Defname] = o.Arg
	}
	ok := true
	text := func(option, otherwise string) string {
		arg, has := given[option]
		delete(given, option)
		if !has {
			return otherwise
		}
		s, is := arg.GetNode().(*pg.Node_String_)
		if ok = ok && is; !is {
			return otherwise
		}
		return s.String_.Sval
	}
	lines := false // options that a file in binary format has not
	for _, option := range []string{"header", "delimiter", "null"} {
		_, has := given[option]
		lines = lines || has
	}
	switch text("format", "text") {
	case "text":
	case "csv":
		c.CSV = true
	case "binary":
		c.Binary = true
		ok = ok && !lines
	default:
		return nil
	}
	switch strings.ToLower(text("encoding", "UTF8")) {
	case "utf8", "utf-8":
	default:
		return nil
	}
	if arg, has := given["header"]; has {
		var is bool
		c.Header, is = boolean(arg)
		ok = ok && is
		delete(given, "header")
	}
	delimiter, null := "\t", `\N`
	if c.CSV {
		delimiter, null = ",", ""
	}
	delimiter, c.Null = text("delimiter", delimiter), text("null", null)
	if c.CSV {
		quote := text("quote", `"`)
		escape := text("escape", quote)
		if ok = ok && len(quote) == 1 && len(escape) == 1; !ok {
			return nil
		}
		c.Quote, c.Escape = quote[0], escape[0]
		ok = c.forceQuote(given) && quote != delimiter && !strings.Contains(c.Null, quote)
	}
	if !ok || len(given) > 0 || len(delimiter) != 1 || strings.Contains(c.Null, delimiter) || strings.ContainsAny(delimiter+c.Null, "\r\n") ||
		!c.CSV && strings.Contains(`\.abcdefghijklmnopqrstuvwxyz0123456789`, delimiter) {
		return nil
	}
	c.Delimiter = delimiter[0]
	return c
}

// forceQuote reads FORCE_QUOTE.
func (c *Copy) forceQuote(given map[string]*pg.Node) bool {
	arg, has := given["force_quote"]
	delete(given, "force_quote")
	switch {
	case !has:
		return true
	case arg.GetAStar() != nil:
		c.ForceQuoteAll = true
		return true
	case arg.GetList() == nil:
		return false
	}
	for _, n := range arg.GetList().Items {
		name := n.GetString_()
		if name == nil || slices.Contains(c.ForceQuote, name.Sval) {
			return false
		}
		c.ForceQuote = append(c.ForceQuote, name.Sval)
	}
	return true
}

// boolean reads an option's value as defGetBoolean does.
func boolean(arg *pg.Node) (value, ok bool) {
	switch x := arg.GetNode().(type) {
	case nil:
		return true, true
	case *pg.Node_Integer:
		return x.Integer.Ival == 1, x.Integer.Ival == 0 || x.Integer.Ival == 1
	case *pg.Node_Boolean:
		return x.Boolean.Boolval, true
	case *pg.Node_String_:
		switch strings.ToLower(x.String_.Sval) {
		case "true", "on":
			return true, true
		case "false", "off":
			return false, true
		}
	}
	return false, false
}
