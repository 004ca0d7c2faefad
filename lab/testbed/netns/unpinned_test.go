package netns

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/lab/suite"
)

// The agents and the NICs' threads of pinned nodes run on separate CPUs; those of other nodes on the CPUs of
// all nodes. A port without CPUs of the wire leaves its work on the CPU that sends.
func TestNodesThatAreNotPinnedShareTheirCPUs(t *testing.T) {
	for _, unpinned := range []bool{false, true} {
		t.Run(fmt.Sprintf("unpinned %v", unpinned), func(t *testing.T) {
			tb := up(t, executor(t), 2, fabric(func(f *suite.Fabric) { f.Unpinned = unpinned }))
			all := slices.Sorted(slices.Values(slices.Concat(tb.layout.Nodes...)))
			for i, n := range tb.nodes {
				want := tb.layout.Nodes[i]
				if unpinned {
					want = all
				}
				must.Equal(t, tb.layout.Nodes[i], n.CPUs()) // what the meters and gates read
				must.Equal(t, want, n.hello.CPUs)
				for _, pid := range napiOf(t, n) {
					var set unix.CPUSet
					must.Succeed(t, unix.SchedGetaffinity(pid, &set))
					served := slices.DeleteFunc(slices.Clone(all), func(cpu int) bool { return !set.IsSet(cpu) })
					if first := want[:1]; unpinned && !slices.Equal(served, all) || !unpinned && !slices.Equal(served, first) {
						t.Errorf("the NIC of node %s is served by CPUs %v; its programs run on %v", n.Name(), served, want)
					}
				}
				steered := must.Get(tb.wire.space.ReadSysfs(portDevice(i, 0) + "/queues/rx-0/rps_cpus"))(t)
				if free := unpinned && len(tb.layout.Wire) == 0; free != (strings.Trim(steered, "0,") == "") {
					t.Errorf("the port of node %s steers its work to the CPUs %q", n.Name(), steered)
				}
			}
			if said := strings.Contains(tb.Describe(), "on the CPUs of all nodes"); said != unpinned {
				t.Errorf("the fabric is %q", tb.Describe())
			}
		})
	}
}
