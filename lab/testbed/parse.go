package testbed

import (
	"fmt"
	"slices"
	"strings"
)

// ParseLayout reads an assignment of CPUs, such as "a=0-3,b=4-7" or
// "a=2,b=3,wire=0,engine=1". Nodes are named a, b, c … and have as many CPUs
// each; the wire and the engine may have none. list reads a CPU list such as
// "0-3,8", and usable are the CPUs there are.
func ParseLayout(text string, usable []int, list func(string) ([]int, error)) (Layout, error) {
	bad := func(format string, args ...any) (Layout, error) {
		return Layout{}, fmt.Errorf("CPUs %q: %s; give CPUs to each node, such as a=0,b=1 or a=2-3,b=4-5,wire=0,engine=1", text, fmt.Sprintf(format, args...))
	}
	var l Layout
	owner := map[int]string{}
	for _, part := range parts(text) {
		name, cpus, ok := strings.Cut(part, "=")
		if !ok {
			return bad("%q has no name before its CPUs", part)
		}
		numbers, err := list(cpus)
		if err != nil || len(numbers) == 0 {
			return bad("%q is not a list of CPUs", cpus)
		}
		for _, c := range numbers {
			if !slices.Contains(usable, c) {
				return bad("CPU %d is not usable here (offline, or outside this process's CPU set)", c)
			}
			if other := owner[c]; other != "" {
				return bad("CPU %d belongs to %s and %s", c, other, name)
			}
			owner[c] = name
		}
		switch {
		case name == "wire":
			l.Wire = numbers
		case name == "engine":
			l.Engine = numbers
		case len(l.Nodes) < 26 && name == string(rune('a'+len(l.Nodes))):
			l.Nodes = append(l.Nodes, numbers)
		default:
			return bad("%q is neither wire, engine nor the next node, %c", name, 'a'+len(l.Nodes))
		}
	}
	if len(l.Nodes) < 2 {
		return bad("%d of 2 nodes have CPUs", len(l.Nodes))
	}
	for _, n := range l.Nodes {
		if len(n) != len(l.Nodes[0]) {
			return bad("the nodes have %d and %d CPUs; they must have as many each", len(l.Nodes[0]), len(n))
		}
	}
	return l, nil
}

// parts splits at the commas before names, and not at the commas within CPU lists.
func parts(text string) []string {
	var list []string
	for _, p := range strings.Split(text, ",") {
		if len(list) == 0 || strings.Contains(p, "=") {
			list = append(list, p)
		} else {
			list[len(list)-1] += "," + p
		}
	}
	return list
}
