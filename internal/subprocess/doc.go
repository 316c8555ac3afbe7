// Package subprocess starts programs that end with this one, even when it is killed.
package subprocess
