package pgoutput

import (
	"fmt"
	"strings"
)

// Options returns the options of START_REPLICATION ... LOGICAL for a server
// (server_version_num): the newest protocol that it speaks, and, where it can,
// transactions streamed while they run, binary values and logical messages.
func Options(version int, publications ...string) string {
	protocol := 1
	switch {
	case version >= 160000:
		protocol = 4
	case version >= 150000:
		protocol = 3
	case version >= 140000:
		protocol = 2
	}
	names := make([]string, len(publications))
	for i, p := range publications {
		names[i] = `"` + strings.ReplaceAll(p, `"`, `""`) + `"`
	}
	list := strings.ReplaceAll(strings.Join(names, ","), "'", "''")
	options := fmt.Sprintf("proto_version '%d', publication_names '%s'", protocol, list)
	if protocol >= 2 {
		options += ", streaming 'on', binary 'true', messages 'true'"
	}
	return options
}
