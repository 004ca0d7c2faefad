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

// If the nodes are pinned, the agent and the NICs' threads of a node run on the CPUs of that node. If not, they may run on the CPUs
// of all nodes. If the wire has no CPUs then, its work is not moved to another CPU: the sending CPU does it.
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
				must.Equal(t, tb.layout.Nodes[i], n.CPUs()) // the meters and gates read these CPUs, pinned or not
				must.Equal(t, want, n.hello.CPUs)
				for _, pid := range napiOf(t, n) {
					var set unix.CPUSet
					must.Succeed(t, unix.SchedGetaffinity(pid, &set))
					served := slices.DeleteFunc(slices.Clone(all), func(cpu int) bool { return !set.IsSet(cpu) })
					if first := want[:1]; unpinned && !slices.Equal(served, all) || !unpinned && !slices.Equal(served, first) {
						t.Errorf("the NIC's threads of node %s may run on the CPUs %v; want %v, as for the node's programs", n.Name(), served, want)
					}
				}
				steered := must.Get(tb.wire.space.ReadSysfs(portDevice(i, 0) + "/queues/rx-0/rps_cpus"))(t)
				if free := unpinned && len(tb.layout.Wire) == 0; free != (strings.Trim(steered, "0,") == "") {
					t.Errorf("the wire's work for node %s runs on the CPUs of the mask %q", n.Name(), steered)
				}
			}
			if said := strings.Contains(tb.Describe(), "on the CPUs of all nodes"); said != unpinned {
				t.Errorf("the description of the fabric is %q; it must say whether the nodes are pinned", tb.Describe())
			}
		})
	}
}
