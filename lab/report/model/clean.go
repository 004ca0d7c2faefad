package model

import "windtunnel/lab/sample"

// withoutOutputs copies samples for the report: without the tools' raw text,
// and without what is not a finite number.
func withoutOutputs(samples []*sample.Sample) []sample.Sample {
	list := make([]sample.Sample, len(samples))
	for i, s := range samples {
		list[i], _ = s.Clean()
		list[i].Outputs = nil
	}
	return list
}
