# The commands that a person or CI runs. `make demo` and `make test` are all the set-up there is.

GO     ?= go
BIN    := bin/pgaccel
BENCH_BIN := bin/pgaccel-bench
# Packages of this module; bench/duckdb, bench/roaring, deploy and deploy/packages are modules of their own.
PKGS   := ./...
FUZZTIME ?= 20000x

.PHONY: all build build-cuda gpu-emu check-cuda packages sbom test-packages test-compose publish-as demo test quick test-versions check simd lint race bench bench-ssb bench-tpch bench-tpcds bench-clickbench bench-bi bench-papers bench-passthrough fuzz regress referee programs ptx site deps clean

all: build

build: $(BIN) $(BENCH_BIN)

$(BIN) $(BENCH_BIN): bin/%: $(shell find . -name '*.go' -not -path './bench/*') $(wildcard kernels/*.cuh papers/kernels/*.cuh) go.mod
	$(GO) build -o $@ ./cmd/$*

# The worker with the GPU. It needs CUDA's headers, of 11.8 or later, and no CUDA to run but
# the driver and NVRTC.
build-cuda:
	scripts/cuda-env.sh $(GO) build -tags cuda -o bin/pgaccel-gpu ./cmd/pgaccel-gpu

# The same worker over an emulated device, for tests. It calls a C++20 compiler as it runs.
gpu-emu:
	$(GO) build -tags emu -o bin/pgaccel-gpu-emu ./cmd/pgaccel-gpu

# What go vet and the compiler say of the worker with CUDA, where there need be none.
check-cuda:
	scripts/check-cuda.sh

# deb and rpm for amd64 and arm64, in build/packages: `make packages VERSION=1.2.3`.
packages:
	@scripts/install-deps.sh packages
	@VERSION='$(VERSION)' scripts/packages.sh

# What pgaccel is made of, with licences, as CycloneDX has it, beside the packages.
sbom:
	@mkdir -p build/packages
	$(GO) tool -modfile=deploy/packages/go.mod cyclonedx-gomod app -json -licenses -main cmd/pgaccel -output build/packages/pgaccel_$(or $(VERSION),0.0.0).cdx.json .

# The packages installed, upgraded and removed in a clean Debian under systemd: half a minute, as root.
test-packages:
	@scripts/install-deps.sh test-packages
	@scripts/test-packages.sh

# docker-compose.yml started as a user does, stand-ins made of Debian's packages for the images of registries: PULL=1 takes
# those, and Grafana.
PULL ?=
test-compose:
	@scripts/install-deps.sh test-compose
	@PULL='$(PULL)' scripts/test-compose.sh

# The name under which it is published, wherever a name stands: `make publish-as MODULE=github.com/owner/pgaccel`; on other
# hosts than github.com and gitlab.com with IMAGE=registry.example.com/owner/pgaccel.
publish-as:
	@scripts/publish-as.sh '$(MODULE)' '$(IMAGE)'

# The pages of docs as a site, in build/site, which needs no network.
site:
	@scripts/install-deps.sh site
	@scripts/site.sh

# What the machine must have: a PostgreSQL server, and a C compiler for the SQL parser.
deps:
	@scripts/install-deps.sh

demo: deps build
	$(BENCH_BIN) demo

# Everything, against a real PostgreSQL, real clients included.
test: deps build
	@scripts/install-deps.sh test
	@integration/install-clients.sh
	@scripts/test.sh

# What talks to a server, against PostgreSQL 17 and 18 as well: those servers are
# fetched into build/. VERSIONS=--short runs a part of it, VERSIONS=18 one of them.
VERSIONS ?=
test-versions: deps
	@scripts/install-deps.sh test
	@scripts/test-versions.sh $(VERSIONS)

# What needs no server and no C++ compiler: under a minute on two cores, once it is built.
# internal/arch sees to the list.
QUICK := ./bitmapidx ./catalog ./cmd/pgaccel ./colstore ./compress ./compress/internal/gen ./docs ./gpu/device \
	./internal/arch ./internal/docpage ./internal/inspect ./internal/processors ./internal/simd ./plan ./syntax ./upstream
quick:
	$(GO) test -short -timeout 5m $(QUICK)

# Most of what CI runs; .ci/run also fuzzes, and tests with PostgreSQL 17 and 18.
check: lint ptx race test

lint:
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "gofmt wants:"; echo "$$out"; exit 1; fi
	$(GO) vet $(PKGS)
	$(GO) tool staticcheck $(PKGS)
	scripts/check-cuda.sh

# The assembly of internal/simd from its generator. lint does not check that it is what
# is committed, because that needs avo's sources: CI runs scripts/simd.sh --check.
simd:
	@scripts/simd.sh

# What starts goroutines or uses unsafe pointers, which the race detector checks as well.
race: deps
	@scripts/install-deps.sh test
	$(GO) test -race -tags invariants -short -timeout 30m ./internal/simd ./compress ./colstore ./olap ./engine ./gpu/... ./upstream ./proxy ./replica

# The Go benchmarks of the working tree beside those of a commit, by benchstat:
# `make bench BASE=main BENCH='Decode|Filter' PACKAGES=./compress COUNT=10`.
BASE  ?= HEAD~1
BENCH ?= .
COUNT ?= 6
bench:
	@BENCH='$(BENCH)' COUNT='$(COUNT)' PACKAGES='$(PACKAGES)' scripts/benchcompare.sh '$(BASE)'

# Beside Postgres and DuckDB, in one run: ARGS='--scale 4', ARGS='--rows 2000000 --bytes'.
ARGS ?=
bench-ssb: deps build build/duckdb
	$(BENCH_BIN) ssb --duckdb build/duckdb $(ARGS)

bench-tpch: deps build build/duckdb
	$(BENCH_BIN) tpch --duckdb build/duckdb $(ARGS)

bench-clickbench: deps build build/duckdb
	$(BENCH_BIN) clickbench --duckdb build/duckdb $(ARGS)

bench-tpcds: deps build build/duckdb
	$(BENCH_BIN) tpcds --duckdb build/duckdb $(ARGS)

bench-bi: deps build build/duckdb
	$(BENCH_BIN) bi --duckdb build/duckdb $(ARGS)

# The comparisons of the papers: ARGS=--quick, ARGS='--only wah'.
bench-papers: build build/roaring
	$(BENCH_BIN) papers --roaring build/roaring $(ARGS)

bench-passthrough: deps build
	$(BENCH_BIN) passthrough

# DuckDB for the comparison: a module of its own, so that users never build it.
build/duckdb: $(wildcard bench/duckdb/*.go) bench/duckdb/go.mod
	cd bench/duckdb && $(GO) build -o ../../build/duckdb .

# RoaringBitmap for the comparison, likewise.
build/roaring: $(wildcard bench/roaring/*.go papers/wahbits/*.go papers/wahdata/*.go) bench/roaring/go.mod
	cd bench/roaring && $(GO) build -o ../../build/roaring .

# Every kernel that the tests have the emulator run, compiled for GPUs by clang.
ptx:
	@scripts/install-deps.sh ptx
	@scripts/ptx.sh

# Every decoder, for a fixed number of inputs each.
fuzz:
	@scripts/fuzz.sh $(FUZZTIME)

# Random queries, of PostgreSQL and through pgaccel: N=0 asks without end; under several
# collations, N of each: REFEREE='-collation all'.
N    ?= 20000
SEED ?= 0
referee: deps
	@scripts/install-deps.sh test
	$(GO) run -tags invariants ./scripts/referee -n $(N) -seed $(SEED) -dir integration/referee/testdata $(REFEREE)

# The concurrency and fault programs, each for D, with a random seed unless SEED is
# given: `make programs D=30m ONLY=mirror`.
D    ?= 5m
ONLY ?=
programs: deps
	$(GO) run ./integration/referee/programs -d $(D) -seed $(SEED) -only '$(ONLY)'

# PostgreSQL's, pgx's and node-postgres' own test suites through pgaccel.
regress: deps build
	integration/regress/regress.sh

clean:
	rm -rf bin build
