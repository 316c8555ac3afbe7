package worker

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pgaccel/gpu/device"
)

func memfd(t testing.TB, content []byte) *os.File {
	t.Helper()
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "memfd")
	if _, err := f.Write(content); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestClientIsTheExecutor makes every call and compares with what the executor itself says.
func TestClientIsTheExecutor(t *testing.T) {
	ex := newFake()
	c, served := connect(t, ex)
	if got := c.Devices(); !reflect.DeepEqual(got, ex.Devices()) {
		t.Errorf("devices are %+v", got)
	}
	ctx := context.Background()
	src := device.Source{Name: "k", Code: "code", Headers: map[string]string{"a.cuh": "// a"}, Defines: []string{"A=1"}}
	m, err := c.Compile(ctx, 0, src)
	ex.mu.Lock() // the race detector does not see that a socket orders things
	sources := ex.sources
	ex.mu.Unlock()
	if err != nil || m != 1 || !reflect.DeepEqual(sources[0], src) {
		t.Errorf("module %v, %v, of %+v", m, err, sources)
	}
	content := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	mem := memfd(t, content)
	file, err := c.Share(mem)
	if err != nil || file != 1 {
		t.Fatalf("file %v, %v", file, err)
	}
	_ = mem.Close() // the other side has its own descriptor
	p, err := c.Alloc(0, 20<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 1, 31, 32, 33, 1023, 1024, 1025, 1 << 16, transferLeast - 1, transferLeast, transferLeast + 1, 17<<20 + 3} {
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(i*7 + n)
		}
		r, err := c.Run(ctx, 0, &device.Batch{Stream: 3, Commands: []device.Command{
			{Op: device.OpMark},
			{Op: device.OpWrite, Dst: p, Data: data},
			{Op: device.OpRead, Src: p, Bytes: uint64(n)},
			{Op: device.OpCopyShared, File: file, Pieces: []device.Piece{{Offset: 16, Bytes: int64(min(n, 1<<16)) / 2, Dst: p}}},
			{Op: device.OpRead, Src: p, Bytes: uint64(min(n, 1<<16) / 2)},
			{Op: device.OpMark},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Data) != 2 || !bytes.Equal(r.Data[0], data) || !bytes.Equal(r.Data[1], content[16:][:min(n, 1<<16)/2]) {
			t.Errorf("%d bytes came back wrong", n)
		}
		if len(r.Millis) != 2 || r.Millis[0] != 0.25 {
			t.Errorf("times are %v", r.Millis)
		}
		if r.Took <= 0 {
			t.Errorf("the request took %v", r.Took)
		}
	}
	if err := c.Free(0, p); err != nil {
		t.Error(err)
	}
	if err := c.Free(0, p); err == nil || device.KindOf(err) != device.FaultOther || !strings.Contains(err.Error(), "was not allocated") {
		t.Errorf("a second Free: %v", err)
	}
	if _, err := c.Alloc(0, 1<<30); device.KindOf(err) != device.FaultMemory || err.Error() != "out of device memory: fakeAlloc: 1073741824 bytes" {
		t.Errorf("too much memory: %v", err)
	}
	if _, err := c.Compile(ctx, 0, device.Source{Name: "x", Code: "#error"}); device.KindOf(err) != device.FaultCompile {
		t.Errorf("a bad source: %v", err)
	}
	_ = c.Close()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if _, err := c.Alloc(0, 1); device.KindOf(err) != device.FaultLost {
		t.Errorf("after Close: %v", err)
	}
}

// TestStreamsDoNotWaitForEachOther has a slow request answered after a quick one.
func TestStreamsDoNotWaitForEachOther(t *testing.T) {
	c, _ := connect(t, newFake())
	slow := make(chan error, 1)
	var ended time.Time
	go func() {
		_, err := c.Run(context.Background(), 0, launch("sleep", 200))
		ended = time.Now()
		slow <- err
	}()
	var group sync.WaitGroup
	var quick time.Time
	for range 8 {
		group.Go(func() {
			for range 20 {
				if _, err := c.Run(context.Background(), 0, launch("sleep", 0)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	quick = time.Now()
	if err := <-slow; err != nil {
		t.Error(err)
	}
	t.Log("160 quick requests ended", ended.Sub(quick), "before the slow one")
}

func launch(function string, params ...byte) *device.Batch {
	return &device.Batch{Commands: []device.Command{{Op: device.OpLaunch, Function: function, Params: params}}}
}

func TestContexts(t *testing.T) {
	c, _ := connect(t, newFake())
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if _, err := c.Compile(ctx, 0, device.Source{Code: "forever"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Compile: %v", err)
	}
	ctx, cancel = context.WithCancel(context.Background())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := c.Run(ctx, 0, launch("sleep", 50)); !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
	if _, err := c.Run(ctx, 0, launch("sleep", 50)); !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
	if _, err := c.Run(context.Background(), 0, launch("sleep", 0)); err != nil {
		t.Errorf("the next: %v", err)
	}
}

// TestLostDevice has all requests fail after a lost device, and Serve return the fault.
func TestLostDevice(t *testing.T) {
	c, served := connect(t, newFake())
	pending := make(chan error, 1)
	go func() {
		_, err := c.Compile(context.Background(), 0, device.Source{Code: "forever"})
		pending <- err
	}()
	time.Sleep(10 * time.Millisecond)
	_, err := c.Run(context.Background(), 0, launch("lost"))
	if device.KindOf(err) != device.FaultLost || !strings.Contains(err.Error(), "kernel lost: illegal address") {
		t.Errorf("Run: %v", err)
	}
	if err := <-pending; device.KindOf(err) != device.FaultLost {
		t.Errorf("the other request: %v", err)
	}
	if _, err := c.Alloc(0, 1); device.KindOf(err) != device.FaultLost || !strings.Contains(err.Error(), "illegal address") {
		t.Errorf("later: %v", err)
	}
	if err := <-served; device.KindOf(err) != device.FaultLost {
		t.Errorf("Serve: %v", err)
	}
	<-c.Done()
}

// TestBrokenServers has servers that say what none says.
func TestBrokenServers(t *testing.T) {
	header := func(k kind, body uint32, raw uint64, id uint64) []byte {
		b := make([]byte, headerBytes)
		putHeader(b, k, id, int(body), raw)
		return b
	}
	for name, answer := range map[string][]byte{
		"nothing":           {},
		"half a header":     header(kindReply, 0, 0, 1)[:10],
		"half a body":       append(header(kindReply, 10, 0, 1), 0, 1),
		"half the data":     append(header(kindReply, 1, 10, 1), 0, 1),
		"a huge body":       header(kindReply, math.MaxUint32, 0, 1),
		"huge data":         header(kindReply, 1, math.MaxUint64, 1),
		"no kind":           header(kinds, 0, 0, 1),
		"a client's kind":   header(kindRun, 0, 0, 1),
		"another request":   append(header(kindReply, 1, 0, 77), 0),
		"no outcome":        header(kindReply, 0, 0, 1),
		"no such outcome":   append(header(kindReply, 1, 0, 1), 9),
		"a cut fault":       append(header(kindReply, 2, 0, 1), outcomeFault, 1),
		"no such fault":     append(header(kindReply, 4, 0, 1), outcomeFault, 99, 0, 0),
		"no reply":          append(header(kindReply, 1, 0, 1), outcomeOK),
		"too much reply":    append(header(kindReply, 4, 0, 1), outcomeOK, 0, 0, 0),
		"data of no read":   append(header(kindReply, 3, 1, 1), outcomeOK, 0, 0, 5),
		"reads beyond data": append(header(kindReply, 4, 0, 1), outcomeOK, 1, 200, 0),
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := pair(t)
			go func() {
				defer theirs.Close()
				l := newLink(theirs)
				_, _ = readGreeting(l.in)
				_ = greeting{Version: Version()}.write(theirs)
				if _, err := readFrame(l.in); err == nil {
					_, _ = theirs.Write(answer)
				}
			}()
			c, err := NewClient(ours)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Run(context.Background(), 0, launch("sleep", 0))
			if device.KindOf(err) != device.FaultLost {
				t.Errorf("got %v", err)
			}
			t.Log(err)
			<-c.Done()
		})
	}
}

// TestBrokenClients has clients that say what none says: Serve ends with an error.
func TestBrokenClients(t *testing.T) {
	packed := newPacker(100)
	packed.num(0)
	packBatch(packed, launch("sleep", 0))
	for name, say := range map[string]func(l *link){
		"a reply":          func(l *link) { _ = l.send(kindReply, 1, newPacker(0).b, nil, nil) },
		"a share of none":  func(l *link) { _ = l.send(kindShare, 1, newPacker(0).b, nil, nil) },
		"an empty run":     func(l *link) { _ = l.send(kindRun, 1, newPacker(0).b, nil, nil) },
		"data of no write": func(l *link) { _ = l.send(kindRun, 1, bytes.Clone(packed.b), [][]byte{{1}}, nil) },
		"no source":        func(l *link) { _ = l.send(kindCompile, 1, append(newPacker(0).b, 0, 1, '{'), nil, nil) },
		"half a frame": func(l *link) {
			b := bytes.Clone(packed.b)
			putHeader(b, kindRun, 1, len(b)-headerBytes, 0)
			_, _ = l.conn.Write(b[:30])
		},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := pair(t)
			served := make(chan error, 1)
			go func() { served <- Serve(theirs, newFake()) }()
			l := newLink(ours)
			_ = greeting{Version: Version()}.write(ours)
			if _, err := readGreeting(l.in); err != nil {
				t.Fatal(err)
			}
			say(l)
			_ = ours.CloseWrite()
			err := <-served
			if err == nil {
				t.Error("no error")
			}
			t.Log(err)
		})
	}
}

func TestBuildsThatDoNotFit(t *testing.T) {
	ours, theirs := pair(t)
	served := make(chan error, 1)
	go func() { served <- Serve(theirs, newFake()) }()
	if err := (greeting{Version: "x", Build: "old"}).write(ours); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err == nil || !strings.Contains(err.Error(), "different builds") {
		t.Errorf("Serve: %v", err)
	}

	ours, theirs = pair(t)
	go func() { _ = greeting{Version: "x", Build: "old"}.write(theirs) }()
	_, err := NewClient(ours)
	if device.KindOf(err) != device.FaultUnavailable || !strings.Contains(err.Error(), "x (build old) there") {
		t.Errorf("NewClient: %v", err)
	}
}

// fill sets every field of a structure to something that is not zero.
func fill(v reflect.Value, n *uint64) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n)
		fill(value, n)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(strings.Repeat("x", int(*n%7)+1))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n))
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(*n % 251)
	default:
		panic("a kind of field that the codec does not know: " + v.Kind().String())
	}
}

