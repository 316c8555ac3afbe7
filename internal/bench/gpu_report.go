package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"pgaccel/gpu/device"
	"pgaccel/internal/server"
)

// gpuReport is what a run of `pgaccel-bench gpu` found, as its JSON file has it.
type gpuReport struct {
	Date      string        `json:"date"`
	Version   string        `json:"pgaccel"`
	Go        string        `json:"go"`
	Processor string        `json:"processor"`
	Cores     int           `json:"cores"`
	Devices   []device.Info `json:"devices"`
	Quick     bool          `json:"quick,omitempty"`
	Copies    copyRates     `json:"copies"`
	Tables    []gpuTable    `json:"tables"`
	Errors    []string      `json:"errors,omitempty"`
}

// gpuTable is one table of a report. A row has one value for each column: a string, or a
// number in the column's unit; nil is left empty.
type gpuTable struct {
	Part    string   `json:"part"`
	Title   string   `json:"title"`
	Columns []string `json:"columns,omitempty"`
	Rows    [][]any  `json:"rows,omitempty"`
	Notes   []string `json:"notes,omitempty"`

	// Text is in place of columns and rows where a part prints itself; Data is then what
	// it measured.
	Text string `json:"-"`
	Data any    `json:"data,omitempty"`
}

func newGPUReport(o GPUOptions, devices []device.Info) *gpuReport {
	return &gpuReport{Date: time.Now().UTC().Format(time.RFC3339), Version: server.Version(), Go: runtime.Version(),
		Processor: processor(), Cores: runtime.GOMAXPROCS(0), Devices: devices, Quick: o.Quick}
}

// head are the lines that say what was measured where.
func (r *gpuReport) head() []string {
	lines := []string{fmt.Sprintf("pgaccel %s, %s, %s, %d cores, %s", r.Version, r.Go, r.Processor, r.Cores, r.Date)}
	for i, d := range r.Devices {
		lines = append(lines, fmt.Sprintf("device %s:%d: %s (%s), driver %s, %d multiprocessors, %s of memory", d.Kind, i, d.Name, d.Arch, d.Driver, d.SMs, size(d.Memory)))
	}
	if r.Quick {
		lines = append(lines, "A quick run over tiny inputs: it checks the answers, its times mean little.")
	}
	return lines
}

func (r *gpuReport) printHead(out io.Writer) {
	for _, line := range r.head() {
		fmt.Fprintln(out, line)
	}
}

// cell prints a value of a table.
func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		if v < 1 {
			return fmt.Sprintf("%.4f", v)
		}
		return digits(v)
	}
	return fmt.Sprint(v)
}

// print writes the table as aligned text: numbers to the right.
func (t *gpuTable) print(out io.Writer) {
	fmt.Fprintln(out, t.Title)
	if t.Text != "" {
		fmt.Fprint(out, t.Text)
		return
	}
	widths := make([]int, len(t.Columns))
	for i, name := range t.Columns {
		widths[i] = utf8.RuneCountInString(name)
		for _, row := range t.Rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell(row[i])))
		}
	}
	line := func(cells []any) {
		var b strings.Builder
		for i, v := range cells {
			text := cell(v)
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text))
			if _, isText := v.(string); isText && i == 0 {
				b.WriteString(text + pad + "  ")
			} else {
				b.WriteString(pad + text + "  ")
			}
		}
		fmt.Fprintln(out, strings.TrimRight(b.String(), " "))
	}
	head := make([]any, len(t.Columns))
	for i, name := range t.Columns {
		head[i] = name
	}
	line(head)
	for _, row := range t.Rows {
		line(row)
	}
	for _, note := range t.Notes {
		fmt.Fprintln(out, note)
	}
}

// markdown writes the table for a document.
func (t *gpuTable) markdown(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n## %s: %s\n\n", t.Part, t.Title)
	if t.Text != "" {
		fmt.Fprintf(b, "```\n%s```\n", strings.TrimLeft(t.Text, "\n"))
		return
	}
	escape := strings.NewReplacer("|", `\|`, "\n", " ")
	fmt.Fprintf(b, "| %s |\n|", strings.Join(t.Columns, " | "))
	for i := range t.Columns {
		if i == 0 {
			b.WriteString(" --- |")
		} else {
			b.WriteString(" ---: |")
		}
	}
	b.WriteString("\n")
	for _, row := range t.Rows {
		b.WriteString("|")
		for _, v := range row {
			b.WriteString(" " + escape.Replace(cell(v)) + " |")
		}
		b.WriteString("\n")
	}
	for _, note := range t.Notes {
		fmt.Fprintf(b, "\n%s\n", note)
	}
}

// write makes FILE.json and FILE.md.
func (r *gpuReport) write(file string) error {
	file = strings.TrimSuffix(strings.TrimSuffix(file, ".json"), ".md")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := os.WriteFile(file+".json", append(text, '\n'), 0o644); err != nil {
		return err
	}
	var b bytes.Buffer
	title := "the device path"
	if len(r.Devices) > 0 {
		title = r.Devices[0].Name
	}
	fmt.Fprintf(&b, "# pgaccel-bench gpu: %s\n\n", title)
	for _, line := range r.head() {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	fmt.Fprintf(&b, "- %v\n", r.Copies)
	for i := range r.Tables {
		r.Tables[i].markdown(&b)
	}
	for _, e := range r.Errors {
		fmt.Fprintf(&b, "\n**Failed:** %s\n", e)
	}
	return os.WriteFile(file+".md", b.Bytes(), 0o644)
}
