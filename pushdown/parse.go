package pushdown

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// maxNesting bounds the depth of the syntax trees that the C parser may build.
// Its walkers recurse without a check of their own: `a + a + ...` of 30,000 terms
// overflows an 8 MiB thread stack and ends the process (measured). Depth is counted
// in tokens, which is generous: a level of nesting takes at least one.
const maxNesting = 4000

var errNesting = errors.New("nested too deeply")

// guard reports an error for text that must not be given to the C parser.
func guard(sql string) error {
	if strings.IndexByte(sql, 0) >= 0 {
		return errors.New("zero byte in text") // the C parser would read up to it
	}
	if !utf8.ValidString(sql) {
		return errors.New("not UTF-8")
	}
	if len(sql) <= maxNesting {
		return nil
	}
	scan, err := pg.Scan(sql)
	if err != nil {
		return err
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
				return errNesting
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
		return errNesting
	}
	return nil
}

// parse returns the statements of sql.
func parse(sql string) ([]*pg.RawStmt, error) {
	if err := guard(sql); err != nil {
		return nil, err
	}
	tree, err := pg.Parse(sql)
	if err != nil {
		return nil, err
	}
	return tree.Stmts, nil
}

// Normalize returns sql with its constants replaced by $n: the shape under which
// executions are counted. An error means that sql cannot be parsed.
//
// positions are where the bytes at of sql, at which words begin, stand in it: in characters,
// from 1, as PostgreSQL counts. One is 0 where at is negative.
func Normalize(sql string, at ...int) (text string, positions []int, err error) {
	if err := guard(sql); err != nil {
		return "", nil, err
	}
	// Constants before a place may be longer than their $n: a comment marks it.
	mark := "/**/"
	for strings.Contains(sql, mark) {
		mark = mark[:2] + "." + mark[2:]
	}
	places := slices.DeleteFunc(slices.Clone(at), func(i int) bool { return i < 0 || i > len(sql) })
	slices.Sort(places)
	places = slices.Compact(places)
	var marked strings.Builder
	from := 0
	for _, i := range places {
		marked.WriteString(sql[from:i] + mark)
		from = i
	}
	marked.WriteString(sql[from:])
	if text, err = pg.Normalize(marked.String()); err != nil {
		return "", nil, err
	}
	found := map[int]int{}
	for _, i := range places {
		before, after, ok := strings.Cut(text, mark)
		if !ok {
			break
		}
		text, found[i] = before+after, utf8.RuneCountInString(before)+1
	}
	for _, i := range at {
		positions = append(positions, found[i])
	}
	return text, positions, nil
}

// Split is a simple Query of several statements in two parts: Prefix + Last is
// the text that was split.
type Split struct {
	Prefix string // the statements before the last, with their semicolons
	Last   string // one SELECT
}

// SplitPrefix recognises what ODBC sends: BEGIN, START TRANSACTION, SAVEPOINT,
// RELEASE, SET or SHOW statements glued to one SELECT, which comes last. ok is
// false for anything else, a lone SELECT included.
func SplitPrefix(sql string) (s Split, ok bool) {
	stmts, err := parse(sql)
	if err != nil || len(stmts) < 2 {
		return s, false
	}
	inBlock := false
	for _, raw := range stmts[:len(stmts)-1] {
		switch n := raw.Stmt.GetNode().(type) {
		case *pg.Node_TransactionStmt:
			switch n.TransactionStmt.Kind {
			case pg.TransactionStmtKind_TRANS_STMT_BEGIN, pg.TransactionStmtKind_TRANS_STMT_START:
				inBlock = true
			case pg.TransactionStmtKind_TRANS_STMT_SAVEPOINT, pg.TransactionStmtKind_TRANS_STMT_RELEASE:
			default:
				return s, false
			}
		case *pg.Node_VariableSetStmt:
			// Several statements in one Query are one implicit transaction: SET LOCAL
			// would reach the SELECT there, and would not once they are sent apart.
			if n.VariableSetStmt.IsLocal && !inBlock {
				return s, false
			}
		case *pg.Node_VariableShowStmt:
		default:
			return s, false
		}
	}
	last := stmts[len(stmts)-1]
	if last.Stmt.GetSelectStmt() == nil {
		return s, false
	}
	at := int(last.StmtLocation)
	if at <= 0 || at > len(sql) {
		return s, false
	}
	return Split{Prefix: sql[:at], Last: sql[at:]}, true
}
