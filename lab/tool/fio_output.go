package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// fioFlow has the figures of one end of fio for one direction: its progress since the
// start of traffic or the end of the warm-up, and the totals.
type fioFlow struct {
	course steps   // amounts in transfers of whole blocks; times in seconds
	took   float64 // seconds
	whole  fioSide // of the newest document, for its latencies
}

// fioSide is the part of a document for reading or for writing.
type fioSide struct {
	Transfers float64 `json:"total_ios"`
	Short     float64 `json:"short_ios"`
	Runtime   float64 `json:"runtime"` // ms
	Latency   struct {
		Min         float64            `json:"min"` // ns
		Max         float64            `json:"max"`
		Mean        float64            `json:"mean"`
		N           float64            `json:"N"`
		Percentiles map[string]float64 `json:"percentile"`
	} `json:"clat_ns"`
}

// complete returns the number of whole blocks. If a receive call returns only a part
// of a block, fio calls again for the other part. fio 3.33 then counts the first call
// both as a transfer and as a short transfer. io_bytes includes only the other part of
// the block, so it is too small.
func (s fioSide) complete() float64 { return s.Transfers - s.Short }

// fioDocument is one interim result, or the final one.
type fioDocument struct {
	Jobs []struct {
		Error int     `json:"error"` // errno of the first job that failed
		Read  fioSide `json:"read"`
		Write fioSide `json:"write"`
	} `json:"jobs"`
}

// readFio reads every document in an output, and ignores other text. It stops at a
// truncated document. The documents before it have the figures until the process was
// ended.
func readFio(text string) (documents []fioDocument, err error) {
	const opening = "{\n"
	for at := 0; at < len(text); {
		rest := text[at:]
		if !strings.HasPrefix(rest, opening) {
			next := strings.Index(rest, "\n"+opening)
			if next < 0 {
				break
			}
			at += next + 1
			continue
		}
		var d fioDocument
		decoder := json.NewDecoder(strings.NewReader(rest))
		if err := decoder.Decode(&d); err != nil {
			break
		}
		if len(d.Jobs) != 1 {
			return nil, fmt.Errorf("a result has %d groups of jobs, want 1", len(d.Jobs))
		}
		documents = append(documents, d)
		at += max(1, int(decoder.InputOffset()))
	}
	if len(documents) == 0 {
		return nil, errors.New("the output has no result")
	}
	return documents, nil
}

// fioCourse extracts the progress of one direction from the documents. fio resets its
// counters when its warm-up ends, so only the documents after the last reset count.
func fioCourse(documents []fioDocument, side func(fioDocument) fioSide) (f fioFlow, err error) {
	var before fioSide
	for _, d := range documents {
		s := side(d)
		if s.Transfers < 0 || s.Short < 0 || s.Runtime < 0 || s.Short > s.Transfers {
			return f, fmt.Errorf("%g of %g transfers in %g ms were short, which is impossible", s.Short, s.Transfers, s.Runtime)
		}
		if s.Runtime < before.Runtime || s.complete() < before.complete() {
			f.course, before = nil, fioSide{}
		}
		if s.Runtime > before.Runtime {
			f.course = append(f.course, step{from: before.Runtime / 1e3, to: s.Runtime / 1e3, amount: s.complete() - before.complete()})
			before = s
		}
		f.whole = s
	}
	f.took = before.Runtime / 1e3
	return f, nil
}

// reading and writing choose a direction.
func reading(d fioDocument) fioSide { return d.Jobs[0].Read }
func writing(d fioDocument) fioSide { return d.Jobs[0].Write }

// rate returns transfers per second within [from, from + length] of the flow's time.
// ok is false if the documents do not cover enough of it.
func (f fioFlow) rate(from, length time.Duration) (perSecond float64, ok bool) {
	return f.course.rate(from.Seconds(), (from + length).Seconds())
}
