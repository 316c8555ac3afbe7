package olap

// BuildOnDevice has devices make the lookups of tables from so many rows on, and the processor
// those that are asked for a third time, until the function that it returns is called.
func BuildOnDevice(rows int64) (restore func()) {
	was := deviceBuild
	deviceBuild = rows
	after := KeepAfter(2)
	return func() { deviceBuild = was; after() }
}

// KeepAfter has the processor make the lookups that were asked for so often, until the
// function that it returns is called.
func KeepAfter(asked int) (restore func()) {
	was := keepAfter
	keepAfter = asked
	return func() { keepAfter = was }
}
