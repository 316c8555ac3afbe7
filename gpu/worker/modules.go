package worker

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"pgaccel/gpu/device"
)

// modules are one device's. A module's number stays valid for the process' life: its
// image is kept, and loaded again where it was unloaded since.
type modules struct {
	d driver

	mu     sync.Mutex
	all    []*module // number-1
	byKey  map[string]device.Module
	loaded *simplelru.LRU[*module, struct{}]
}

// module is an image, and its functions while it is loaded.
type module struct {
	name  string
	image []byte

	handle    uintptr
	isLoaded  bool
	evicted   bool // to be unloaded when its last user is gone
	users     int
	functions map[string]*function
}

type function struct {
	handle uintptr
	shared uint32 // bytes of dynamic shared memory that launches may have
}

// newModules keeps up to limit modules loaded, more while they are in use.
func newModules(d driver, limit int) *modules {
	m := &modules{d: d, byKey: map[string]device.Module{}}
	m.loaded, _ = simplelru.NewLRU(limit, func(e *module, _ struct{}) { m.evict(e) }) // fails for limit < 1 only
	return m
}

// lookup returns the number of the module with a key, 0 where there is none.
func (m *modules) lookup(key string) device.Module {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byKey[key]
}

// add numbers a module and loads it, so that an image that the driver refuses is known now. Loading takes up to
// milliseconds, for which no launch of another module waits.
func (m *modules) add(key, name string, image []byte) (device.Module, error) {
	if n := m.lookup(key); n != 0 {
		return n, nil
	}
	h, err := m.d.load(image)
	if err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.byKey[key]; n != 0 {
		_ = m.d.unload(h)
		return n, nil
	}
	e := &module{name: name, image: image, handle: h, isLoaded: true, functions: map[string]*function{}}
	if err := m.load(e); err != nil {
		return 0, err
	}
	m.all = append(m.all, e)
	m.byKey[key] = device.Module(len(m.all))
	return device.Module(len(m.all)), nil
}

func (m *modules) load(e *module) error {
	if !e.isLoaded {
		h, err := m.d.load(e.image)
		if err != nil {
			return err
		}
		e.handle, e.isLoaded, e.functions = h, true, map[string]*function{}
	}
	e.evicted = false
	e.users++ // the least recently used is not to be this one
	m.loaded.Add(e, struct{}{})
	e.users--
	return nil
}

// evict is called with mu held, by loaded.Add.
func (m *modules) evict(e *module) {
	if e.users > 0 {
		e.evicted = true
		return
	}
	_ = m.d.unload(e.handle) // a lost device says so at the next call
	e.isLoaded, e.functions = false, nil
}

// acquire returns a module that stays loaded until release.
func (m *modules) acquire(n device.Module) (*module, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n == 0 || n > device.Module(len(m.all)) {
		return nil, &device.Fault{Kind: device.FaultLaunch, Call: "cuModuleGetFunction", Text: "no such module"}
	}
	e := m.all[n-1]
	if err := m.load(e); err != nil {
		return nil, err
	}
	e.users++
	return e, nil
}

func (m *modules) release(e *module) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.users--; e.users == 0 && e.evicted {
		e.evicted = false
		m.evict(e)
	}
}

// function returns a function of an acquired module that may have so much dynamic shared memory.
func (m *modules) function(e *module, name string, shared uint32) (uintptr, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := e.functions[name]
	if f == nil {
		h, err := m.d.function(e.handle, name)
		if err != nil {
			return 0, err
		}
		f = &function{handle: h}
		e.functions[name] = f
	}
	// Without asking, a launch may have 48 KiB, but less what the function declares.
	if shared > f.shared {
		if err := m.d.allowShared(f.handle, shared); err != nil {
			return 0, err
		}
		f.shared = shared
	}
	return f.handle, nil
}
