package worker

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"pgaccel/gpu/device"
	"pgaccel/internal/checkedfile"
)

// cacheMagic begins the file of a cached image.
const cacheMagic = "pgaccel image 1\n"

// cache keeps compiled images on disk, by what they were compiled from. The zero value
// keeps nothing. Several processes may share a directory.
type cache struct{ dir string }

// sourceKey returns a hash of all that an image depends on.
func sourceKey(s device.Source, arch, compiler string) string {
	h := sha256.New()
	part := func(s string) { fmt.Fprintf(h, "%d\n%s\n", len(s), s) }
	part(compiler)
	part(arch)
	part(s.Name)
	part(s.Code)
	names := make([]string, 0, len(s.Headers))
	for name := range s.Headers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		part(name)
		part(s.Headers[name])
	}
	for _, d := range s.Defines {
		part(d)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (c cache) path(key string) string {
	return filepath.Join(c.dir, key[:2], key[2:]+".image")
}

// get returns an image, nil where there is none that is whole.
func (c cache) get(key string) []byte {
	if c.dir == "" {
		return nil
	}
	image, err := checkedfile.Read(c.path(key), cacheMagic)
	if err != nil {
		return nil
	}
	// Images that are used are the last that prune removes.
	now := time.Now()
	_ = os.Chtimes(c.path(key), now, now)
	return image
}

// put keeps an image. A reader sees all of it or nothing.
func (c cache) put(key string, image []byte) error {
	if c.dir == "" {
		return nil
	}
	return checkedfile.Write(c.path(key), cacheMagic, image)
}

// prune removes the images that were not used for longest, until at most limit bytes are left.
func (c cache) prune(limit int64) {
	if c.dir == "" {
		return
	}
	type file struct {
		path  string
		bytes int64
		used  time.Time
	}
	var files []file
	var total int64
	_ = filepath.WalkDir(c.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			files = append(files, file{path, info.Size(), info.ModTime()})
			total += info.Size()
		}
		return nil
	})
	slices.SortFunc(files, func(a, b file) int { return a.used.Compare(b.used) })
	for _, f := range files {
		if total <= limit {
			return
		}
		if os.Remove(f.path) == nil {
			total -= f.bytes
		}
	}
}
