package olap

// BuildOnDevice has devices make the lookups of tables from so many rows on, and the processor
// those that are asked for a third time, until the function that it returns is called.
func BuildOnDevice(rows int64) (restore func()) {
	was, after := deviceBuild, keepAfter
	deviceBuild, keepAfter = rows, 2
	return func() { deviceBuild, keepAfter = was, after }
}
