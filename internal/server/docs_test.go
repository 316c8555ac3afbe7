package server

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"pgaccel/internal/docpage"
)

// descParts are the name, the help and the labels in what a Desc prints.
var descParts = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: "(.*)", unit: "", constLabels: \{\}, variableLabels: \{(.*)\}\}$`)

// metricKind is what a metric is to Prometheus. A Desc does not know; what counts up ends in _total.
func metricKind(c prometheus.Collector, name string) string {
	switch c.(type) {
	case prometheus.Histogram, *prometheus.HistogramVec:
		return "histogram"
	}
	if strings.HasSuffix(name, "_total") {
		return "counter"
	}
	return "gauge"
}

// TestMetricsPage: docs/metrics.md has each metric of pgaccel's, whether or not there is one now.
func TestMetricsPage(t *testing.T) {
	var rows []string
	for _, c := range append(newObserver().collectors(), &processCollector{}, &databaseCollector{}) {
		all := make(chan *prometheus.Desc, 200)
		c.Describe(all)
		close(all)
		for d := range all {
			m := descParts.FindStringSubmatch(d.String())
			if m == nil {
				t.Fatalf("a description in another form: %s", d)
			}
			labels := ""
			if m[3] != "" {
				labels = "`" + strings.ReplaceAll(m[3], ",", "`, `") + "`"
			}
			rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |\n", m[1], metricKind(c, m[1]), labels, strings.NewReplacer("|", `\|`, `\"`, `"`).Replace(m[2])))
		}
	}
	if len(rows) < 50 {
		t.Errorf("%d metrics", len(rows))
	}
	slices.Sort(rows)
	docpage.Section(t, "metrics.md", "metrics", "| metric | type | labels | |\n|---|---|---|---|\n"+strings.Join(rows, ""))
}
