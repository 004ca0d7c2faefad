package results

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/procfs"

	"windtunnel/lab/sample"
)

// row is a sample in the form of the database tables. encode makes it before the
// transaction begins, so that the transaction is short.
type row struct {
	sample                                         sample.Sample
	series, hops, warnings, commands, gates, flags any // JSON text; nil if empty
	outputs                                        []packedOutput
}

type packedOutput struct {
	role           string
	exit           int
	stdout, stderr []byte // zstd
}

func encode(smp sample.Sample) (*row, error) {
	smp, left := smp.Clean()
	smp.Warnings = append(slices.Clone(smp.Warnings), left...)
	r := &row{sample: smp}
	for _, part := range []struct {
		column *any
		value  any
		empty  bool
	}{
		{&r.series, smp.Series, len(smp.Series) == 0},
		{&r.hops, smp.Hops, len(smp.Hops) == 0},
		{&r.warnings, smp.Warnings, len(smp.Warnings) == 0},
		{&r.commands, smp.Commands, len(smp.Commands) == 0},
		{&r.gates, smp.Gates, len(smp.Gates) == 0},
		{&r.flags, smp.Flags, len(smp.Flags) == 0},
	} {
		if part.empty {
			continue
		}
		text, err := json.Marshal(part.value)
		if err != nil {
			return nil, err
		}
		*part.column = string(text)
	}
	for _, o := range smp.Outputs {
		r.outputs = append(r.outputs, packedOutput{role: o.Role, exit: o.Exit, stdout: compress(o.Stdout), stderr: compress(o.Stderr)})
	}
	return r, nil
}

func (r *row) insert(t *tx, runID string) (id int64, err error) {
	s := &r.sample
	var kind, message, latency any
	if s.Failure != nil {
		kind, message = string(s.Failure.Kind), s.Failure.Message
	}
	if s.Latency != "" {
		latency = s.Latency
	}
	err = t.QueryRow(`INSERT INTO sample (run_id, scenario, block, position, attempt, started, took_ns,
		failure_kind, failure_message, latency, series_json, hops_json, warnings_json, commands_json, gates_json, flags_json, profiled, limited_by)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		runID, s.Scenario, s.Block, s.Position, s.Attempt, stamp(s.Started), s.Took.Nanoseconds(),
		kind, message, latency, r.series, r.hops, r.warnings, r.commands, r.gates, r.flags, s.Profiled, string(s.Limit)).Scan(&id)
	if err != nil {
		return 0, err
	}
	if err := insertMetrics(t, id, s.Metrics); err != nil {
		return 0, err
	}
	for i, o := range r.outputs {
		if _, err := t.Exec("INSERT INTO output (sample_id, ordinal, role, exit, stdout_zstd, stderr_zstd) VALUES (?, ?, ?, ?, ?, ?)",
			id, i, o.role, o.exit, o.stdout, o.stderr); err != nil {
			return 0, err
		}
	}
	for _, p := range s.Profiles {
		if _, err := t.Exec("INSERT INTO profile (sample_id, side, cores, data) VALUES (?, ?, ?, ?)", id, p.Side, p.Cores, p.Data); err != nil {
			return 0, err
		}
	}
	return id, nil
}

// stored returns the ID of the sample if an earlier attempt stored it; otherwise 0. No two
// samples of a run have the same trial, attempt and start.
func (r *row) stored(t *tx, runID string) (id int64, err error) {
	s := &r.sample
	err = t.QueryRow("SELECT id FROM sample WHERE run_id = ? AND scenario = ? AND block = ? AND attempt = ? AND profiled = ? AND started = ?",
		runID, s.Scenario, s.Block, s.Attempt, s.Profiled, stamp(s.Started)).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return id, err
}

func insertMetrics(t *tx, id int64, metrics sample.Metrics) error {
	if len(metrics) == 0 {
		return nil
	}
	args := make([]any, 0, 3*len(metrics))
	for m, v := range metrics {
		args = append(args, id, string(m), v)
	}
	_, err := t.Exec("INSERT INTO metric (sample_id, metric, value) VALUES (?, ?, ?)"+strings.Repeat(", (?, ?, ?)", len(metrics)-1), args...)
	return err
}

// maxOutput limits the size of one decompressed output, in bytes, so that a damaged or
// hostile store cannot fill the memory.
const maxOutput = 256 << 20

var encoder = sync.OnceValue(func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err) // only wrong options fail, and these are constant
	}
	return e
})

var decoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxOutput))
	if err != nil {
		panic(err) // only wrong options fail, and these are constant
	}
	return d
})

func compress(text string) []byte { return encoder().EncodeAll([]byte(text), []byte{}) }

func decompress(packed []byte) (string, error) {
	if len(packed) == 0 {
		return "", nil
	}
	text, err := decoder().DecodeAll(packed, nil)
	if err != nil {
		return "", fmt.Errorf("decompress %d bytes of zstd: %w", len(packed), err)
	}
	return string(text), nil
}

// engine returns a text that identifies a process: the boot ID, the PID, and the start
// time of the process in clock ticks since boot. The PID alone is not enough, because
// the kernel reuses PIDs. engine returns "" if the process has ended, or if /proc does
// not have these values.
func engine(pid int) string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	p, err := procfs.NewProc(pid)
	if err != nil {
		return ""
	}
	stat, err := p.Stat()
	if err != nil || stat.State == "Z" || stat.State == "X" {
		return ""
	}
	return fmt.Sprintf("%s %d %d", strings.TrimSpace(string(boot)), pid, stat.Starttime)
}

// alive reports whether the process that by identifies runs on this machine.
func alive(by string) bool {
	var boot string
	var pid int
	n, _ := fmt.Sscan(by, &boot, &pid)
	return n == 2 && engine(pid) == by
}

// measured reports whether an engine measures a run now. by is the engine that the store
// has for the run.
type measured func(run, by string) bool

// status returns the status of a run. stored is the status in the store. If it is "running"
// but the engine has ended, the run was interrupted: by a kill, or because the machine
// stopped.
func (m measured) status(stored sample.Status, run, by string) sample.Status {
	if stored != sample.Running || m(run, by) {
		return stored
	}
	return sample.Stopped
}
