// Package wahdata generates the data sets on which "GPU Acceleration of Range
// Queries over Large Data Sets" (Nelson, Sorenson, Myre, Sawin, Chiu; BDCAT 2019,
// section 4) measures its strategies, as the numbers of bins, one a row and
// attribute. Three of the four are recordings that are not ours to carry: they are
// imitated to the published rows, attributes and bins, and to the order of
// compressibility that the paper tells of (KDD is compressed far better than the
// others). The paper prints its ratios in a figure only, so none is claimed here;
// the benchmark shows what comes out. The fourth is synthetic there too.
//
// The same arguments give the same rows everywhere.
package wahdata
