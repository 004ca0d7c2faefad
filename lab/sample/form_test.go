package sample

import "testing"

func TestAFormHasTheTestbedAndTheFlagsThatChangeWhatIsMeasured(t *testing.T) {
	t.Parallel()
	hosts := []Host{{Name: "a", Address: "10.0.0.1:22", Data: "192.0.2.1"}, {Name: "b", Address: "10.0.0.2:22", Data: "192.0.2.2"}}
	for _, c := range []struct {
		of   Options
		want Form
	}{
		{Options{}, Form{}},
		{Options{Command: "run quick"}, Form{}},
		{Options{Command: "run quick --max-time 20m --name main --note 'a note' --precision 2% --profile --trials 10"}, Form{}},
		{Options{Command: "run ./my.yaml --short"}, Form{Flags: "--short"}},
		{Options{Command: "run quick --duration 2s --scenario vxlan,bridge --short --trials 3"}, Form{Flags: "--duration 2s --scenario bridge,vxlan --short"}},
		{Options{Command: "run quick --scenario 'bridge/*,raw'"}, Form{Flags: "--scenario 'bridge/*,raw'"}},
		{Options{Command: "run --system vxlan,bridge"}, Form{Flags: "--system vxlan,bridge"}},
		{Options{Command: "profile quick --scenario bridge"}, Form{Flags: "profile --scenario bridge"}},
		{Options{Command: "run quick --testbed hosts.yaml", Testbed: "/home/jane/hosts.yaml", Hosts: hosts}, Form{Testbed: "a 192.0.2.1, b 192.0.2.2"}},
		{Options{Command: "matrix quick --pairs ring --testbed hosts.yaml", Testbed: "/hosts.yaml", Hosts: hosts}, Form{Testbed: "a 192.0.2.1, b 192.0.2.2", Flags: "matrix --pairs ring"}},
		{Options{Testbed: "/home/jane/hosts.yaml"}, Form{Testbed: "/home/jane/hosts.yaml"}},
		{Options{Command: "run k8s-cni --context lab --image x --testbed k8s", Testbed: "k8s", Cluster: Cluster{Context: "lab", Nodes: "n1,n2"}}, Form{Testbed: "k8s lab n1,n2"}},
	} {
		if got := c.of.Form(); got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.of, got, c.want)
		}
	}
}

// A label of many hosts must stay short, and still differ between hosts.
func TestTheFormOfManyHostsIsShort(t *testing.T) {
	t.Parallel()
	form := func(last string) string {
		var o Options
		o.Testbed = "hosts.yaml"
		for range 99 {
			o.Hosts = append(o.Hosts, Host{Name: "node", Data: "192.0.2.1"})
		}
		o.Hosts = append(o.Hosts, Host{Name: "node", Data: last})
		return o.Form().Testbed
	}
	if a, b := form("192.0.2.1"), form("192.0.2.2"); len(a) > 80 || a == b {
		t.Errorf("two testbeds are %q and %q, want short texts that differ", a, b)
	}
}

func TestANameOfARunNeedsNoQuotes(t *testing.T) {
	t.Parallel()
	for name, valid := range map[string]bool{
		"main": true, "feature/x-1.2_b": true, "3f2a9c1": true, "": false, "latest": false, "a,b": false, "main@latest": false, "a b": false, "é": false, "-x": false,
		"abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcde": false,
	} {
		if err := CheckName(name); (err == nil) != valid {
			t.Errorf("%q: %v, want valid %v", name, err, valid)
		}
	}
}
