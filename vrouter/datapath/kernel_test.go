package datapath

import (
	"path/filepath"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/kerneltest"
	"windtunnel/vrouter/model"
)

// The verifiers of kernel versions differ in the programs that they accept. The kernel must also support batch
// operations on all maps. With -short the test uses only the first kernel, which is the oldest one in `make test`.
func TestTheProgramsLoadOnAnotherKernel(t *testing.T) {
	if !kerneltest.In() {
		kernels := kerneltest.Kernels(t)
		if testing.Short() {
			kernels = kernels[:1]
		}
		for _, kernel := range kernels {
			t.Run(filepath.Base(kernel), func(t *testing.T) {
				kerneltest.Run(t, kerneltest.Guest{Seconds: 600, Megabyte: 1024, Kernel: kernel, Tests: "^TestTheProgramsLoadOnAnotherKernel$"})
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
	want := scene(7, 8, 9, model.MPLSoUDP, false)
	must.Get(d.Apply(want))(t)
	for _, read := range []func() error{
		func() error { _, err := d.VifStats(); return err },
		func() error { _, err := d.VRFStats(); return err },
		func() error { _, err := d.Drops(); return err },
		func() error { _, _, err := d.ExpireFlows(); return err },
		func() error { _, err := d.Services(); return err },
	} {
		must.Succeed(t, read())
	}
	if differ := must.Get(d.Differs(want))(t); len(differ) > 0 {
		t.Errorf("the maps differ from what was written: %v", differ)
	}
	must.Get(d.Apply(fib.Tables{}))(t)
	tracing := must.Get(d.loadTracing())(t)
	tracing.Close()
}
