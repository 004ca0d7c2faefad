package datapath

import (
	"testing"

	"windtunnel/vrouter/kerneltest"
)

// The verifier of each kernel version accepts other programs.
func TestTheProgramsLoadOnAnotherKernel(t *testing.T) {
	if !kerneltest.In() {
		kerneltest.Run(t, kerneltest.Guest{Seconds: 120, Megabyte: 1024})
		return
	}
	if err := kerneltest.Prepare(); err != nil {
		t.Fatal(err)
	}
	d := open(t, Options{Pins: pins(t)})
	programs, err := d.Programs()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range programs {
		t.Logf("%s: the verifier walked %d instructions", p.Name, p.VerifiedInstructions)
	}
	tracing, err := d.loadTracing()
	if err != nil {
		t.Fatal(err)
	}
	tracing.Close()
}
