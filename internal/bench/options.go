package bench

import (
	"io"
	"os"
)

// orDefault sets an option that was left out.
func orDefault[T comparable](quick bool, option *T, full, small T) {
	var unset T
	if *option != unset {
		return
	}
	if *option = full; quick {
		*option = small
	}
}

// orOurs sets what was left out to this process' standard error and program.
func orOurs(progress *io.Writer, binary *string) (err error) {
	if *progress == nil {
		*progress = os.Stderr
	}
	if *binary == "" {
		*binary, err = os.Executable()
	}
	return err
}
