package colstore

import "fmt"

// MemoryError says that column memory would exceed its limit.
type MemoryError struct {
	Need, Used, Limit int64 // bytes
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("column memory: %d bytes more needed, %d of %d in use", e.Need, e.Used, e.Limit)
}
