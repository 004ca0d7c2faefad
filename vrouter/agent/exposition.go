package agent

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"
)

// exposition is one answer to Prometheus, in its text format (version 0.0.4).
type exposition struct {
	prefix   string
	families []*family
	samples  map[*family][]string
}

// family is a metric: its samples differ in their labels' values.
type family struct {
	name, help string
	kind       kind
	labels     []string
}

// kind of a metric.
type kind string

const (
	counter kind = "counter"
	gauge   kind = "gauge"
)

const expositionType = "text/plain; version=0.0.4; charset=utf-8"

func newExposition(prefix string) *exposition {
	return &exposition{prefix: prefix, samples: map[*family][]string{}}
}

// add adds a sample; values are the labels', in their order.
func (e *exposition) add(f *family, n float64, values ...string) {
	e.put(f, strconv.FormatFloat(n, 'g', -1, 64), values)
}

// count adds a sample of a counter, exactly.
func (e *exposition) count(f *family, n uint64, values ...string) {
	e.put(f, strconv.FormatUint(n, 10), values)
}

func (e *exposition) put(f *family, n string, values []string) {
	if _, known := e.samples[f]; !known {
		e.families = append(e.families, f)
	}
	line := e.prefix + f.name
	for i, label := range f.labels {
		open := ","
		if i == 0 {
			open = "{"
		}
		line += open + label + `="` + labelValue.Replace(values[i]) + `"`
	}
	if len(f.labels) > 0 {
		line += "}"
	}
	e.samples[f] = append(e.samples[f], line+" "+n)
}

// labelValue escapes what the format asks for.
var labelValue = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// WriteTo writes the answer, samples of a family together and in order.
func (e *exposition) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	for _, f := range e.families {
		b.WriteString("# HELP " + e.prefix + f.name + " " + f.help + "\n")
		b.WriteString("# TYPE " + e.prefix + f.name + " " + string(f.kind) + "\n")
		slices.Sort(e.samples[f])
		for _, line := range e.samples[f] {
			b.WriteString(line + "\n")
		}
	}
	return b.WriteTo(w)
}
