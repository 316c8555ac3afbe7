package proxy

import (
	"os"
	"syscall"
)

// chownLike gives a file to the owner of another one, for a server that does not run
// as root.
func chownLike(path string, owner os.FileInfo) {
	if st, ok := owner.Sys().(*syscall.Stat_t); ok {
		os.Chown(path, int(st.Uid), int(st.Gid))
	}
}
