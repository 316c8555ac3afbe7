package syntax

import (
	"fmt"
	"testing"
)

func TestCursor(t *testing.T) {
	f := func(sql, want string) {
		t.Helper()
		got := "none"
		if c, rows := Parse(sql).Cursor(); rows != nil {
			got = fmt.Sprintf("%s %v|%s|%v|%s|%s|%d|%s|", c.Name, c.Hold, c.Prefix, c.Begins, c.Declare, c.Fetch, c.Rows, rows.SQL)
			if c.Prefix+c.Declare+c.Fetch != sql {
				t.Errorf("%s: parts %q", sql, []string{c.Prefix, c.Declare, c.Fetch})
			}
			if sel, other := rows.Select(); sel == nil {
				t.Errorf("%s: the rows are %s", sql, other)
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", sql, got, want)
		}
	}
	f("declare C cursor for select 1", "c false||false|declare C cursor for select 1||0|select 1|")
	f(`declare "C""d" insensitive no scroll cursor with hold for (select 1) -- x`, `C"d true||false|declare "C""d" insensitive no scroll cursor with hold for (select 1) -- x||0|(select 1) -- x|`)
	f(`BEGIN;declare "for" cursor for select substring('é' for 1) ; fetch 10 in "for";`, `for false|BEGIN;|true|declare "for" cursor for select substring('é' for 1) ;| fetch 10 in "for";|10|select substring('é' for 1) |`)
	f("savepoint a; declare c cursor for select 1;fetch all c", "c false|savepoint a;|false| declare c cursor for select 1;|fetch all c|0|select 1|")
	for _, sql := range []string{"select 1", "", "declare", "declare c scroll cursor for select 1", "declare c binary cursor for select 1", "declare c cursor for select $1::int",
		"declare c cursor for select 1; fetch 1 from d", "declare c cursor for select 1; move 1 from c", "declare c cursor for select 1; fetch -1 from c", "declare c cursor for select 1; select 1",
		"delete from t; declare c cursor for select 1", "fetch 1 from c", "declare c cursor for select 1; fetch c; fetch c"} {
		f(sql, "none")
	}
}

func TestCursorCommands(t *testing.T) {
	for sql, want := range map[string]string{
		"fetch c": "[{true false false false c 1}]", "FETCH FORWARD 7 IN \"C\";": "[{true false false false C 7}]", "fetch all c": "[{true false false false c 0}]",
		"fetch next from c": "[{true false false false c 1}]", "fetch 2147483647 c": "[{true false false false c 2147483647}]", "fetch forward all in c": "[{true false false false c 0}]",
		"fetch 0 c": "[]", "fetch -1 c": "[]", "fetch prior c": "[]", "fetch first c": "[]", "fetch absolute 1 c": "[]", "fetch backward all c": "[]", "fetch relative 1 c": "[]", "move c": "[]",
		"close c": "[{false true false false c 0}]", "close all": "[{false true false false  0}]", "close c; end": "[{false true false false c 0} {false false true false  0}]",
		"abort": "[{false false false true  0}]", "rollback to a": "[]", "commit; begin": "[]", "close c; fetch d": "[]", "fetch d; close c": "[]", "prepare transaction 'a'": "[]", "fetch": "[]", "": "[]",
	} {
		if got := fmt.Sprint(Parse(sql).CursorCommands()); got != want {
			t.Errorf("%s: %s, want %s", sql, got, want)
		}
	}
}
