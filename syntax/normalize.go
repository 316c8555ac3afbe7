package syntax

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// Normalize returns the text with its constants replaced by $n, as pg_query's function of that
// name does, which parses the text: the shape under which executions are counted. A text that
// cannot be parsed may hold anything, and is not shown. Strings that it leaves (COMMENT ... IS, say) are
// replaced, too, and comments with the tags of sqlcommenter are left out: they are others in each execution.
//
// positions are where the bytes at of the text, at which words begin, stand in it: in characters,
// from 1, as PostgreSQL counts. One is 0 where at is negative.
func (t *Text) Normalize(at ...int) (text string, positions []int) {
	positions = make([]int, len(at))
	if t.refused != "" {
		return "<unparsable>", positions
	}
	c := constants{numbers: map[int32]int{}}
	for _, raw := range t.stmts {
		Walk(raw.Stmt, c.add)
	}
	for _, token := range t.tokens {
		if slices.Contains(stringTokens, token.Token) && c.numbers[token.Start] == 0 {
			c.record(token.Start)
		}
	}
	var b strings.Builder
	from := 0
	upTo := func(end int) {
		for i, p := range at {
			if from <= p && p <= end {
				positions[i] = utf8.RuneCountInString(b.String()) + utf8.RuneCountInString(t.SQL[from:p]) + 1
			}
		}
		b.WriteString(t.SQL[from:end])
	}
	negative := false // the number behind a minus is to come
	for _, token := range t.tokens {
		if start := int(token.Start) - t.start; token.Token == pg.Token_C_COMMENT && tags.MatchString(t.SQL[start:]) {
			upTo(from + len(strings.TrimRight(t.SQL[from:start], " ")))
			from = int(token.End) - t.start
			continue
		}
		if n := c.numbers[token.Start]; n > 0 {
			upTo(int(token.Start) - t.start)
			fmt.Fprintf(&b, "$%d", c.params+n)
		} else if !negative || token.Token != pg.Token_ICONST && token.Token != pg.Token_FCONST {
			continue
		}
		from, negative = int(token.End)-t.start, token.Token == pg.Token_ASCII_45
	}
	upTo(len(t.SQL))
	return b.String(), positions
}

var stringTokens = []pg.Token{pg.Token_SCONST, pg.Token_USCONST, pg.Token_BCONST, pg.Token_XCONST}

// tags is the beginning of a comment as sqlcommenter writes it: key='value',key='value', both URL-encoded.
var tags = regexp.MustCompile(`^/\*\s*[\w.%+-]+='`)

// constants are those of a text.
type constants struct {
	numbers map[int32]int // by location, from 1
	last    int           // number
	params  int           // the number of the text's last parameter
}

func (c *constants) record(location int32) {
	if location >= 0 {
		c.last++
		c.numbers[location] = c.last
	}
}

// add records the constants of a node. It returns whether they are those below it.
func (c *constants) add(n *pg.Node) bool {
	switch x := n.Node.(type) {
	case *pg.Node_AConst:
		c.record(x.AConst.Location)
	case *pg.Node_ParamRef:
		c.params = max(c.params, int(x.ParamRef.Number))
	case *pg.Node_DefElem: // an option's: a password, say
		c.record(x.DefElem.ArgLocation)
	case *pg.Node_NotifyStmt:
		c.record(x.NotifyStmt.PayloadLocation)
	case *pg.Node_CreateSubscriptionStmt:
		c.record(x.CreateSubscriptionStmt.ConninfoLocation)
	case *pg.Node_AlterSubscriptionStmt:
		c.record(x.AlterSubscriptionStmt.ConninfoLocation)
	case *pg.Node_SelectStmt:
		c.query(x.SelectStmt)
		return false
	case *pg.Node_CommonTableExpr: // not SEARCH and CYCLE
		Walk(x.CommonTableExpr.Ctequery, c.add)
		return false
	case *pg.Node_TransactionStmt:
		return false
	}
	return true
}

// query records the constants of a SELECT, in pg_query's order. GROUP BY 1 and ORDER BY 1 keep
// theirs, and an expression in GROUP BY has the numbers of the same one in the select list.
func (c *constants) query(s *pg.SelectStmt) {
	if s == nil {
		return
	}
	Walk(s.DistinctClause, c.add)
	Walk(s.IntoClause, c.add)
	before := map[string]int{}
	for _, n := range s.TargetList {
		if len(s.GroupClause) > 0 && n.GetResTarget().Val.GetColumnRef() == nil {
			before[unplaced(n.GetResTarget().Val)] = c.last
		}
		Walk(n, c.add)
	}
	Walk(s.FromClause, c.add)
	Walk(s.WhereClause, c.add)
	for _, n := range s.GroupClause {
		last := c.last
		if i, ok := before[unplaced(n)]; ok {
			c.last = i
		}
		if !isInteger(n) {
			Walk(n, c.add)
		}
		c.last = max(last, c.last)
	}
	order := slices.DeleteFunc(slices.Clone(s.SortClause), func(n *pg.Node) bool { return isInteger(n.GetSortBy().GetNode()) })
	for _, part := range []any{order, s.HavingClause, s.WindowClause, s.ValuesLists, s.LimitOffset, s.LimitCount, s.LockingClause, s.WithClause} {
		Walk(part, c.add)
	}
	c.query(s.Larg)
	c.query(s.Rarg)
}

func isInteger(n *pg.Node) bool {
	_, ok := n.GetAConst().GetVal().(*pg.A_Const_Ival)
	return ok
}

var locations = regexp.MustCompile(`location:-?\d+`)

// unplaced writes an expression without where it stands.
func unplaced(n *pg.Node) string { return locations.ReplaceAllString(n.String(), "") }
