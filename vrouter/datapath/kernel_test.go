package datapath

import (
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/kerneltest"
)

// The verifier of each kernel version accepts other programs.
func TestTheProgramsLoadOnAnotherKernel(t *testing.T) {
	must.Long(t)
	if !kerneltest.In() {
		kerneltest.Run(t, kerneltest.Guest{Seconds: 120, Megabyte: 1024})
		return
	}
	must.Succeed(t, kerneltest.Prepare())
	d := open(t, Options{Pins: pins(t)})
	programs, err := d.Programs()
	must.Succeed(t, err)
	for _, p := range programs {
		t.Logf("%s: the verifier walked %d instructions", p.Name, p.VerifiedInstructions)
	}
	tracing, err := d.loadTracing()
	must.Succeed(t, err)
	tracing.Close()
}
