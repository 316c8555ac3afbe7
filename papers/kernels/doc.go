// Package kernels holds the CUDA sources of the papers' comparisons (tile, rowout, wah, cube),
// which include building blocks of pgaccel's (the package kernels beside papers).
package kernels
