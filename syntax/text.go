package syntax

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// maxNesting bounds the depth of the syntax trees that the C parser may build.
// Its walkers recurse without a check of their own: `a + a + ...` of 30,000 terms
// overflows an 8 MiB thread stack and ends the process (measured). Depth is counted
// in tokens, which is generous: a level of nesting takes at least one.
const maxNesting = 4000

// Why a text has no tree.
const unparsable, tooDeep = "cannot be parsed", "nested too deeply"

// scan returns the tokens of a text, or why it must not be given to the C parser, which would read
// up to a zero byte.
func scan(sql string) (tokens []*pg.ScanToken, refused string) {
	if strings.IndexByte(sql, 0) >= 0 || !utf8.ValidString(sql) {
		return nil, unparsable
	}
	scan, err := pg.Scan(sql)
	if err != nil {
		return nil, unparsable
	}
	// A comma separates siblings, so that what a list nests is what its deepest
	// member nests, and a list in parentheses counts for what surrounds it. Chains
	// of set operations go across commas and count once more.
	type frame struct{ deepest, current int }
	stack := []frame{{}}
	setOps := 0
	for _, t := range scan.Tokens {
		top := &stack[len(stack)-1]
		switch t.Token {
		case pg.Token_ASCII_40, pg.Token_ASCII_91: // ( [
			stack = append(stack, frame{})
			if len(stack) > maxNesting {
				return nil, tooDeep
			}
		case pg.Token_ASCII_41, pg.Token_ASCII_93: // ) ]
			if len(stack) == 1 {
				continue // a syntax error, for the parser to report
			}
			inner := max(top.deepest, top.current)
			stack = stack[:len(stack)-1]
			stack[len(stack)-1].current += inner + 2
		case pg.Token_ASCII_44, pg.Token_ASCII_59: // , ;
			top.deepest, top.current = max(top.deepest, top.current), 0
		case pg.Token_UNION, pg.Token_INTERSECT, pg.Token_EXCEPT:
			setOps++
		case pg.Token_SQL_COMMENT, pg.Token_C_COMMENT, pg.Token_SCONST, pg.Token_ICONST, pg.Token_FCONST:
		default:
			top.current++
		}
	}
	depth := setOps
	for _, f := range stack {
		depth += max(f.deepest, f.current)
	}
	if depth > maxNesting {
		return nil, tooDeep
	}
	return scan.Tokens, ""
}

// Text is a client's text, parsed. Nothing changes it, so that many may read it at once.
type Text struct {
	SQL     string
	refused string // why it has no tree; else ""
	stmts   []*pg.RawStmt
	tokens  []*pg.ScanToken
	start   int // of SQL in the text that was parsed, where locations and tokens count from
}

// Parses counts the calls of the parser for the texts of clients, and for definitions of views.
var Parses atomic.Int64

// Parse parses a text. One that cannot be parsed is a Text, too: it has no SELECT.
func Parse(sql string) *Text {
	t := ParsePart(sql)
	if t.tokens != nil {
		Parses.Add(1)
	}
	return t
}

// ParsePart is Parse for a text that is made of a part of a client's.
func ParsePart(sql string) *Text {
	t := &Text{SQL: sql}
	if t.tokens, t.refused = scan(sql); t.refused == "" {
		tree, err := pg.Parse(sql)
		if err != nil {
			t.refused = unparsable
		}
		t.stmts = tree.GetStmts()
	}
	return t
}

// Select returns the SELECT that the text is; nil where it is something else, and what.
func (t *Text) Select() (sel *pg.SelectStmt, other string) {
	if t.refused == "" && len(t.stmts) != 1 {
		return nil, fmt.Sprintf("%d statements", len(t.stmts))
	} else if t.refused != "" {
		return nil, t.refused
	}
	return t.stmts[0].Stmt.GetSelectStmt(), ""
}

// Split recognises what ODBC sends: BEGIN, START TRANSACTION, SAVEPOINT, RELEASE, SET or SHOW
// statements glued to one SELECT, which comes last. prefix is the text before last, with its
// semicolons, and begins says that it begins a transaction first of all; last is nil for anything
// else, a lone SELECT included.
func (t *Text) Split() (prefix string, begins bool, last *Text) {
	n := len(t.stmts) - 1
	if n < 1 || t.stmts[n].Stmt.GetSelectStmt() == nil {
		return "", false, nil
	}
	begins, ok := glued(t.stmts[:n])
	if !ok {
		return "", false, nil
	}
	at := int(t.stmts[n].StmtLocation)
	behind := slices.IndexFunc(t.tokens, func(token *pg.ScanToken) bool { return int(token.Start) >= at })
	return t.SQL[:at], begins, &Text{SQL: t.SQL[at:], stmts: t.stmts[n:], tokens: t.tokens[behind:], start: at}
}

// glued reports whether the statements are such as Split takes before a SELECT, and whether the first
// begins a transaction.
func glued(stmts []*pg.RawStmt) (begins, ok bool) {
	inBlock := false
	for i, raw := range stmts {
		set, kind := raw.Stmt.GetVariableSetStmt(), raw.Stmt.GetTransactionStmt().GetKind()
		switch {
		case kind == pg.TransactionStmtKind_TRANS_STMT_BEGIN, kind == pg.TransactionStmtKind_TRANS_STMT_START:
			inBlock, begins = true, begins || i == 0
		case kind == pg.TransactionStmtKind_TRANS_STMT_SAVEPOINT, kind == pg.TransactionStmtKind_TRANS_STMT_RELEASE:
		// Several statements in one Query are one implicit transaction: SET LOCAL
		// would reach the SELECT there, and would not once they are sent apart.
		case set != nil && (inBlock || !set.IsLocal), raw.Stmt.GetVariableShowStmt() != nil:
		default:
			return false, false
		}
	}
	return begins, true
}
