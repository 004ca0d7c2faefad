package datapath

import (
	"path/filepath"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/kerneltest"
)

// The verifier of each kernel version accepts other programs.
func TestTheProgramsLoadOnAnotherKernel(t *testing.T) {
	must.Long(t)
	if !kerneltest.In() {
		for _, kernel := range kerneltest.Kernels(t) {
			t.Run(filepath.Base(kernel), func(t *testing.T) {
				kerneltest.Run(t, kerneltest.Guest{Seconds: 120, Megabyte: 1024, Kernel: kernel, Tests: "^TestTheProgramsLoadOnAnotherKernel$"})
			})
		}
		return
	}
	must.Succeed(t, kerneltest.Prepare())
	d := open(t, Options{Pins: pins(t)})
	programs := must.Get(d.Programs())(t)
	for _, p := range programs {
		t.Logf("%s: the verifier walked %d instructions", p.Name, p.VerifiedInstructions)
	}
	tracing := must.Get(d.loadTracing())(t)
	tracing.Close()
}
