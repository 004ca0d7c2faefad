package space

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"windtunnel/internal/must"
)

// fresh makes a namespace that is gone after the test.
func fresh(t *testing.T, name string) *Space {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces needs root")
	}
	s := must.Get(Create(fmt.Sprintf("wt-t%d-%s", os.Getpid(), name)))(t)
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), Delete(s.Name)); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(Dir, s.Name)); err == nil {
			t.Errorf("%s is still there", s.Name)
		}
	})
	return s
}

func TestMaskIsTheKernelsBitmapOfCPUs(t *testing.T) {
	for _, c := range []struct {
		cpus []int
		want string
	}{
		{nil, "0"},
		{[]int{0}, "1"},
		{[]int{1}, "2"},
		{[]int{0, 3}, "9"},
		{[]int{31}, "80000000"},
		{[]int{32}, "1,00000000"},
		{[]int{0, 64}, "1,00000000,00000001"},
	} {
		if got := mask(c.cpus); got != c.want {
			t.Errorf("Mask(%v) = %s, want %s", c.cpus, got, c.want)
		}
	}
}

func TestAnExistingNamespaceIsNotCreatedAgain(t *testing.T) {
	s := fresh(t, "once")
	_, err := Create(s.Name)
	must.Fail(t, err, "lab clean")
}

func TestDeletingAMissingNamespaceIsNotAnError(t *testing.T) {
	must.Succeed(t, Delete("wt-never-was"))
}

// What is set in one namespace is set there alone, and is recorded.
func TestSettingsStayInTheirNamespace(t *testing.T) {
	a, b := fresh(t, "a"), fresh(t, "b")
	must.Succeed(t, a.Pair(Veth{Name: "left", PeerName: "right", MTU: 1400}, b))
	const key = "net.ipv4.ip_forward"
	must.Succeed(t, a.Sysctl(key, "1"))
	for s, want := range map[*Space]string{a: "1", b: "0"} {
		var got []byte
		err := s.Do(func() (err error) {
			got, err = os.ReadFile("/proc/sys/net/ipv4/ip_forward")
			return err
		})
		if err != nil || strings.TrimSpace(string(got)) != want {
			t.Errorf("%s in %s is %q (%v), want %s", key, s.Name, got, err, want)
		}
	}
	must.Succeed(t, b.SteerReceive("right", 1, []int{1}))
	if got, err := b.ReadSysfs("right/queues/rx-0/rps_cpus"); err != nil || strings.Trim(got, "0,") != "2" {
		t.Errorf("rps_cpus = %q (%v), want CPU 1", got, err)
	}
	if _, err := a.ReadSysfs("right/mtu"); err == nil {
		t.Error("the sysfs of one namespace shows a device of another")
	}
	must.Succeed(t, a.Offloads("left", map[string]bool{"tx-tcp-segmentation": false, "tx-of-no-kernel": true}))
	on := must.Get(a.OffloadsOn("left"))(t)
	for _, f := range on {
		if f == "tx-tcp-segmentation" {
			t.Error("TSO is still on")
		}
	}
	got := a.Settings()
	want := Settings{
		Sysctls:  map[string]string{key: "1"},
		Offloads: map[string]string{"left tx-tcp-segmentation": "off", "left tx-of-no-kernel": "absent"},
	}
	must.Equal(t, want, got)
}

func TestAWorkloadsNamespaceRecordsTheLimitsOfItsSockets(t *testing.T) {
	s := fresh(t, "bounds")
	must.Succeed(t, s.Workloads())
	got := s.Settings().Sysctls
	for _, key := range []string{"tcp_rmem", "tcp_wmem", "tcp_limit_output_bytes"} {
		var want []byte
		err := s.Do(func() (err error) {
			want, err = os.ReadFile("/proc/sys/net/ipv4/" + key)
			return err
		})
		if err != nil || got["net.ipv4."+key] != strings.Join(strings.Fields(string(want)), " ") {
			t.Errorf("%s is recorded as %q, want %q (%v)", key, got["net.ipv4."+key], want, err)
		}
	}
	if got["net.ipv6.conf.default.accept_ra"] != "0" {
		t.Errorf("recorded %v, want what was set too", got)
	}
}

func TestErrorsNameDeviceAndNamespace(t *testing.T) {
	s := fresh(t, "err")
	for _, err := range []error{
		s.Up("nodev"),
		s.Address("nodev", netip.MustParsePrefix("10.0.0.1/24")),
		s.Offloads("nodev", map[string]bool{"rx-gro": true}),
		s.Sysfs("nodev/threaded", "1"),
	} {
		must.Fail(t, err, "nodev", s.Name)
	}
	must.Succeed(t, s.Remove("nodev"))
	current, err := Open("")
	must.Succeed(t, err)
	defer current.Close()
	_, err = current.Link("nodev")
	must.Fail(t, err, "find device nodev in the current network namespace: ")
}
