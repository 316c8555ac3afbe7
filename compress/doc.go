// Package compress holds the column codecs: encode, decode, gather, filter on
// the encoded form.
package compress
