package colstore

import (
	"os"
	"slices"
)

// Memory is column memory under one limit. Several stores may share it (Options.Memory), as those of the databases that one
// process copies: whoever comes first gets it, as tables of one store do. It is safe for concurrent use.
type Memory struct{ arena arena }

// NewMemory returns memory of at most so many bytes. Close gives it back, after its stores.
func NewMemory(limit int64) *Memory { return &Memory{arena{limit: limit}} }

// Usage returns the bytes in use and the limit.
func (m *Memory) Usage() (used, limit int64) { return m.arena.usage() }

// SetLimit changes the limit. Where more is in use than that, no more is handed out.
func (m *Memory) SetLimit(bytes int64) { m.arena.setLimit(bytes) }

// Share returns a descriptor of the memory file that holds column memory, for another
// process to map; the caller closes it. The file grows while the memory is used. offset
// says where in it a piece of column memory lies: of compress.Words and compress.Bytes of
// a column in a segment, or of a null bitmap; false for memory that is elsewhere, as that
// of columns of open segments may be. From now on pages that stores free stay in the
// file until they are used again: what a device has pinned must not be taken out of it.
// It fails with errors.ErrUnsupported where there are no memory files.
func (m *Memory) Share() (f *os.File, offset func(mem []byte) (at int64, ok bool), err error) {
	if f, err = m.arena.share(); err != nil {
		return nil, nil, err
	}
	return f, m.arena.offset, nil
}

// Close gives everything back to the system.
func (m *Memory) Close() { m.arena.close() }

// join has what x can do without given back where the limit would be exceeded.
func (a *arena) join(x *indexer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.indexers = append(slices.Clone(a.indexers), x)
}

// leave ends that.
func (a *arena) leave(x *indexer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.indexers = slices.DeleteFunc(slices.Clone(a.indexers), func(o *indexer) bool { return o == x })
}
