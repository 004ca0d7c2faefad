package netns

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"windtunnel/lab/agent"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed"
)

func TestPrototype(t *testing.T) {
	self, _ := os.Executable()
	os.Setenv("WT_TEST_AGENT", "1")
	cpus := []int{0, 1}
	prof := suite.Offload(os.Getenv("PROFILE"))
	if prof == "" {
		prof = "tcp"
	}
	x := &Executor{CPUs: cpus, Agent: []string{self}}
	for _, sys := range strings.Fields(os.Getenv("SYS")) {
		t0 := time.Now()
		ctx := context.Background()
		tb, err := x.up(ctx, testbed.Spec{ID: "t1", Nodes: 2, Fabric: suite.Fabric{Kind: suite.Wire, MTU: 1500, Offload: prof, Queues: 1, Links: 1}})
		if err != nil {
			t.Fatal(err)
		}
		var eps []string
		mtu := 1500
		if sys == "vxlan" {
			mtu = 1450
		}
		var addr [2]netip.Addr
		t1 := time.Now()
		for i, n := range tb.Nodes() {
			args := agent.AttachArgs{System: sys, Index: i, SpaceBase: nodeSpace("t1", i), Fabric: []string{fabricDevice(i, 0)}, MTU: 1500, CPUs: n.CPUs(),
				Underlay: []netip.Addr{tb.nodes[0].Addr(4), tb.nodes[1].Addr(4)}}
			addr[i] = n.Addr(4)
			if sys != "raw" {
				addr[i] = netip.AddrFrom4([4]byte{10, 31, byte(i), 1})
				args.Containers = []agent.Container{{Name: "c1", Number: 1, V4: netip.PrefixFrom(addr[i], 16), V6: netip.MustParsePrefix(fmt.Sprintf("fd99::%d/64", i+1))}}
			}
			if _, err := n.Agent().Attach(ctx, args); err != nil {
				t.Error(err)
			}
		}
		t2 := time.Now()
		ep := ""
		if sys != "raw" {
			ep = "c1"
		}
		eps = []string{ep, ep}
		a, b := tb.nodes[0].agent, tb.nodes[1].agent
		ra := agent.ReachArgs{Endpoint: ep, Address: addr[1], Port: agent.ProofPort, MTU: mtu, Bytes: 10 << 20, Wait: 5 * time.Second}
		done := make(chan error)
		go func() { done <- b.AnswerProof(ctx, ra) }()
		if err := a.Reach(ctx, ra); err != nil {
			t.Error(sys, err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		t3 := time.Now()
		srv, err := b.Start(ctx, agent.StartArgs{Endpoint: eps[1], Argv: []string{"iperf3", "-s", "-1"}})
		if err != nil {
			t.Fatal(err)
		}
		_ = srv
		b.Listening(ctx, agent.ListenArgs{Endpoint: eps[1], Port: 5201, Wait: time.Second})
		c0, _ := tb.Clock()
		st0 := stat()
		cli, err := a.Start(ctx, agent.StartArgs{Endpoint: eps[0], Argv: []string{"iperf3", "-c", addr[1].String(), "-t", "3", "-i", "1", "-l", "128k", "-f", "g"}})
		if err != nil {
			t.Fatal(err)
		}
		for {
			e, err := cli.Next(ctx, time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if e.Exited {
				break
			}
		}
		c1, _ := tb.Clock()
		st1 := stat()
		o, _ := cli.Output(ctx)
		if os.Getenv("DUMP") != "" {
			out, _ := exec.Command("sh", "-c", os.Getenv("DUMP")).CombinedOutput()
			fmt.Println(string(out))
		}
		t4 := time.Now()
		if err := tb.Down(ctx); err != nil {
			t.Error(err)
		}
		lines := o.Stdout
		if len(lines) > 330 {
			lines = lines[len(lines)-330:]
		}
		fmt.Println(sys, lines, o.Stderr)
		fmt.Printf("wire cpu0 %.2f cpu1 %.2f; busy %v\n", (c1[0]-c0[0])/3, (c1[1]-c0[1])/3, []float64{st1[0] - st0[0], st1[1] - st0[1]})
		fmt.Println("up", t1.Sub(t0), "attach", t2.Sub(t1), "proof", t3.Sub(t2), "down", time.Since(t4))
	}
}

func stat() [2]float64 {
	b, _ := os.ReadFile("/proc/stat")
	var r [2]float64
	var line [10]float64
	var name string
	s := string(b)
	for i := 0; i < 3; i++ {
		var rest int
		for rest < len(s) && s[rest] != '\n' {
			rest++
		}
		fmt.Sscan(s[:rest], &name, &line[0], &line[1], &line[2], &line[3], &line[4], &line[5], &line[6])
		if name == "cpu0" {
			r[0] = -(line[3] + line[4]) / 100 / 3
		}
		if name == "cpu1" {
			r[1] = -(line[3] + line[4]) / 100 / 3
		}
		s = s[rest+1:]
	}
	return r
}
