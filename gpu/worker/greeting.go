package worker

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"reflect"
	"runtime/debug"
	"sync"

	"pgaccel/gpu/device"
)

// protocol counts changes of the frames' form that the types of package device do not show.
const protocol = 2

// Version returns what both ends of a socket must agree on: a hash of the protocol's
// number and of the form of the types of package device.
var Version = sync.OnceValue(func() string {
	h := fnv.New64a()
	fmt.Fprintln(h, protocol, kinds, device.OpAwait, device.FaultUnavailable, device.Streams, device.Events)
	seen := map[reflect.Type]bool{}
	for _, v := range []any{device.Info{}, device.Source{}, device.Batch{}, device.Reply{}, device.Fault{}} {
		describe(h, reflect.TypeOf(v), seen)
	}
	return hex.EncodeToString(h.Sum(nil))
})

func describe(w io.Writer, t reflect.Type, seen map[reflect.Type]bool) {
	fmt.Fprintln(w, t.Kind(), t.Name())
	if seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			fmt.Fprintln(w, t.Field(i).Name)
			describe(w, t.Field(i).Type, seen)
		}
	case reflect.Slice, reflect.Array, reflect.Pointer:
		describe(w, t.Elem(), seen)
	case reflect.Map:
		describe(w, t.Key(), seen)
		describe(w, t.Elem(), seen)
	}
}

// Build says which build this is, for people: the revision, where the build knows it.
var Build = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	build := info.Main.Version
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			build = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			build += "+"
		}
	}
	return build
})

const (
	magic = "pgaccelw"
	// maxGreeting bounds what is read of something that may be no worker at all.
	maxGreeting = 1 << 20
)

// greeting is what each side says first.
type greeting struct {
	Version string
	Build   string
	Devices []device.Info `json:",omitempty"` // from the worker
	Fault   *device.Fault `json:",omitempty"` // from the worker: what it has instead
}

func (g greeting) write(w io.Writer) error {
	body, err := json.Marshal(g)
	if err != nil {
		return err
	}
	b := append([]byte(magic), 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(b[len(magic):], uint32(len(body)))
	_, err = w.Write(append(b, body...))
	return err
}

func readGreeting(r io.Reader) (greeting, error) {
	var g greeting
	var h [len(magic) + 4]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return g, err
	}
	if string(h[:len(magic)]) != magic {
		return g, fmt.Errorf("not a worker's greeting: %q", h[:len(magic)])
	}
	n := binary.LittleEndian.Uint32(h[len(magic):])
	if n > maxGreeting {
		return g, fmt.Errorf("a greeting of %d bytes", n)
	}
	body, err := readBytes(r, int(n), plainBytes)
	if err != nil {
		return g, err
	}
	return g, json.Unmarshal(body, &g)
}

// fits returns an error unless the other side's build can talk to this one.
func (g greeting) fits() error {
	if g.Version == Version() {
		return nil
	}
	return fmt.Errorf("pgaccel and its worker are of different builds: protocol %s (build %s) here, %s (build %s) there: install both from one build",
		Version(), Build(), g.Version, g.Build)
}
