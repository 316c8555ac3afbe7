// Package bitmapidx is the room of the 64-bit WAH bitmap indexes (DESIGN.md
// section 8). It holds nothing yet: columns are filtered on their encoded form.
package bitmapidx
