package drawings

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"windtunnel/lab/report/export"
	"windtunnel/lab/report/model"
)

const (
	// mostRaw limits the size of the download in the page, in compressed bytes.
	mostRaw = 3 << 20
	// mostProfiles limits the size of the profiles in the download, in bytes. The page
	// shows their flame graphs anyway.
	mostProfiles = 256 << 10
)

// raw returns the report's JSON for download, gzipped, in base64. It omits the time
// series, hops and commands of trials that the page does not keep. If the data is still
// too large, it omits their latency histograms too, and then everything: data is "". lacks
// is a text for readers about omitted data.
func raw(r *model.Report, k kept) (data, lacks string, err error) {
	r, without := withoutProfiles(r)
	for _, histograms := range []bool{true, false} {
		packed, err := pack(reduce(r, k, histograms))
		if err != nil {
			return "", "", err
		}
		if len(packed) <= mostRaw {
			return base64.StdEncoding.EncodeToString(packed), strings.TrimSpace(lacks + " " + without), nil
		}
		lacks = "The download leaves out the latency distributions of most trials; `windtunnel report --format json` has them all."
	}
	return "", "The raw figures are too large for this page: `windtunnel report --format json` writes them.", nil
}

// withoutProfiles returns the report without the stacks of the profiles if these are too
// large, with a text for readers that says so.
func withoutProfiles(r *model.Report) (*model.Report, string) {
	size := 0
	for _, p := range r.Profiles {
		size += len(p.Data)
	}
	if size <= mostProfiles {
		return r, ""
	}
	small := *r
	small.Profiles = slices.Clone(r.Profiles)
	for i := range small.Profiles {
		small.Profiles[i].Data = ""
	}
	return &small, "The download leaves out the stacks of the CPU profiles; `windtunnel report --format json` has them."
}

func pack(r *model.Report) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		return nil, fmt.Errorf("compress the raw figures: %w", err)
	}
	if err := export.WriteJSON(z, r); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("compress the raw figures: %w", err)
	}
	return b.Bytes(), nil
}

// reduce returns a copy of the report. Trials that the page does not keep have no time
// series, hops and commands in it, and without histograms no latency histogram.
func reduce(r *model.Report, k kept, histograms bool) *model.Report {
	if k.Left == "" && histograms {
		return r
	}
	small := *r
	small.Scenarios = append([]model.Scenario(nil), r.Scenarios...)
	for i := range small.Scenarios {
		row := &small.Scenarios[i]
		row.Samples = append(row.Samples[:0:0], row.Samples...)
		for j := range row.Samples {
			if k.samples[&r.Scenarios[i].Samples[j]] {
				continue
			}
			s := &row.Samples[j]
			s.Series, s.Hops, s.Commands = nil, nil, nil
			if !histograms {
				s.Latency = ""
			}
		}
	}
	return &small
}
