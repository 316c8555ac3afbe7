package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// file is a parsed file of the module, with the package that it belongs to.
type file struct {
	dir  string
	test bool
	ast  *ast.File
}

func parseModule(t *testing.T, root string) (files []file) {
	t.Helper()
	set := token.NewFileSet()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (filepath.Dir(name) == root && slices.Contains([]string{"build", "bin", ".data"}, d.Name()) || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") {
			return err
		}
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(name))
		files = append(files, file{filepath.ToSlash(dir), strings.HasSuffix(name, "_test.go"), f})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// exported are the names that a package exports at top level, methods aside: who calls these
// the syntax does not say.
func exported(f *ast.File) (names []string) {
	add := func(id *ast.Ident) {
		if id.IsExported() {
			names = append(names, id.Name)
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(d.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					add(s.Name)
				case *ast.ValueSpec:
					for _, id := range s.Names {
						add(id)
					}
				}
			}
		}
	}
	return names
}

// signatureNames are the names in what a package exports: a type that a field or a result
// has is read by who reads that.
func signatureNames(f *ast.File, used map[string]bool) {
	types := func(n ast.Node) {
		if n == nil {
			return
		}
		ast.Inspect(n, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				used[id.Name] = true
			}
			return true
		})
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() {
				types(d.Type)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						types(s.Type)
					}
				case *ast.ValueSpec:
					if s.Type != nil && s.Names[0].IsExported() {
						types(s.Type)
					}
				}
			}
		}
	}
}

// waiting are names whose readers are still to come.
var waiting = map[string]string{
	"olap.Explain": "EXPLAIN",
}

// TestExportedNamesAreRead: what a package exports, another one names, or a type that it
// exports does. Constants of a type that others use come with it.
func TestExportedNamesAreRead(t *testing.T) {
	const module = "pgaccel/"
	files := parseModule(t, "../..")
	read := map[string]map[string]bool{} // by package
	at := func(dir string) map[string]bool {
		if read[dir] == nil {
			read[dir] = map[string]bool{}
		}
		return read[dir]
	}
	names := map[string]string{} // of packages, by directory
	for _, f := range files {
		names[f.dir] = strings.TrimSuffix(f.ast.Name.Name, "_test")
	}
	for _, f := range files {
		imports := map[string]string{}
		for _, i := range f.ast.Imports {
			dep, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module)
			if !ours {
				continue
			}
			name := names[dep]
			if i.Name != nil {
				name = i.Name.Name
			}
			imports[name] = dep
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && imports[x.Name] != "" {
					at(imports[x.Name])[s.Sel.Name] = true
				}
			}
			return true
		})
		if !f.test {
			signatureNames(f.ast, at(f.dir))
		}
	}
	typed := constantTypes(files)
	for _, f := range files {
		if f.test || f.ast.Name.Name == "main" {
			continue
		}
		for _, name := range exported(f.ast) {
			if waiting[f.dir+"."+name] != "" {
				continue
			}
			if !read[f.dir][name] && !read[f.dir][typed[f.dir+"."+name]] {
				t.Errorf("%s exports %s, which no other package names", f.dir, name)
			}
		}
	}
}

// constantTypes returns the types of constants, by package and name.
func constantTypes(files []file) map[string]string {
	types := map[string]string{}
	for _, f := range files {
		for _, d := range f.ast.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			last := ""
			for _, s := range g.Specs {
				v := s.(*ast.ValueSpec)
				if id, ok := v.Type.(*ast.Ident); ok {
					last = id.Name
				} else if v.Values != nil {
					last = ""
				}
				for _, id := range v.Names {
					types[f.dir+"."+id.Name] = last
				}
			}
		}
	}
	return types
}
