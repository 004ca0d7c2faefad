package profile

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/meter"
	"windtunnel/lab/profile/folded"
)

const sinkAddress, sourceAddress = "10.77.1.1", "10.77.1.2"

// playSink takes what one connection brings.
func playSink() {
	l, err := net.Listen("tcp", sinkAddress+":5001")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("ready")
	c, err := l.Accept()
	if err == nil {
		buf := make([]byte, 128<<10)
		_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{c}, buf) // ends with the source
	}
}

// playSource sends for some seconds, and is ended before.
func playSource() {
	c, err := net.Dial("tcp", sinkAddress+":5001")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	buf := make([]byte, 128<<10)
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		if _, err := c.Write(buf); err != nil {
			return
		}
	}
}

func ip(t *testing.T, args string) {
	t.Helper()
	if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", args, err, out)
	}
}

// twoSpaces joins two network namespaces with a veth pair.
func twoSpaces(t *testing.T) (a, b string) {
	t.Helper()
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("ip (iproute2) is not installed")
	}
	a, b = fmt.Sprintf("wt-prof-%x-a", os.Getpid()), fmt.Sprintf("wt-prof-%x-b", os.Getpid())
	for _, n := range []string{a, b} {
		ip(t, "netns add "+n)
		t.Cleanup(func() { ip(t, "netns del "+n) })
	}
	ip(t, "-n "+a+" link add v type veth peer name v netns "+b)
	for n, address := range map[string]string{a: sinkAddress, b: sourceAddress} {
		ip(t, "-n "+n+" addr add "+address+"/24 dev v")
		ip(t, "-n "+n+" link set v up")
	}
	return a, b
}

// play runs this binary in a namespace until the test ends.
func play(t *testing.T, namespace, role string) int {
	t.Helper()
	exe := must.Get(os.Executable())(t)
	cmd := exec.Command("ip", "netns", "exec", namespace, "env", roleVariable+"="+role, exe)
	out := must.Get(cmd.StdoutPipe())(t)
	cmd.Stderr = os.Stderr
	must.Succeed(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	if role == "sink" {
		if _, err := io.ReadFull(out, make([]byte, len("ready"))); err != nil {
			t.Fatalf("the sink did not begin: %v", err)
		}
	}
	return cmd.Process.Pid
}

// Of real traffic every part has a name, and the sum is what the meter read
// over the same window and CPUs.
func TestATCPStreamsCategoriesAddUpToTheMeter(t *testing.T) {
	cpus := make([]int, lastCPU(t)+1)
	for i := range cpus {
		cpus[i] = i
	}
	a, b := twoSpaces(t)
	cast := Cast{Tools: []int{play(t, a, "sink"), play(t, b, "source")}, Observers: []int{os.Getpid()}}
	m := must.Get(meter.New(meter.Config{Node: "n", CPUs: cpus}))(t)
	defer m.Close()
	s := start(t, Config{Node: "n", CPUs: cpus})
	time.Sleep(200 * time.Millisecond)
	from := must.Get(m.Read())(t)
	time.Sleep(2 * time.Second)
	to := must.Get(m.Read())(t)
	d := must.Get(meter.Window(from, to))(t)
	metered, stolen, byCPU := 0.0, 0.0, map[int]float64{}
	for cpu, u := range d.CPUs {
		metered += u.Busy / d.Seconds
		stolen += u.Steal / d.Seconds
		byCPU[cpu] = u.Busy
	}
	p := must.Get(s.Stop(Window{From: from.Mono, To: to.Mono, Metered: byCPU}, cast))(t)
	sum := folded.Sum(p)
	t.Logf("metered %.4f cores, sampled %.4f and the wire of other testbeds %.4f", metered, sum.Busy, sum.Wire)
	// Time that the host took counts for the samples alone.
	if sampled := sum.Busy + sum.Wire; sampled < 0.97*metered || sampled > 1.05*metered+stolen {
		t.Errorf("sampled %.3f cores, metered %.3f, stolen %.3f", sampled, metered, stolen)
	}
	by := map[string]float64{}
	for _, r := range folded.Categories(p) {
		by[r.Name] = r.Cores
		t.Logf("%-32s %.4f cores %5.1f %%", r.Name, r.Cores, r.Percent)
	}
	for _, name := range []string{"syscall and copy", "TCP", "veth and backlog"} {
		if by[name] == 0 {
			t.Errorf("a TCP stream over veth took no time in %q", name)
		}
	}
	// What no sample saw is a difference, and large only where CPUs sleep.
	if seen := sum.Busy + sum.Wire - by[folded.Unseen]; seen < 0.7*metered {
		t.Errorf("samples saw %.3f of %.3f cores", seen, metered)
	}
	if by[folded.Other] > 0.05*sum.Busy {
		t.Errorf("%.1f %% have no category", 100*by[folded.Other]/sum.Busy)
	}
}