// TestEveryFieldIsPacked fails when package device gets a field that codec.go forgets.
func TestEveryFieldIsPacked(t *testing.T) {
	var n uint64
	var batch, batch2 device.Batch
	fill(reflect.ValueOf(&batch).Elem(), &n)
	p := newPacker(0)
	raw := packBatch(p, &batch)
	got, err := unpackBatch(&unpacker{b: p.b[headerBytes:]}, bytes.Join(raw, nil))
	if batch2 = *got; err != nil || !reflect.DeepEqual(batch, batch2) {
		t.Errorf("batch %+v became %+v, %v", batch, batch2, err)
	}
	var reply device.Reply
	fill(reflect.ValueOf(&reply).Elem(), &n)
	p = newPacker(0)
	raw = packReply(p, &reply)
	reply.Memory = bytes.Join(raw, nil) // which is what Data is cut out of
	back, err := unpackReply(&unpacker{b: p.b[headerBytes:]}, reply.Memory)
	if err != nil || !reflect.DeepEqual(reply, *back) {
		t.Errorf("reply %+v became %+v, %v", reply, back, err)
	}
	var source device.Source
	fill(reflect.ValueOf(&source).Elem(), &n)
	p = newPacker(0)
	if err := packSource(p, &source); err != nil {
		t.Fatal(err)
	}
	source2, err := unpackSource(&unpacker{b: p.b[headerBytes:]})
	if err != nil || !reflect.DeepEqual(source, source2) {
		t.Errorf("source %+v became %+v, %v", source, source2, err)
	}
	var fault device.Fault
	fill(reflect.ValueOf(&fault).Elem(), &n)
	fault.Kind = device.FaultUnavailable
	p = newPacker(0)
	packError(p, &fault)
	fault2, err := unpackError(&unpacker{b: p.b[headerBytes:]})
	if err != nil || !reflect.DeepEqual(error(&fault), fault2) {
		t.Errorf("fault %+v became %+v, %v", fault, fault2, err)
	}
}

