package results

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// All data of a run with very many pairs may not fit into the memory.
func TestOnlyTheMainFiguresOfALargeMatrixAreRead(t *testing.T) {
	store := must.Get(Open(filepath.Join(t.TempDir(), "large.db"), Options{}))(t)
	defer store.Close()
	for _, hosts := range []int{3, 40} {
		var names []string
		for i := range hosts {
			names = append(names, fmt.Sprintf("h%d", i))
		}
		m, err := suite.NewMatrix(names, "all", 1)
		must.Succeed(t, err)
		run := sample.Run{ID: fmt.Sprintf("run-%d", hosts), Started: time.Now()}
		plan := suite.Plan{Matrix: m, Scenarios: []suite.Scenario{{ID: "raw/one"}}}
		must.Succeed(t, store.CreateRun(run, plan))
		_, err = store.AppendSample(run.ID, sample.Sample{
			Scenario: suite.PairID("raw/one", m.Pair(1)), Started: time.Now(), Series: []sample.Point{{At: 0.1, Bits: 1e9}},
			Metrics: sample.Metrics{sample.Throughput: 1e9, sample.SenderCPU: 40}, Gates: []sample.Gate{{Name: sample.Steal}},
		})
		must.Succeed(t, err)
		data := must.Get(store.Load(run.ID))(t)
		if data.Plan.Matrix.Len() != hosts*(hosts-1) {
			t.Errorf("%d hosts: the loaded plan has %d pairs, want %d", hosts, data.Plan.Matrix.Len(), hosts*(hosts-1))
		}
		s := data.Samples[0]
		_, cpu := s.Metrics[sample.SenderCPU]
		if large := hosts == 40; (len(s.Series) == 0) != large || cpu == large {
			t.Errorf("%d hosts: %d points and the metrics %v were read, want all of them only for the small run", hosts, len(s.Series), s.Metrics)
		}
		if s.Metrics[sample.Throughput] != 1e9 || len(s.Gates) != 1 {
			t.Errorf("%d hosts: the sample is %+v, want throughput and gates", hosts, s)
		}
	}
}
