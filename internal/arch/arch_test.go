package arch

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mayImport lists, for every package, all project packages that it may import.
// A package missing here fails the test: adding one is a decision, not an accident.
var mayImport = map[string]string{
	"internal/arch":        "",
	"internal/invariant":   "",
	"internal/checkedfile": "",
	"internal/bulk":        "internal/invariant",
	"internal/docpage":     "",
	"internal/processors":  "",
	"internal/pgserver":    "internal/subprocess",
	"internal/subprocess":  "",
	"internal/pgload":      "",
	"internal/temp":        "",
	"internal/tpcdata":     "internal/pgload",
	"internal/ssb":         "internal/pgload internal/tpcdata",
	"internal/tpch":        "internal/pgload internal/tpcdata",
	"internal/tpcds":       "internal/pgload internal/tpcdata",
	"internal/clickbench":  "internal/tpcdata",
	"internal/events":      "internal/pgload",
	"internal/simd":        "",
	"internal/simd/gen":    "", // a module of its own
	"vector":               "",
	"kernels":              "",
	"sqltype":              "vector",
	"catalog":              "sqltype vector",
	"wire":                 "sqltype vector",
	"compress":             "vector internal/invariant internal/simd",
	"bitmapidx":            "vector internal/invariant internal/processors internal/simd",
	"sqlfn":                "sqltype vector",
	"plan":                 "catalog sqlfn sqltype vector",
	"gpu/device":           "", // words only
	"gpu/program":          "plan kernels gpu/device compress vector internal/bulk internal/invariant internal/processors",
	"gpu/worker":           "gpu/device gpu/worker/nvrtc internal/bulk internal/checkedfile internal/processors internal/subprocess",
	"gpu/worker/nvrtc":     "",
	"gpu/emulator":         "gpu/device",
	"gpu":                  "kernels gpu/device gpu/program gpu/worker compress bitmapidx vector internal/bulk internal/checkedfile internal/invariant",
	"colstore":             "catalog compress bitmapidx vector internal/invariant internal/processors",
	"syntax":               "",
	"pushdown":             "syntax plan sqlfn sqltype catalog vector",
	"olap":                 "plan sqlfn sqltype colstore gpu gpu/program compress bitmapidx vector internal/bulk internal/invariant internal/processors internal/simd internal/temp",
	"replica/pgoutput":     "",
	"replica":              "sqltype colstore catalog vector replica/pgoutput",
	"upstream":             "wire",
	"explain":              "catalog plan sqlfn sqltype vector",
	"engine":               "explain syntax pushdown olap plan sqltype colstore catalog gpu gpu/program vector internal/processors internal/temp internal/trace",
	"proxy":                "engine plan upstream wire sqltype vector internal/processors internal/trace",
	"internal/oracle":      "plan sqlfn sqltype vector",
	"internal/console":     "",
	"internal/trace":       "",
	"internal/server":      "proxy engine plan replica colstore catalog gpu gpu/device gpu/worker upstream internal/advise internal/checkedfile internal/console internal/temp internal/trace",
	"internal/bench": "internal/server internal/pgserver internal/subprocess internal/ssb internal/tpch internal/tpcds internal/tpcdata internal/clickbench internal/events vector compress bitmapidx " +
		"plan catalog colstore syntax pushdown olap gpu gpu/device gpu/program gpu/worker " +
		"papers/cube papers/gpucube papers/rowout papers/tile papers/wah papers/wahbits papers/wahdata",
	"internal/advise":   "catalog colstore olap plan pushdown replica sqltype syntax vector",
	"internal/inspect":  "colstore compress sqltype vector wire",
	"scripts/testcount": "",
	"internal/flags":    "",
	"cmd/pgaccel":       "internal/server internal/advise internal/inspect internal/flags internal/processors replica",
	"cmd/pgaccel-bench": "internal/bench internal/flags internal/ssb",

	// What only comparisons with the papers call.
	"papers/kernels": "kernels",
	"papers/wahbits": "",
	"papers/wahdata": "papers/wahbits",
	"papers/wah":     "papers/kernels papers/wahbits papers/wahdata gpu/device",
	"papers/cube":    "vector internal/invariant",
	"papers/gpucube": "papers/kernels papers/cube gpu/device",
	"papers/tile":    "papers/kernels gpu/device compress",
	"papers/rowout":  "papers/kernels gpu/device",

	"cmd/pgaccel-gpu": "kernels gpu/device gpu/worker gpu/emulator",
	"integration":     "",

	"integration/referee":          "catalog olap pushdown sqlfn sqltype syntax vector internal/server internal/pgserver",
	"scripts/referee":              "integration/referee",
	"scripts/regress":              "internal/server internal/pgserver",
	"integration/referee/programs": "internal/pgserver internal/subprocess",
}

// TestImportsPointOneWay parses the files itself. Asking `go list` would be shorter,
// but `go test` cannot see what a child process reads and would answer from its cache,
// and `go list` skips the files of build tags that are off, such as cuda.
func TestImportsPointOneWay(t *testing.T) {
	const module, root = "pgaccel/", "../.."
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && filepath.Dir(path) == root && (d.Name() == "build" || d.Name() == "bin" || d.Name() == ".data") {
			return filepath.SkipDir // git ignores them: other people's sources, fetched by make regress
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, src, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir, _ := filepath.Rel(root, filepath.Dir(path))
		if strings.HasPrefix(dir, "bench") {
			return nil // comparisons with other systems: a module of its own
		}
		may, known := mayImport[filepath.ToSlash(dir)]
		if !known {
			t.Errorf("%s: package %s is not in the import table", path, dir)
		}
		for _, spec := range file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			dep, ours := strings.CutPrefix(name, module)
			if ours && !slices.Contains(strings.Fields(may), dep) {
				t.Errorf("%s: %s must not import %s", path, dir, dep)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
