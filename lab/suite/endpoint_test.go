package suite

import (
	"strings"
	"testing"

	"windtunnel/internal/must"
)

const endpointSuite = `suite: s
fabrics: {two: {links: 2, team: bond}}
endpoints:
  plain: {}
  spread: {spread: true, segmentation: false}
  guest: {kind: vm, cpus: 2, memory: 1G}
workloads: {w: {kind: tcp_stream}}
scenarios:
  - {system: bridge, endpoint: [plain, spread, guest]}
`

func TestEndpointsMultiplyScenariosAsFabricsDo(t *testing.T) {
	s, err := Parse("s.yaml", []byte(endpointSuite))
	must.Succeed(t, err)
	p, err := s.Expand(ExpandOptions{})
	must.Succeed(t, err)
	want := []Endpoint{{Name: "plain"}, {Name: "spread", Spread: true, NoSegmentation: true}, {Name: "guest", Kind: VM, CPUs: 2, Memory: 1 << 30}}
	if len(p.Scenarios) != len(want) {
		t.Fatalf("%d scenarios, want %d", len(p.Scenarios), len(want))
	}
	for i, sc := range p.Scenarios {
		if sc.Endpoint != want[i] || sc.ID != "bridge/w-"+want[i].Name || sc.Fabric.Team != Bond {
			t.Errorf("scenario %s has endpoint %+v over %s", sc.ID, sc.Endpoint, sc.Fabric)
		}
	}
}

func TestAnEndpointThatContradictsItselfIsRefused(t *testing.T) {
	for text, say := range map[string]string{
		strings.Replace(endpointSuite, "spread: true,", "spread: true, cpus: 2,", 1): "cpus has no meaning for a container",
		strings.Replace(endpointSuite, "links: 2,", "", 1):                           "a bond needs two links or more",
		strings.Replace(endpointSuite, "guest]", "ghost]", 1):                        `"ghost" is not defined under endpoints`,
		strings.Replace(endpointSuite, "memory: 1G", "memory: 1M", 1):                "write 128 MiB to 1 TiB",
	} {
		_, err := Parse("s.yaml", []byte(text))
		must.Fail(t, err, say)
	}
}
