package probe

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
)

func TestCPULists(t *testing.T) {
	for text, want := range map[string][]int{
		"":             nil,
		"0":            {0},
		"0-3,8\n":      {0, 1, 2, 3, 8},
		"10-11,2":      {2, 10, 11},
		"1,1,0-1":      {0, 1},
		"126-127,0":    {0, 126, 127},
		"65535":        {65535},
		"0-1,2-3,4,70": {0, 1, 2, 3, 4, 70},
	} {
		got, err := ParseCPUList(text)
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("%q: %v %s", text, err, d)
		}
		again, err := ParseCPUList(FormatCPUList(got))
		if d := cmp.Diff(got, again); err != nil || d != "" {
			t.Errorf("%q does not survive: %v %s", text, err, d)
		}
	}
	must.Equal(t, "0-3,9-11", FormatCPUList([]int{3, 0, 1, 2, 9, 11, 10}))
	for _, text := range []string{"a", "1-", "-1", "3-1", "0,,1", "99999999", "0-4000000000", "1 2"} {
		if got, err := ParseCPUList(text); err == nil {
			t.Errorf("%q was read as %d CPUs", text, len(got))
		}
	}
}

func TestKernelReleases(t *testing.T) {
	for _, release := range []string{"6.16.0-18-amd64", "6.18.44-fc-v769", "7.0", "6.16-rc1"} {
		if stopsFullRings(release) != nil {
			t.Errorf("%q counts as older than 6.16", release)
		}
	}
	for _, release := range []string{"6.15.99", "5.153.1-microsoft-standard-WSL2", "", "6", "x.1", "6.x"} {
		if stopsFullRings(release) == nil {
			t.Errorf("%q counts as 6.16 or later", release)
		}
	}
}

const (
	intel = "processor\t: 0\nmodel name\t: Intel(R) Xeon(R)\nflags\t\t: fpu hypervisor avx\n\nprocessor\t: 1\nmodel name\t: other\n"
	arm   = "processor\t: 0\nBogoMIPS\t: 243.75\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"
)

func TestProcessorIsNamedOnEveryArchitecture(t *testing.T) {
	for _, x := range []struct{ text, arch, want string }{
		{intel, "amd64", "Intel(R) Xeon(R)"},
		{arm, "arm64", "arm64 implementer 0x41 part 0xd0c"},
		{"cpu\t\t: POWER9, altivec supported\n", "ppc64le", "POWER9, altivec supported"},
		{"", "riscv64", "riscv64"},
	} {
		if got := cpuModel(x.text, x.arch); got != x.want {
			t.Errorf("%s: %q, want %q", x.arch, got, x.want)
		}
	}
	if !hypervisorFlag(intel) || hypervisorFlag(arm) || hypervisorFlag("flags : hypervisors\n") {
		t.Error("the hypervisor flag is misread")
	}
}

