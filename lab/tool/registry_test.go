package tool

import (
	"slices"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/suite"
)

func TestEveryToolIsFoundByItsOwnName(t *testing.T) {
	if len(Registry()) == 0 {
		t.Fatal("the registry is empty")
	}
	seen := map[string]bool{}
	for _, want := range Registry() {
		name := want.Name()
		if seen[name] {
			t.Errorf("two tools are called %s", name)
		}
		seen[name] = true
		if got, ok := ByName(name); !ok || got != want {
			t.Errorf("ByName(%q) is %v, %v", name, got, ok)
		}
		if !slices.Contains(Names(), name) {
			t.Errorf("Names lacks %s", name)
		}
		for _, p := range want.Programs() {
			if p.Name == "" || p.Remedy() == "" || len(p.Version) == 0 || p.Version[0] != p.Name {
				t.Errorf("%s needs %+v: name, package and version command are wanted", name, p)
			}
		}
	}
	must.Equal(t, len(Registry()), len(Names()))
	if got, ok := ByName("telepathy"); ok {
		t.Errorf("ByName knows %v", got)
	}
}

// A driver that ignores one of these settings would measure something else under the same name.
func TestEveryToolRefusesTheSettingsOfTheBuiltinTool(t *testing.T) {
	for name, w := range map[string]suite.Workload{
		"receiver_work":   liveStream(func(w *suite.Workload) { w.ReceiverWork = 1 }),
		"packet_per_send": liveStream(func(w *suite.Workload) { w.PacketPerSend, w.NoDelay = true, true }),
		"dscp":            liveStream(func(w *suite.Workload) { w.DSCP = 46 }),
		"loss":            liveDatagrams(0, func(w *suite.Workload) { w.Loss = 0.01 }),
		"pace":            change(liveRR(suite.TCPRR, 1, 4), func(w *suite.Workload) { w.Pace = 1000 }),
		"of_capacity":     change(liveRR(suite.TCPRR, 1, 4), func(w *suite.Workload) { w.OfCapacity = 0.5 }),
		"load":            change(liveRR(suite.TCPRR, 1, 4), func(w *suite.Workload) { w.Load = 1 }),
	} {
		for _, tool := range Registry() {
			if tool == (Builtin{}) || name == "packet_per_send" && tool == (BuiltinNTttcp{}) || name == "dscp" && marks(tool) {
				continue
			}
			if tool.Supports(w) == nil {
				t.Errorf("%s accepts %s", tool.Name(), name)
			}
		}
	}
}
