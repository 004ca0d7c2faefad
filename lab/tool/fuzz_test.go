package tool

import (
	"testing"
)

// fuzzParser feeds a tool's parser with its captures and what the fuzzer makes
// of them: never a panic, never a zero that passes for a result.
func fuzzParser(f *testing.F, name string) {
	for i, c := range capturedOutputs {
		if c.tool.Name() != name {
			continue
		}
		outputs := c.read(f)
		server := outputs["server"].Stdout
		for role, out := range outputs {
			if role != "server" {
				f.Add(i, out.Stdout, server)
			}
		}
	}
	f.Fuzz(func(t *testing.T, i int, client, server string) {
		if i < 0 || i >= len(capturedOutputs) || capturedOutputs[i].tool.Name() != name {
			t.Skip("another tool's workload")
		}
		c := capturedOutputs[i]
		outputs := map[string]Output{"server": {Stdout: server}}
		for role := range c.outputs {
			if role != "server" {
				outputs[role] = Output{Stdout: client}
			}
		}
		m, err := c.tool.Parse(c.job(), outputs)
		honest(t, m, err)
	})
}

func FuzzIperf3(f *testing.F)   { fuzzParser(f, "iperf3") }
func FuzzNetperf(f *testing.F)  { fuzzParser(f, "netperf") }
func FuzzQperf(f *testing.F)    { fuzzParser(f, "qperf") }
func FuzzSockperf(f *testing.F) { fuzzParser(f, "sockperf") }
func FuzzNTttcp(f *testing.F)   { fuzzParser(f, "ntttcp") }
func FuzzFio(f *testing.F)      { fuzzParser(f, "fio") }

func FuzzBuiltinNTttcp(f *testing.F) { fuzzParser(f, "builtin-ntttcp") }
