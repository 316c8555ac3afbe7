package device

import "testing"

func TestCheck(t *testing.T) {
	fill := func(side bool) Command { return Command{Op: OpFill, Side: side} }
	for _, test := range []struct {
		name  string
		b     Batch
		side  bool
		wrong bool
	}{
		{name: "nothing", b: Batch{}},
		{name: "one stream", b: Batch{Commands: []Command{fill(false)}}},
		{name: "no such stream", b: Batch{Stream: Streams}, wrong: true},
		{name: "a negative stream", b: Batch{Stream: -1}, wrong: true},
		{name: "two streams", b: Batch{Copies: 1, Commands: []Command{fill(false), fill(true)}}, side: true},
		{name: "one stream as two", b: Batch{Commands: []Command{fill(true)}}, wrong: true},
		{name: "no such second stream", b: Batch{Copies: Streams, Commands: []Command{fill(true)}}, wrong: true},
		{name: "a mark beside", b: Batch{Copies: 1, Commands: []Command{{Op: OpMark, Side: true}}}, wrong: true},
		{name: "events", b: Batch{Copies: 1, Commands: []Command{{Op: OpRecord, Event: Events - 1}, {Op: OpAwait, Side: true, Event: Events - 1}}}, side: true},
		{name: "not recorded", b: Batch{Copies: 1, Commands: []Command{{Op: OpRecord, Event: 1}, {Op: OpAwait, Side: true, Event: 2}}}, wrong: true},
		{name: "recorded too late", b: Batch{Copies: 1, Commands: []Command{{Op: OpAwait, Side: true}, {Op: OpRecord}}}, wrong: true},
		{name: "too many events", b: Batch{Commands: []Command{{Op: OpRecord, Event: Events}}}, wrong: true},
	} {
		side, err := test.b.Check()
		if side != test.side || (err != nil) != test.wrong {
			t.Errorf("%s: %v, %v", test.name, side, err)
		}
	}
}
