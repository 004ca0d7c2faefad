package tool

// Registry returns every tool, in the order of lists for users. The built-in generator
// is first, because every machine has it.
func Registry() []Tool {
	return []Tool{
		Builtin{},
		Iperf3{},
		Netperf{},
		Qperf{},
		Sockperf{},
		NTttcp{},
		BuiltinNTttcp{},
		Fio{},
	}
}

// ByName returns the tool with the given name.
func ByName(name string) (t Tool, ok bool) {
	for _, t := range Registry() {
		if t.Name() == name {
			return t, true
		}
	}
	return nil, false
}

// Names lists the names that ByName knows, in Registry's order.
func Names() []string {
	var names []string
	for _, t := range Registry() {
		names = append(names, t.Name())
	}
	return names
}
