package html

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"

	"windtunnel/lab/report"
)

// mostRaw bounds the compressed data that the page carries for download.
const mostRaw = 3 << 20

// raw is the report's JSON, gzipped, in base64; empty where even without the
// distributions it would be too large. Trials that are not kept lose their
// series, hops and commands, and where that is not enough their histograms;
// lacks says so for people.
func raw(r *report.Report, k kept) (data, lacks string, err error) {
	for _, histograms := range []bool{true, false} {
		packed, err := pack(reduced(r, k, histograms))
		if err != nil {
			return "", "", err
		}
		if len(packed) <= mostRaw {
			return base64.StdEncoding.EncodeToString(packed), lacks, nil
		}
		lacks = "The download leaves out the latency distributions of most trials; `windtunnel report --format json` has them all."
	}
	return "", "The raw figures are too large for this page: `windtunnel report --format json` writes them.", nil
}

func pack(r *report.Report) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		return nil, fmt.Errorf("compress the raw figures: %w", err)
	}
	if err := report.WriteJSON(z, r); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("compress the raw figures: %w", err)
	}
	return b.Bytes(), nil
}

// reduced copies the report without what is large in the trials not kept.
func reduced(r *report.Report, k kept, histograms bool) *report.Report {
	if k.Left == "" && histograms {
		return r
	}
	small := *r
	small.Scenarios = append([]report.Scenario(nil), r.Scenarios...)
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
