package colstore

import (
	"context"
	"fmt"
	"testing"

	"pgaccel/catalog"
	"pgaccel/vector"
)

// BenchmarkWriter measures one value of each kind through a writer, encoding
// included; ns/op is per value.
func BenchmarkWriter(b *testing.B) {
	texts := make([][]byte, 1<<16)
	for i := range texts {
		texts[i] = fmt.Appendf(nil, "Customer#%09d", i)
	}
	run := func(name string, kind vector.Kind, put func(w *Writer, i int)) {
		b.Run(name, func(b *testing.B) {
			s := New(Options{})
			defer s.Close()
			l := s.NewLoader(&catalog.Table{Columns: []catalog.Column{{Name: "c", Type: vector.TypeOf(kind)}}})
			w := l.NewWriter()
			i := 0
			for b.Loop() {
				put(w, i)
				i++
				if err := w.EndRow(); err != nil {
					b.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				b.Fatal(err)
			}
			l.Abort()
		})
	}
	run("int", vector.Int4, func(w *Writer, i int) { w.Int(0, int64(uint32(i)*2654435761>>12)) })
	run("null", vector.Int4, func(w *Writer, i int) { w.Null(0) })
	run("text of 7", vector.Text, func(w *Writer, i int) { w.Text(0, texts[uint32(i)*2654435761>>16%7]) })
	run("text of 65536", vector.Text, func(w *Writer, i int) { w.Text(0, texts[uint32(i)*2654435761>>16]) })
	var unique []byte
	run("text unique", vector.Text, func(w *Writer, i int) {
		unique = fmt.Appendf(unique[:0], "%012d", i)
		w.Text(0, unique)
	})
}

func BenchmarkGet(b *testing.B) {
	s := New(Options{})
	defer s.Close()
	s.Publish(s.NewRelation(load(b, s, make([]row, 1), 1)))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			table, _ := s.Get(7)
			table.Release()
		}
	})
}

func BenchmarkWaitSatisfied(b *testing.B) {
	s := New(Options{})
	defer s.Close()
	s.SetConnected(true)
	s.Advance(100)
	for b.Loop() {
		if err := s.Wait(context.Background(), 100); err != nil {
			b.Fatal(err)
		}
	}
}
