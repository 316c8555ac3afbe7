package olap

// BuildOnDevice has devices make the lookups of tables from so many rows on, until the
// function that it returns is called.
func BuildOnDevice(rows int64) (restore func()) {
	was := deviceBuild
	deviceBuild = rows
	return func() { deviceBuild = was }
}
