package nvrtc

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakeLinker builds testdata/fakenvjitlink.c.
func fakeLinker(t *testing.T, defines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "libnvJitLink.so.12")
	args := append([]string{"-shared", "-fPIC", "-w", "-o", path}, defines...)
	if out, err := exec.Command("cc", append(args, "testdata/fakenvjitlink.c")...).CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	return path
}

func TestLinker(t *testing.T) {
	for _, name := range []string{"-DNAME(n)=n", "-DNAME(n)=__##n##_12_0", "-DNAME(n)=__##n##_13_0"} {
		k, err := openLinker(fakeLinker(t, name))
		if err != nil {
			t.Fatal(err)
		}
		out, err := k.Link("a", "sm_90", &Image{Data: []byte("code")}, "/x/libcudadevrt.a")
		if err != nil || string(out) != "1code/x/libcudadevrt.a" {
			t.Errorf("%s: linked %q, %v", name, out, err)
		}
		out, err = k.Link("a", "sm_90", &Image{Data: []byte("text"), PTX: true}, "l.a")
		if err != nil || string(out) != "2text\x00l.a" {
			t.Errorf("%s: linked %q, %v", name, out, err)
		}
		var failed *Error
		if _, err = k.Link("a", "sm_90", &Image{Data: []byte("code")}, "/x/y"); !errors.As(err, &failed) ||
			*failed != (Error{"nvJitLinkAddFile", "NVJITLINK_ERROR_INVALID_INPUT", "not a library"}) {
			t.Errorf("%s: got %v", name, err)
		}
		if _, err = k.Link("a", "compute", &Image{Data: []byte("code")}, "l.a"); !errors.As(err, &failed) ||
			*failed != (Error{"nvJitLinkCreate", "NVJITLINK_ERROR_MISSING_ARCH", ""}) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestFindLinker(t *testing.T) {
	path := fakeLinker(t, "-DNAME(n)=n")
	lib := &Library{Path: filepath.Join(filepath.Dir(path), "libnvrtc.so.12"), Major: 12}
	if k, err := lib.FindLinker(); err != nil || k.Path != path {
		t.Errorf("found %+v, %v", k, err)
	}
	t.Setenv(linkerVariable, fakeLinker(t, "-DNAME(n)=n", "-DLACKS"))
	if _, err := lib.FindLinker(); err == nil || !strings.Contains(err.Error(), "it has no nvJitLinkComplete") {
		t.Errorf("got %v", err)
	}
	t.Setenv(linkerVariable, "/nowhere/libnvJitLink.so")
	if _, err := lib.FindLinker(); err == nil || !strings.Contains(err.Error(), linkerVariable+"=/nowhere/libnvJitLink.so") {
		t.Errorf("got %v", err)
	}
	t.Setenv(linkerVariable, "")
	if _, err := (&Library{Path: "/nowhere/libnvrtc.so.99", Major: 99}).FindLinker(); err == nil || !strings.Contains(err.Error(), "libnvJitLink.so.99 not found") {
		t.Errorf("got %v", err)
	}
}
