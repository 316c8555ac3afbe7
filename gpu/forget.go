package gpu

// Forget drops what devices keep of query data: lookups, sets of values, tables of functions.
// Columns stay. The next queries pay for them again, as those of a new shape do: benchmarks
// measure so.
func (m *Manager) Forget() {
	s := m.current()
	if s == nil {
		return
	}
	for _, d := range s.devs {
		d.mu.Lock()
		for _, key := range d.cache.lists[idle].Keys() {
			switch key.kind {
			case itemBits, itemTable, itemLookup:
				if it, ok := d.cache.lists[idle].Peek(key); ok {
					d.cache.drop(it)
				}
			}
		}
		d.mu.Unlock()
	}
}
