package checkedfile

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Errors of Read, beside those of the file system.
var (
	ErrMagic    = errors.New("the file is of another kind or version")
	errChecksum = errors.New("the file is damaged: its checksum is another")
)

// Read returns the content of a file that begins with magic.
func Read(path, magic string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(b) < len(magic)+sha256.Size {
		return nil, errChecksum
	}
	rest, ok := bytes.CutPrefix(b, []byte(magic))
	if !ok {
		return nil, ErrMagic
	}
	content := rest[sha256.Size:]
	if sum := sha256.Sum256(content); !bytes.Equal(sum[:], rest[:sha256.Size]) {
		return nil, errChecksum
	}
	return content, nil
}

// unfinished is the pattern of the names that files have until they are whole.
const unfinished = "new-*"

// RemoveUnfinished removes what processes have left in a folder that were ended in the middle of a Write, if it is a minute old.
func RemoveUnfinished(folder string) {
	files, _ := filepath.Glob(filepath.Join(folder, unfinished))
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && time.Since(info.ModTime()) > time.Minute {
			_ = os.Remove(file)
		}
	}
}

// Write makes a file that only its owner may read, and its folder where there is none. A reader, and who starts after a
// crash, sees the old file or the new one.
func Write(path, magic string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), unfinished)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	_, err = f.Write(slices.Concat([]byte(magic), sum[:], content))
	if err == nil {
		err = f.Sync()
	}
	if err = cmp.Or(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
