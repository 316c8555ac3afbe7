module pgaccel

go 1.26.0

tool honnef.co/go/tools/cmd/staticcheck
