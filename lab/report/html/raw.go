package html

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
	// mostRaw limits the compressed data for download in the page, in bytes.
	mostRaw = 3 << 20
	// mostProfiles limits the encoded profiles in it, in bytes. The page has their
	// flame graphs already.
	mostProfiles = 256 << 10
)

// raw returns the report's JSON, gzipped, in base64; "" if it is too large even
// without the distributions. Trials that are not kept lose their series, hops and
// commands, and if necessary their histograms. lacks explains to readers what was
// omitted.
func raw(r *model.Report, k kept) (data, lacks string, err error) {
	r, without := withoutProfiles(r)
	for _, histograms := range []bool{true, false} {
		packed, err := pack(reduced(r, k, histograms))
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

// withoutProfiles omits the stacks of large profiles, and says so.
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

// reduced copies the report without the large parts of trials that are not kept.
func reduced(r *model.Report, k kept, histograms bool) *model.Report {
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
