package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"pgaccel/internal/flags"
)

// checks say of a flag's value what is wrong with it and what to write instead. They are
// asked about values that somebody has given.
var checks = map[string]func(text string) error{
	"workers":             atLeast(0, "0 is one a core"),
	"copy-sessions":       atLeast(0, "0 is one a core, 32 at most"),
	"max-clients":         atLeast(1, "most client connections at a time, such as 10000"),
	"memory":              sizeFrom(1 << 20),
	"query-memory":        sizeFrom(1 << 20),
	"reuse-memory":        sizeFrom(64 << 10),
	"device-memory":       sizeFrom(1 << 20),
	"temp-limit":          sizeFrom(64 << 10),
	"max-retained-wal":    sizeFrom(16 << 20),
	"wait-limit":          durationFrom(0, "0 does not wait"),
	"drain-timeout":       durationFrom(0, "0 ends sessions at once"),
	"checkpoint-interval": durationFrom(10*time.Millisecond, "such as 1m"),
	"log-level":           oneOf("debug", "info", "warn", "error"),
	"log-format":          oneOf("text", "json"),
	"format":              oneOf("text", "json"),
	"top":                 atLeast(1, "such as 50"),
	"tls-require":         oneOf("", "on", "off", "true", "false"), // as in a YAML file
}

func atLeast(least int, remedy string) func(string) error {
	return func(text string) error {
		if n, err := strconv.Atoi(text); err != nil || n < least {
			return fmt.Errorf("%s is less than %d (%s)", text, least, remedy)
		}
		return nil
	}
}

// sizeFrom takes 0, too, which is the default.
func sizeFrom(least flags.ByteSize) func(string) error {
	return func(text string) error {
		var n flags.ByteSize
		if err := n.Set(text); err != nil {
			return err
		}
		if n != 0 && n < least {
			return fmt.Errorf("%s is less than %s (a number without a unit is bytes: write 8GiB or 512MiB)", text, least.String())
		}
		return nil
	}
}

func durationFrom(least time.Duration, remedy string) func(string) error {
	return func(text string) error {
		if d, err := time.ParseDuration(text); err != nil || d < least {
			return fmt.Errorf("%s is less than %s (%s)", text, least, remedy)
		}
		return nil
	}
}

func oneOf(words ...string) func(string) error {
	return func(text string) error {
		if !slices.Contains(words, text) {
			return fmt.Errorf("%q is none of %s", text, strings.TrimPrefix(strings.Join(words, ", "), ", "))
		}
		return nil
	}
}
