package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"
)

// configure makes every flag of cmd also an environment variable (--max-clients is
// PGACCEL_MAX_CLIENTS) and a key of the YAML file that --config names. A flag on
// the command line wins over the environment, the environment over the file.
func configure(cmd *cobra.Command) error {
	v := viper.New()
	v.SetEnvPrefix("pgaccel")
	v.SetEnvKeyReplacer(strings.NewReplacer("-", "_"))
	v.AutomaticEnv()
	if f := cmd.Flags().Lookup("config"); f != nil {
		file := f.Value.String()
		if !f.Changed {
			if env := v.GetString("config"); env != "" {
				file = env
			}
		}
		if file != "" {
			v.SetConfigFile(file)
			if err := v.ReadInConfig(); err != nil {
				var missing viper.ConfigFileNotFoundError
				if errors.As(err, &missing) || errors.Is(err, fs.ErrNotExist) {
					return fmt.Errorf("--config %s: no such file", file)
				}
				return fmt.Errorf("--config %s: %w", file, err)
			}
			for _, key := range v.AllKeys() {
				if cmd.Flags().Lookup(key) == nil {
					return fmt.Errorf("--config %s: unknown key %q", file, key)
				}
			}
		}
	}
	var err error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if err != nil || f.Changed || f.Name == "config" || !v.IsSet(f.Name) {
			return
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values := v.GetStringSlice(f.Name)
			if len(values) == 1 {
				values = strings.Split(values[0], ",")
			}
			err = list.Replace(values)
		} else {
			err = f.Value.Set(v.GetString(f.Name))
		}
		if err != nil {
			err = fmt.Errorf("--%s: %w", f.Name, err)
		}
	})
	return err
}

// share is a flag for a part of a whole: 1%, or 0.01.
type share float64

// String implements pflag.Value.
func (p *share) String() string { return strconv.FormatFloat(float64(*p)*100, 'g', -1, 64) + "%" }

// Set implements pflag.Value.
func (p *share) Set(s string) error {
	number, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		n /= 100
	}
	if err != nil || !(n >= 0 && n <= 1) {
		return fmt.Errorf("%q is not a share such as 1%% or 0.01", s)
	}
	*p = share(n)
	return nil
}

// Type implements pflag.Value.
func (p *share) Type() string { return "share" }

// toggle is a flag's value on or off, in a YAML file true or false, too.
type toggle bool

// String implements pflag.Value.
func (t *toggle) String() string {
	if *t {
		return "on"
	}
	return "off"
}

// Set implements pflag.Value.
func (t *toggle) Set(s string) error {
	switch s {
	case "on", "true":
		*t = true
	case "off", "false":
		*t = false
	default:
		return fmt.Errorf("%q is neither on nor off", s)
	}
	return nil
}

// Type implements pflag.Value.
func (t *toggle) Type() string { return "on|off" }