func queryBatch() *device.Batch {
	b := &device.Batch{}
	for i := range 20 {
		c := device.Command{Op: device.OpLaunch, Module: 3, Function: "pgaccel_scan", Grid: [3]uint32{264, 1, 1}, Block: [3]uint32{256, 1, 1}, Shared: 65536,
			Params: make([]byte, 128)}
		switch i % 5 {
		case 1:
			c = device.Command{Op: device.OpFill, Dst: 1 << 40, Bytes: 4096}
		case 2:
			c = device.Command{Op: device.OpWrite, Dst: 1 << 40, Data: make([]byte, 512)}
		}
		b.Commands = append(b.Commands, c)
	}
	b.Commands = append(b.Commands, device.Command{Op: device.OpRecord, Event: 3, Side: 2}, device.Command{Op: device.OpAwait, Event: 3},
		device.Command{Op: device.OpRead, Src: 1 << 40, Bytes: 1024})
	return b
}

// BenchmarkRun is the cost of a query's batch without a device: both ends in this process.
func BenchmarkRun(b *testing.B) {
	c, _ := connect(b, null{newFake()})
	batch := queryBatch()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Run(context.Background(), 0, batch); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRunProcess is the same, the other end in another process.
func BenchmarkRunProcess(b *testing.B) {
	c, err := Start(context.Background(), fakeStart("null"))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	batch := queryBatch()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Run(context.Background(), 0, batch); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStreamedBatch is what a batch of a query that streams costs both ends, without a device.
func BenchmarkStreamedBatch(b *testing.B) {
	c, _ := connect(b, null{newFake()})
	batch := &device.Batch{Stream: 1}
	for k := range 64 {
		copies := device.Command{Op: device.OpCopyShared, File: 1, Side: 1}
		for i := range 64 {
			copies.Pieces = append(copies.Pieces, device.Piece{Offset: int64(k*64+i) * 7 << 20, Bytes: 70000, Dst: device.Pointer(1<<47 + k*i*70144)})
		}
		launch := device.Command{Op: device.OpLaunch, Module: 3, Function: "scan_0123456789abcdef", Grid: [3]uint32{264, 1, 1}, Block: [3]uint32{256, 1, 1}, Params: make([]byte, 320)}
		batch.Commands = append(batch.Commands, copies, device.Command{Op: device.OpRecord, Side: 1}, device.Command{Op: device.OpAwait}, device.Command{Op: device.OpMark},
			launch, launch, device.Command{Op: device.OpMark}, device.Command{Op: device.OpRecord, Event: 1})
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Run(context.Background(), 0, batch); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzFrame reads any bytes as frames, and their bodies as what each side may be sent.
func FuzzFrame(f *testing.F) {
	p := newPacker(0)
	raw := packBatch(p, queryBatch())
	data := bytes.Join(raw, nil)
	putHeader(p.b, kindRun, 1, len(p.b)-headerBytes, uint64(len(data)))
	f.Add(append(p.b, data...))
	p = newPacker(0)
	packError(p, &device.Fault{Kind: device.FaultMemory, Call: "a", Text: "b"})
	putHeader(p.b, kindReply, 1, len(p.b)-headerBytes, 0)
	f.Add(p.b)
	var g bytes.Buffer
	_ = greeting{Version: Version()}.write(&g)
	f.Add(g.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = readGreeting(bytes.NewReader(b))
		r := bytes.NewReader(b)
		for {
			fr, err := readFrame(r)
			if err != nil {
				if errors.Is(err, io.EOF) && r.Len() != 0 {
					t.Error("EOF before the end")
				}
				return
			}
			if batch, err := unpackBatch(&unpacker{b: fr.body}, fr.raw); err == nil {
				p := newPacker(0)
				raw := packBatch(p, batch)
				again, err := unpackBatch(&unpacker{b: p.b[headerBytes:]}, bytes.Join(raw, nil))
				if err != nil || !reflect.DeepEqual(batch, again) {
					t.Errorf("%+v became %+v, %v", batch, again, err)
				}
			}
			_, _ = unpackReply(&unpacker{b: fr.body}, fr.raw)
			_, _ = unpackSource(&unpacker{b: fr.body})
			_, _ = unpackError(&unpacker{b: fr.body})
		}
	})
}

// TestHugeLengthsAllocateLittle: a length alone is no reason to allocate.
func TestHugeLengthsAllocateLittle(t *testing.T) {
	h := make([]byte, headerBytes)
	putHeader(h, kindRun, 1, 0, maxRaw)
	binary.LittleEndian.PutUint32(h[4:], 0)
	if _, err := readFrame(bytes.NewReader(h)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
}
