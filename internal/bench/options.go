package bench

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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

// orPgaccel sets what was left out to this process' standard error and the pgaccel beside this
// program, or on PATH.
func orPgaccel(progress *io.Writer, binary *string) (err error) {
	if *progress == nil {
		*progress = os.Stderr
	}
	if *binary != "" {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	*binary = filepath.Join(filepath.Dir(self), "pgaccel")
	if _, err := os.Stat(*binary); err == nil {
		return nil
	}
	if *binary, err = exec.LookPath("pgaccel"); err != nil {
		return fmt.Errorf("no program pgaccel beside %s or on PATH: build it by make build", self)
	}
	return nil
}
