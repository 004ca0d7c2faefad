package export

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/perf/benchfmt"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/model"
	"windtunnel/lab/sample"
)

// WriteBenchfmt writes the samples that count in the Go benchmark format
// (golang.org/design/14313-benchmark-format), which benchstat reads. Each trial is a
// line. The workload is its name and the system is a key. So the commands
//
//	benchstat -col /system run.txt
//	benchstat before.txt after.txt
//
// compare systems within a run, and runs with each other. The key is the part of the
// scenario's id before "/", so placements are separate too. benchstat does not compare
// runs with different configuration lines. So these lines have only properties that two
// comparable runs share. The run's ID, start and seed are a comment.
func WriteBenchfmt(w io.Writer, r *model.Report) error {
	if err := writeBenchfmt(w, r); err != nil {
		return fmt.Errorf("write run %s in benchmark format: %w", r.Run.ID, err)
	}
	return nil
}

func writeBenchfmt(w io.Writer, r *model.Report) error {
	if _, err := fmt.Fprintf(w, "# windtunnel run %s, started %s, seed %d\n", oneLine(r.Run.ID), r.Run.Started.UTC().Format("2006-01-02T15:04:05Z"), r.Run.Seed); err != nil {
		return err
	}
	out := benchfmt.NewWriter(w)
	for _, unit := range benchUnits(r) {
		if err := out.Write(unit); err != nil {
			return err
		}
	}
	config := benchConfig(r)
	for i := range r.Scenarios {
		sc := &r.Scenarios[i]
		for _, s := range sc.Counting() {
			values := benchValues(s)
			if len(values) == 0 {
				continue
			}
			if err := out.Write(&benchfmt.Result{Config: config, Name: benchName(sc), Iters: 1, Values: values}); err != nil {
				return err
			}
		}
	}
	return nil
}

func benchConfig(r *model.Report) []benchfmt.Config {
	var config []benchfmt.Config
	e := &r.Run.Environment
	for _, c := range []struct{ key, value string }{
		{"suite", r.Run.Suite}, {"kernel", e.Kernel}, {"cpu", e.CPUModel}, {"cpus", positive(e.CPUs)},
		{"congestion", e.CongestionControl},
	} {
		if value := oneLine(c.value); value != "" {
			config = append(config, benchfmt.Config{Key: c.key, Value: []byte(value), File: true})
		}
	}
	return config
}

func positive(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// benchName returns a name such as "Stream/system=bridge/tool=builtin/offload=tcp".
func benchName(sc *model.Scenario) benchfmt.Name {
	group, workload, found := strings.Cut(sc.ID, "/")
	if !found {
		workload = sc.Workload.Name
	}
	name := phrase.Capital(token(workload))
	if first := []rune(name); len(first) == 0 || !unicode.IsUpper(first[0]) {
		name = "Workload" + name // "Benchmark" must not go on with a small letter or digit
	}
	for _, part := range []struct{ key, value string }{{"system", group}, {"tool", sc.Tool}, {"offload", sc.Offload}} {
		if value := token(part.value); value != "" {
			name += "/" + part.key + "=" + value
		}
	}
	// A number after a last hyphen would be read as GOMAXPROCS.
	if i := strings.LastIndexByte(name, '-'); i >= 0 && strings.Trim(name[i+1:], "0123456789") == "" {
		name = name[:i] + "_" + name[i+1:]
	}
	return benchfmt.Name(name)
}

// token replaces characters that a part of a name must not have.
func token(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) || unicode.IsControl(c) || c == '/' || c == '=' {
			return '_'
		}
		return c
	}, text)
}

// oneLine replaces each run of white space by a space.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// benchValues lists the known metrics of a sample in the order of the reports.
func benchValues(s *sample.Sample) []benchfmt.Value {
	var values []benchfmt.Value
	for _, info := range sample.Known() {
		if v, ok := s.Metrics[info.Metric]; ok {
			values = append(values, benchfmt.Value{Value: v, Unit: benchUnit(info.Metric)})
		}
	}
	return values
}

// benchUnits returns the metadata of each unit in the samples: the better direction, and
// assume=nothing. The latter makes benchstat use medians, as the other reports do.
func benchUnits(r *model.Report) []*benchfmt.UnitMetadata {
	occurs := make(map[sample.Metric]bool)
	for i := range r.Scenarios {
		for _, s := range r.Scenarios[i].Counting() {
			for m := range s.Metrics {
				occurs[m] = true
			}
		}
	}
	var list []*benchfmt.UnitMetadata
	for _, info := range slices.DeleteFunc(sample.Known(), func(i sample.Info) bool { return !occurs[i.Metric] }) {
		unit := benchUnit(info.Metric)
		add := func(key, value string) {
			list = append(list, &benchfmt.UnitMetadata{UnitMetadataKey: benchfmt.UnitMetadataKey{Unit: unit, Key: key}, OrigUnit: unit, Value: value})
		}
		switch info.Better {
		case +1:
			add("better", "higher")
		case -1:
			add("better", "lower")
		}
		add("assume", "nothing")
	}
	return list
}

// benchUnit returns a unit that no other metric has, because benchstat makes one table
// for each unit. Throughput has bit/s. Other metrics have their name before the unit,
// such as "sender-cpu-ns/B".
func benchUnit(m sample.Metric) string {
	if m == sample.Throughput {
		return "bit/s"
	}
	name := string(m)
	if rest, ok := strings.CutPrefix(name, "latency_ns_"); ok {
		return "latency-" + rest + "-ns"
	}
	for _, s := range []struct{ suffix, unit string }{
		{"_ns_per_byte", "-ns/B"}, {"_ns_per_packet", "-ns/packet"}, {"_per_s", "/s"}, {"_bps", "-bit/s"},
		{"_percent", "-%"}, {"_bytes", "-B"}, {"_ns", "-ns"}, {"_s", "-s"},
	} {
		if rest, ok := strings.CutSuffix(name, s.suffix); ok {
			return strings.ReplaceAll(rest, "_", "-") + s.unit
		}
	}
	return strings.ReplaceAll(name, "_", "-")
}
