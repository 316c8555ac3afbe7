package bench

import (
	"context"
	"errors"
	"io"
)

// papersWAH compares ways to combine WAH bitmaps.
func papersWAH(context.Context, io.Writer, bool, string) error {
	return errors.New("not there yet")
}
