// Package flags holds the types of flags that several commands have.
package flags
