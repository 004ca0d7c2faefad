package report

import (
	"slices"
	"strings"
	"testing"

	"windtunnel/lab/report/document"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// methodOf returns the method of a report about one scenario with a fabric.
func methodOf(f suite.Fabric) map[string]string {
	passages := map[string]string{}
	for _, p := range Method((&model.Report{Scenarios: []model.Scenario{{Fabric: f}}})) {
		passages[p.Name] += p.Text
	}
	return passages
}

func TestTheMethodSaysWhatNodesShare(t *testing.T) {
	figures := model.Scenario{SenderCPU: &quantity.Interval{Median: 50}}
	for shared, says := range map[string]string{
		"": "Each node owns its CPUs.", sample.SharedMachine: "The nodes are on one machine. Programs outside", sample.SharedCPUs: "The nodes are on one machine and share CPUs",
	} {
		r := &model.Report{Run: model.RunInfo{Environment: sample.Environment{NodesShare: shared}}, Scenarios: []model.Scenario{figures}}
		at := slices.IndexFunc(Method(r), func(p document.Term) bool { return p.Name == "CPU" })
		if about := Method(r)[max(at, 0)].Text; !strings.HasPrefix(about, says) {
			t.Errorf("nodes share %q: the CPU is %q, want %q", shared, about, says)
		}
		if listed := slices.Contains(Facts(r), document.Term{Name: "Shared by the nodes", Text: shared}); listed != (shared != "") {
			t.Errorf("nodes share %q: the environment says so: %t", shared, listed)
		}
	}
}

func TestTheMethodSaysWhoseCPUIsThatOfAReceiverOutside(t *testing.T) {
	const says = "that of the gateway's node"
	for placement, want := range map[suite.Placement]bool{suite.TwoNodes: false, suite.Gateway: true} {
		r := &model.Report{Scenarios: []model.Scenario{{Placement: string(placement), Trials: 1, SenderCPU: &quantity.Interval{Median: 50}}}}
		at := slices.IndexFunc(Method(r), func(p document.Term) bool { return p.Name == "CPU" })
		if about := Method(r)[max(at, 0)].Text; strings.Contains(about, says) != want {
			t.Errorf("placement %s: the CPU is %q; it has %q: want %t", placement, about, says, want)
		}
	}
}

func TestTheMethodDescribesTheFabricOfTheRun(t *testing.T) {
	for _, c := range []struct {
		fabric       suite.Fabric
		says, silent string
		offload      string // title of the passage
	}{
		{suite.Fabric{Kind: suite.Wire, Offload: suite.OffloadTCP}, "emulates two NICs", "joins the hosts", "Offload tcp"},
		{suite.Fabric{Kind: suite.Veth, Offload: suite.OffloadTCP}, "plain veth pair", "joins the hosts", "Offload tcp"},
		{suite.Fabric{Kind: suite.Veth, Offload: suite.OffloadNone}, "plain veth pair", "a wire", "Offload none"},
		{suite.Fabric{Kind: suite.Existing, Offload: suite.OffloadTCP}, "joins the hosts", "emulates", "Offload tcp"},
		{suite.Fabric{Kind: suite.Existing, Offload: suite.OffloadNone}, "joins the hosts", "emulates", "Offload none"},
		{suite.Fabric{Kind: suite.Existing, Offload: suite.OffloadKept}, "joins the hosts", "emulates", "Offload"},
	} {
		got := methodOf(c.fabric)
		if about := got["Fabric"]; !strings.Contains(about, c.says) || strings.Contains(about, c.silent) {
			t.Errorf("%s: the fabric is %q, want a text with %q", c.fabric, about, c.says)
		}
		var titles []string
		for title := range got {
			if strings.HasPrefix(title, "Offload") {
				titles = append(titles, title)
			}
		}
		if len(titles) != 1 || titles[0] != c.offload {
			t.Errorf("%s: passages %q, want %q", c.fabric, titles, c.offload)
		}
	}
}
