package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"

	"windtunnel/lab/units"
)

// vrouter runs the Go benchmarks of vrouter: time per packet, time to write routes,
// time and memory of the agent.
func (b *session) vrouter() error {
	if err := b.verifier(); err != nil {
		return err
	}
	packets, err := benchmarks("./vrouter/datapath", "BenchmarkPacket|BenchmarkDirectPacket|BenchmarkApply", "1x")
	if err != nil {
		return err
	}
	for _, p := range []struct {
		name      string
		one, many float64 // targets, ns
	}{{"from_workload", 80, 100}, {"fabric_xdp", 150, 195}, {"fabric_tc", 80, 100}} {
		ns := packets["Packet/1_routes"]["ns/"+p.name]
		b.row(p.name+" by BPF_PROG_TEST_RUN, 1 route", fmt.Sprintf("≤ %.0f ns", p.one), fmt.Sprintf("%.0f ns", ns), ns > 0 && ns <= p.one)
		ns = packets["Packet/1000000_routes"]["ns/"+p.name]
		b.row(p.name+", 1,000,000 host routes", fmt.Sprintf("≤ %.0f ns", p.many), fmt.Sprintf("%.0f ns", ns), ns > 0 && ns <= p.many)
	}
	b.note("an empty program; the times per packet are without it", fmt.Sprintf("%.0f ns", packets["Packet/1_routes"]["ns/empty"]))
	b.direct(packets)
	fill := packets["Apply/100000_routes"]["fill-ms"]
	b.row("100,000 routes written into the maps", "< 2 s", fmt.Sprintf("%.2f s", fill/1000), fill > 0 && fill < 2000)
	agents, err := benchmarks("./vrouter/e2e", "BenchmarkAgent", "1x")
	if err != nil {
		return err
	}
	for name, m := range agents {
		apply, memory, add := m["apply-s"], m["agent-MB"], m["port-add-ms"]
		if strings.HasPrefix(name, "AgentWithManyRoutes") {
			b.row("`vrouter apply` of 100,000 ports elsewhere, from file to maps", "< 2 s", fmt.Sprintf("%.2f s", apply), apply > 0 && apply < 2)
			b.row("the agent's resident memory with them", "≤ 80 MB", fmt.Sprintf("%.0f MB, %.0f MB while it applied", memory, m["agent-peak-MB"]), memory > 0 && memory <= 80)
			b.note("a port more beside them, until it forwards, median of 9", fmt.Sprintf("%.0f ms", add))
			continue
		}
		b.row("a new port, from the request until it forwards, median of 9", "≤ 10 ms", fmt.Sprintf("%.1f ms", add), add > 0 && add <= 10)
		b.note("the same from the start of `vrouter port add` to its first packet there and back", fmt.Sprintf("%.1f ms", m["first-packet-ms"]))
	}
	ports, err := benchmarks("./vrouter/agent/reconcile", "BenchmarkOnePort", "20x")
	if err != nil {
		return err
	}
	for _, p := range []struct {
		name, what string
		target     float64 // ms
	}{{"red", "in their network", 20}, {"blue", "in another network", 5}} {
		took := ports["OnePortBesideMany/"+p.name]["ns/op"] / 1e6
		b.row("the agent's time for a port more beside 100,000, "+p.what, fmt.Sprintf("≤ %.0f ms", p.target), fmt.Sprintf("%.1f ms", took), took > 0 && took <= p.target)
	}
	b.note("a check for drift with 100,000 ports", fmt.Sprintf("%.0f ms", ports["OnePortBesideMany/drift"]["ns/op"]/1e6))
	return b.fuzz()
}

// direct adds the time of both programs for packets that go directly.
func (b *session) direct(packets map[string]map[string]float64) {
	add := func(what, name string, target float64) {
		out, in := packets[name]["ns/from_workload"], packets[name]["ns/fabric_tc"]
		b.row(what, fmt.Sprintf("≤ %.0f ns each", target), fmt.Sprintf("from_workload %.0f ns, fabric_tc %.0f ns", out, in), out > 0 && max(out, in) <= target)
	}
	for _, v := range []string{"IPv4", "IPv6"} {
		add("an "+v+" packet that goes directly, 1 route", "DirectPacket/"+v+"/1_routes", 80)
		add("the same, 1,000,000 host routes, of which 20,000 are used", "DirectPacket/"+v+"/1000000_routes", 100)
	}
	add("an IPv4 packet that goes directly, in a loop in the kernel", "DirectPacketInALoop", 80)
}

// verifier prints the number of instructions that the kernel's verifier processed for
// each program.
func (b *session) verifier() error {
	out, err := goTest("./vrouter/datapath", "-run", "TestTheVerifierWalksFewInstructions", "-v")
	if err != nil {
		return err
	}
	for _, m := range regexp.MustCompile(`(\w+): (\d+) instructions, the verifier walked (\d+), (\d+) bytes`).FindAllSubmatch(out, -1) {
		b.note(string(m[1]), fmt.Sprintf("%s instructions, the verifier walks %s, %s bytes of machine code", m[2], m[3], m[4]))
	}
	return nil
}

// fuzz sends ten million random and mutated packets through the programs, and a million hostile ones, which take longer.
func (b *session) fuzz() error {
	packets := 10_000_000
	if b.short {
		packets = 100_000
	}
	defer os.Unsetenv("VROUTER_FUZZ_PACKETS")
	test := func(name string, packets int) (out []byte, err error) {
		os.Setenv("VROUTER_FUZZ_PACKETS", strconv.Itoa(packets))
		return goTest("./vrouter/datapath", "-run", name, "-v", "-timeout", "60m")
	}
	out, err := test("TestEveryPacketHasOneEnd", packets)
	found := regexp.MustCompile(`\{Received:.*\}`).Find(out)
	b.row(units.FormatCount(float64(packets))+" random and mutated packets, each with one end, sums equal", "all", string(found), err == nil && found != nil)
	if _, err = test("TestHostilePacketsMatchTheModel", packets/10); err != nil {
		return err
	}
	b.row(units.FormatCount(float64(packets)/10)+" hostile tunnel packets against a model of the rules, and as many with random changes", "none delivered that the model refuses", "all agree", true)
	return nil
}

func goTest(folder string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", append(append([]string{"test", "-count=1"}, args...), folder)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("go test %s: %w\n%s", folder, err, out)
	}
	return out, nil
}

// benchmarks runs Go benchmarks and returns their figures by name and unit.
func benchmarks(folder, pattern, times string) (map[string]map[string]float64, error) {
	out, err := goTest(folder, "-run", "^$", "-bench", pattern, "-benchtime", times)
	if err != nil {
		return nil, err
	}
	all := map[string]map[string]float64{}
	for r := benchfmt.NewReader(bytes.NewReader(out), folder); r.Scan(); {
		result, ok := r.Result().(*benchfmt.Result)
		if !ok {
			continue
		}
		name, _, _ := bytes.Cut(result.Name.Full(), []byte("-"))
		figures := map[string]float64{}
		for _, v := range result.Values {
			figures[v.Unit] = v.Value
			if v.OrigUnit != "" {
				figures[v.OrigUnit] = v.OrigValue
			}
		}
		all[string(name)] = figures
	}
	return all, nil
}
