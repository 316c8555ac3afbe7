package device

import (
	"slices"
	"testing"
)

func TestCheck(t *testing.T) {
	fill := func(side uint8) Command { return Command{Op: OpFill, Side: side} }
	const last = Streams - 1
	for _, test := range []struct {
		name    string
		b       Batch
		streams []int // nil: it is wrong
	}{
		{name: "nothing", b: Batch{}, streams: []int{0}},
		{name: "one stream", b: Batch{Stream: last, Commands: []Command{fill(0)}}, streams: []int{last}},
		{name: "no such stream", b: Batch{Stream: Streams}},
		{name: "a negative stream", b: Batch{Stream: -1}},
		{name: "two streams", b: Batch{Stream: 2, Commands: []Command{fill(0), fill(1)}}, streams: []int{2, last}},
		{name: "three streams", b: Batch{Stream: 2, Commands: []Command{fill(1), fill(2)}}, streams: []int{2, last - 1, last}},
		{name: "one copy stream beside the other", b: Batch{Stream: last, Commands: []Command{fill(2)}}, streams: []int{last - 1, last}},
		{name: "one stream as two", b: Batch{Stream: last, Commands: []Command{fill(1)}}},
		{name: "no such copy stream", b: Batch{Commands: []Command{fill(CopyStreams + 1)}}},
		{name: "a mark beside", b: Batch{Commands: []Command{{Op: OpMark, Side: 1}}}},
		{name: "events", b: Batch{Commands: []Command{{Op: OpRecord, Event: Events - 1}, {Op: OpAwait, Side: 1, Event: Events - 1}}}, streams: []int{0, last}},
		{name: "not recorded", b: Batch{Commands: []Command{{Op: OpRecord, Event: 1}, {Op: OpAwait, Side: 1, Event: 2}}}},
		{name: "recorded too late", b: Batch{Commands: []Command{{Op: OpAwait, Side: 1}, {Op: OpRecord}}}},
		{name: "too many events", b: Batch{Commands: []Command{{Op: OpRecord, Event: Events}}}},
	} {
		streams, err := test.b.Check()
		if !slices.Equal(streams, test.streams) || (err != nil) != (test.streams == nil) {
			t.Errorf("%s: %v, %v", test.name, streams, err)
		}
	}
}
