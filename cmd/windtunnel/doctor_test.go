package main

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"windtunnel/internal/cli/clitest"
	"windtunnel/internal/must"
	"windtunnel/lab/probe"
	"windtunnel/lab/report/export"
)

// bare is a machine that lacks every kernel feature, with two CPUs and a short
// backlog.
func bare() *probe.Facts {
	f := &probe.Facts{Release: "6.1.0", OS: "Linux", CPUModel: strings.Repeat("a long name ", 10), Online: []int{0, 1}, Allowed: []int{0, 1},
		NetAdmin: true, SysAdmin: true, Virtualization: "kvm", Sysctls: map[string]string{"net.core.netdev_max_backlog": "1000"}}
	for _, x := range probe.Probe().Features {
		x.Works, x.Reason = false, "this kernel has no "+x.What+" (operation not supported)"
		f.Features = append(f.Features, x)
	}
	return f
}

func TestTheDiagnosisFitsATerminalAndSaysEachRemedyOnce(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // no program is installed
	t.Setenv("HOME", t.TempDir())
	d := must.Get(diagnose(bare(), strings.Repeat("the CPUs are far from each other; ", 8)))(t)
	var out bytes.Buffer
	must.Succeed(t, d.write(&out))
	text := out.String()
	_, tools := d.tools()
	_, systems := d.systems()
	_, suites := d.suites()
	for line := range strings.Lines(text + tools + systems + suites) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > textWidth {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	flat := strings.Join(strings.Fields(text), " ")
	for _, once := range []string{"CGO_ENABLED=1 go install", "modprobe vxlan", "component non-free", "ntttcp-for-linux", "apt-get install"} {
		if n := strings.Count(flat, once); n != 1 {
			t.Errorf("%q is said %d times", once, n)
		}
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	last := strings.Join(lines[len(lines)-3:], " ")
	for _, pkg := range []string{"apt-get install --no-install-recommends ", "docker.io", "etcd-server", "fio", "frr", "iperf3", "openvswitch-switch", "qemu-system-x86"} {
		if !strings.Contains(last, pkg) {
			t.Errorf("the last command lacks %s: %q", pkg, last)
		}
	}
	if strings.Contains(last, "netperf") {
		t.Errorf("the last command has a package of another component: %q", last)
	}
	if head, _, _ := strings.Cut(text, "\n\n"); !strings.HasPrefix(text, "machine ") || !strings.Contains(head, "suites    0 of ") || !strings.Contains(head, "list: windtunnel systems") {
		t.Errorf("the summary is not first:\n%s", head)
	}
	if strings.Contains(text, "skips ") || strings.Contains(text, "containers on") {
		t.Error("the diagnosis has the long lists of suites or systems")
	}
	flat += strings.Join(strings.Fields(tools+systems+suites), " ")
	for _, want := range []string{
		"warning net.core.netdev_max_backlog is 1000, and the wire shares the sender's CPU",
		"no vxlan containers on a Linux bridge, joined by the kernel's VXLAN device; lacks ", "no quick 0 of 8 scenarios run here skips ", "lacks bpf, bridge, clsact, netns, veth",
	} {
		if !strings.Contains(flat, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
}

func TestABacklogIsAWarningOnlyWhereTheWireSharesACPU(t *testing.T) {
	for _, c := range []struct {
		backlog string
		cpus    []int
		warns   bool
	}{
		{"1000", []int{0, 1}, true}, {"3999", []int{0, 1}, true}, {"4000", []int{0, 1}, false}, {"1000", []int{0, 1, 2}, false}, {"", []int{0, 1}, false},
	} {
		f := bare()
		f.Sysctls["net.core.netdev_max_backlog"], f.Allowed = c.backlog, c.cpus
		must.Get(diagnose(f, ""))(t)
		if got := len(f.Warnings) > 0; got != c.warns {
			t.Errorf("%+v: warnings %q", c, f.Warnings)
		}
	}
}

func TestTheJSONOfDoctorIsDocumentedFieldByField(t *testing.T) {
	docs := must.Get(os.ReadFile("../../docs/operating.md"))(t)
	for _, v := range []any{diagnosis{}, layout{}, foundTool{}, foundSystem{}, foundSuite{}, missing{}, probe.Program{}} {
		kind := reflect.TypeOf(v)
		for i := range kind.NumField() {
			name, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
			if name != "" && !strings.Contains(string(docs), "`"+name+"`") {
				t.Errorf("docs/operating.md lacks the field %s of %s", name, kind.Name())
			}
		}
	}
	d := must.Get(diagnose(bare(), ""))(t)
	var out bytes.Buffer
	must.Succeed(t, export.JSON(&out, d))
	if strings.Contains(out.String(), "null") {
		t.Error("a list is null")
	}
	var back diagnosis
	dec := json.NewDecoder(&out)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&back); err != nil || len(back.Systems) != len(d.Systems) || back.Layout == nil || len(back.Missing) == 0 {
		t.Errorf("read back: %v", err)
	}
}

func TestThePackageOfARemedy(t *testing.T) {
	for remedy, want := range map[string]string{
		"iperf3": "iperf3", "netperf (Debian: component non-free)": "netperf", "wireguard-go; or use a kernel with CONFIG_WIREGUARD": "wireguard-go",
		"apt-get install --no-install-recommends docker.io, or Docker's own packages": "docker.io", "apt-get install iptables": "iptables",
		"build it from github.com/microsoft/ntttcp-for-linux": "", "CGO_ENABLED=1 go install x": "", "use Linux 5.12 or later": "", "windtunnel vm fetch": "", "": "",
	} {
		if got := aptPackage(remedy); got != want {
			t.Errorf("%q: %q, want %q", remedy, got, want)
		}
	}
}

func TestHelpTextsHaveOneForm(t *testing.T) { clitest.Help(t, root()) }