func TestOSName(t *testing.T) {
	for text, want := range map[string]string{
		"NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n": "Debian GNU/Linux 12 (bookworm)",
		"NAME=Alpine\n":             "Alpine",
		"PRETTY_NAME='a \\b'\n":     `a \b`,
		"PRETTY_NAME=\"a \\\"b\"\n": `a "b`,
		"":                          "",
	} {
		if got := osName(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestKernelConfiguration(t *testing.T) {
	c := parseConfig("# CONFIG_IRQ_TIME_ACCOUNTING is not set\nCONFIG_HZ_250=y\nCONFIG_HZ=250\nCONFIG_X=\"s\"\n")
	if c.hz() != 250 || c.irqTimeAccounting() != "no" || c["CONFIG_X"] != "s" {
		t.Errorf("the configuration is %v, want 250 Hz, no IRQ time accounting, and X", c)
	}
	must.Equal(t, "yes", parseConfig("CONFIG_IRQ_TIME_ACCOUNTING=y\n").irqTimeAccounting())
	if got := config(nil).irqTimeAccounting(); got != "unknown" {
		t.Errorf("IRQ time accounting without a configuration is %q, want unknown", got)
	}
	must.Equal(t, 0, parseConfig("CONFIG_HZ=0\n").hz())
}

func TestVirtualization(t *testing.T) {
	for _, x := range []struct {
		traces traces
		want   string
	}{
		{traces{}, "none"},
		{traces{hypervisorFlag: true}, "vm"},
		{traces{hypervisorFlag: true, clocks: "tsc kvm-clock acpi_pm"}, "kvm"},
		{traces{vendor: "QEMU", product: "Standard PC", hypervisorFlag: true}, "qemu"},
		{traces{vendor: "Microsoft Corporation", product: "Virtual Machine"}, "microsoft"},
		{traces{vendor: "Microsoft Corporation", product: "Surface"}, "none"},
		{traces{vendor: "VMware, Inc."}, "vmware"},
		{traces{vendor: "Amazon EC2", product: "c6i.large"}, "amazon"},
		{traces{hypervisor: "xen"}, "xen"},
		{traces{vendor: "Dell Inc.", product: "PowerEdge", container: "docker"}, "container docker"},
		{traces{hypervisorFlag: true, clocks: "kvm-clock", container: "podman"}, "kvm, container podman"},
	} {
		if got := x.traces.virtualization(); got != x.want {
			t.Errorf("%+v: %q, want %q", x.traces, got, x.want)
		}
	}
}

func TestAQuotaBelowTheCPUsIsAWarning(t *testing.T) {
	for quota, warns := range map[float64]bool{0: false, 0.5: true, 1.99: true, 2: false, 3: false} {
		f := &Facts{Allowed: []int{0, 1}, Quota: quota}
		if w := f.QuotaWarning(); strings.Contains(w, "of 2 CPUs") != warns || (w != "") != warns {
			t.Errorf("quota %v: %q", quota, w)
		}
	}
}

func TestLimitsOfControlGroups(t *testing.T) {
	for text, want := range map[string]float64{"max 100000": 0, "150000 100000": 1.5, "": 0, "x y": 0, "1 0": 0} {
		if got := quotaV2(text); got != want {
			t.Errorf("the quota %q is %v CPUs, want %v", text, got, want)
		}
	}
	must.Equal(t, 0, quota("-1\n", "100000\n"))
	must.Equal(t, []int{1, 3}, narrow([]int{0, 1, 2, 3}, []int{1, 3, 9}))
	must.Equal(t, []int{0, 1}, narrow([]int{0, 1}, nil))
}

func TestMissingFeaturesHaveAReasonAndARemedy(t *testing.T) {
	f := &Facts{}
	f.Features = f.notRoot(features)
	for _, feature := range features {
		reason, remedy, missing := f.Missing(feature.Name)
		if !missing || !strings.Contains(reason, "CAP_NET_ADMIN") || remedy != rootRemedy {
			t.Errorf("%s is missing because %q, and the remedy is %q; want the capability and root", feature.Name, reason, remedy)
		}
		if feature.Remedy == "" || feature.What == "" || attempts[feature.Name] == nil {
			t.Errorf("%s has no remedy, no description or no trial", feature.Name)
		}
	}
	must.Equal(t, len(features), len(attempts))
	if reason, remedy, missing := f.Missing("warp"); !missing || !strings.Contains(reason, "warp") || remedy == "" {
		t.Errorf("the feature warp is missing because %q, with the remedy %q (%v), want both", reason, remedy, missing)
	}
	f.Features = []Finding{{Feature: features[0], Works: true}}
	if reason, _, missing := f.Missing(Netns); missing || reason != "" {
		t.Errorf("namespaces are missing because %q (%v), want that they work", reason, missing)
	}
}

func FuzzCPUList(f *testing.F) {
	f.Add("0-3,8")
	f.Add("1,,2")
	f.Fuzz(func(t *testing.T, text string) {
		cpus, err := ParseCPUList(text)
		if err != nil {
			return
		}
		again, err := ParseCPUList(FormatCPUList(cpus))
		if d := cmp.Diff(cpus, again); err != nil || d != "" {
			t.Errorf("%q: %v %s", text, err, d)
		}
	})
}

func FuzzTexts(f *testing.F) {
	f.Add(intel)
	f.Add(arm)
	f.Add("CONFIG_HZ=250\nMemTotal: 5 kB\nCapEff: ff\n3:cpuset:/a\nPRETTY_NAME=\"\\\"\n6.1.0")
	f.Fuzz(func(t *testing.T, text string) {
		if cpuModel(text, "amd64") == "" {
			t.Error("a processor without a name")
		}
		if hz := parseConfig(text).hz(); hz < 0 || hz > 10_000 {
			t.Errorf("HZ %d", hz)
		}
		if q := quotaV2(text); q < 0 {
			t.Errorf("quota %v", q)
		}
		osName(text)
		hypervisorFlag(text)
		firstLine(text)
	})
}
