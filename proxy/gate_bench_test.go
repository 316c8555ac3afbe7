package proxy

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"

	"pgaccel/wire"
)

// BenchmarkGateInBlock is one gate in a transaction block, as the server sees it: alone, and
// inside of its savepoint.
func BenchmarkGateInBlock(b *testing.B) {
	for _, guarded := range []bool{false, true} {
		b.Run(map[bool]string{false: "alone", true: "guarded"}[guarded], func(b *testing.B) {
			c := mustConnect(b, postgresAddress(), "")
			defer c.Close()
			s := newSession(context.Background(), newFake(), nil)
			st := candidate(numbers(1))
			st.plain = true
			call := st.Gate()
			form, params := call.Form, call.Params
			c.exchange(query("begin"))
			c.exchange(s.gateOf(nil, form, params, true), syncing())
			var batch []byte
			if guarded {
				batch = s.command(batch, savepointSQL)
			}
			batch = s.gateOf(batch, form, params, false)
			if guarded {
				batch = s.command(batch, releaseSQL)
			}
			batch = appendEmpty(batch, wire.Sync)
			buf := make([]byte, 64<<10)
			before := processorTime(c.pid())
			for b.Loop() {
				c.Write(batch)
				for n := 0; !bytes.HasSuffix(buf[:n], appendReady(nil, 'T')); {
					more, err := c.Read(buf[n:])
					if n += more; err != nil || bytes.Contains(buf[:n], []byte("SERROR")) {
						b.Fatalf("%q, %v", buf[:n], err)
					}
				}
			}
			b.ReportMetric(float64(processorTime(c.pid())-before)/float64(b.N), "server-ns/op")
		})
	}
}

// processorTime is what a process has taken of the processor, in nanoseconds, 0 where Linux
// does not say.
func processorTime(pid uint32) (ns int64) {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	fmt.Sscan(string(stat), &ns)
	return ns
}
