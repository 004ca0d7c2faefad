package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/lab/condition"
	"windtunnel/lab/cpudistance"
	"windtunnel/lab/probe"
	"windtunnel/lab/testbed"
)

// cpuOptions are the flags --cpus and --cpu-distance.
type cpuOptions struct {
	cpus     string
	distance string
}

func (o *cpuOptions) flags(cmd *cobra.Command) {
	cmd.Flags().Var((*nonEmpty)(&o.cpus), "cpus", "CPUs of each node, such as a=0-3,b=4-7 or a=2,b=3,wire=0,engine=1 (default: the CPUs nearest to each other)")
	o.distance = string(condition.Auto)
	cmd.Flags().Var(cli.Choice{Chosen: &o.distance, Words: []string{"auto", "near", "far", "any", "off"}}, "cpu-distance", "CPU distance to measure at, if the host of a virtual machine changes it: near, far, any, auto (the nearest distance that holds for at least a quarter of the time) or off (do not read it)")
}

// cpuChoice has the chosen CPUs of a testbed.
type cpuChoice struct {
	layout testbed.Layout // from --cpus; zero if the executor plans the layout
	choice string         // for people: how the CPUs were chosen; "" if there was no choice
}

// choose chooses the CPUs of the testbed. It sets f.Allowed to these CPUs.
func (o *cpuOptions) choose(f *probe.Facts) (cpuChoice, error) {
	usable := f.UsableCPUs()
	if o.cpus != "" {
		l, err := testbed.ParseLayout(o.cpus, usable, probe.ParseCPUList)
		if err != nil {
			return cpuChoice{}, cli.Misuse(err)
		}
		f.Allowed = l.CPUs()
		return cpuChoice{l, "as --cpus gives them"}, nil
	}
	return nearest(f, cpudistance.Between)
}

// nearest chooses the CPUs that are nearest to each other. roundTrip measures the distance of
// two CPUs, in ns. If it fails, as on CPUs that are busy, the nodes get the first usable CPUs.
func nearest(f *probe.Facts, roundTrip func(a, b int) (float64, error)) (cpuChoice, error) {
	usable := f.UsableCPUs()
	near, err := testbed.Nearest(usable, 2, probe.Core, roundTrip)
	switch {
	case len(usable) <= 2:
		return cpuChoice{}, err
	case err != nil:
		return cpuChoice{choice: fmt.Sprintf("in the order of their numbers (%v); --cpus chooses others", err)}, nil
	}
	f.Allowed = near
	return cpuChoice{choice: fmt.Sprintf("the nearest to each other of %d usable CPUs, measured", len(usable))}, nil
}

// distanceLine measures the distance between the nodes' CPUs for the given time. It
// describes the distance, and says whether it changed.
func distanceLine(f *probe.Facts, length time.Duration) string {
	l, err := testbed.PlanCPUs(f.UsableCPUs(), 2)
	if err != nil || l.Shared {
		return "not known: the nodes of a testbed need a CPU each"
	}
	a, b := l.Nodes[0][0], l.Nodes[1][0]
	list, err := cpudistance.Watch(a, b, length, 20*time.Millisecond)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s; memory copy %.1f GB/s", cpudistance.Summary(a, b, list), cpudistance.CopySpeed(list)/1e9)
}
