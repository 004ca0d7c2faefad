package probe

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/shlex"
)

// field returns the value of "key: value" or "key : value" lines, as in
// /proc/cpuinfo, /proc/meminfo and /proc/PID/status; the first one counts.
func field(text, key string) (value string, ok bool) {
	for line := range strings.Lines(text) {
		name, rest, found := strings.Cut(line, ":")
		if found && strings.TrimSpace(name) == key {
			return strings.TrimSpace(rest), true
		}
	}
	return "", false
}

// cpuModel returns the name of the processor from /proc/cpuinfo, whose key depends on the
// architecture. If there is no name, it returns the architecture.
func cpuModel(cpuinfo, arch string) string {
	for _, key := range []string{"model name", "Model Name", "cpu model", "Processor", "cpu", "Hardware", "uarch"} {
		if v, ok := field(cpuinfo, key); ok && v != "" {
			return v
		}
	}
	if part, ok := field(cpuinfo, "CPU part"); ok { // arm64 prints numbers only
		implementer, _ := field(cpuinfo, "CPU implementer")
		return strings.TrimSpace(arch + " implementer " + implementer + " part " + part)
	}
	return arch
}

// hypervisorFlag reports whether the CPU says that it is a virtual one (x86).
func hypervisorFlag(cpuinfo string) bool {
	flags, _ := field(cpuinfo, "flags")
	return slices.Contains(strings.Fields(flags), "hypervisor")
}

// osName returns PRETTY_NAME, or else NAME, from the text of os-release(5). The text
// consists of shell assignments.
func osName(release string) string {
	assignments, _ := shlex.Split(release) // in a damaged text no name is found
	values := map[string]string{}
	for _, a := range assignments {
		key, value, _ := strings.Cut(a, "=")
		values[key] = value
	}
	return cmp.Or(values["PRETTY_NAME"], values["NAME"])
}

// config is the kernel's build configuration; nil if it is not known.
type config map[string]string

// parseConfig reads lines of CONFIG_NAME=value; options that are off are
// comments and absent.
func parseConfig(text string) config {
	c := config{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		key, value, ok := strings.Cut(line, "=")
		if ok && strings.HasPrefix(key, "CONFIG_") {
			c[key] = strings.Trim(value, `"`)
		}
	}
	return c
}

// hz returns the frequency of the timer interrupt; 0: it is not known.
func (c config) hz() int {
	n, err := strconv.Atoi(c["CONFIG_HZ"])
	if err != nil || n < 1 || n > 10_000 {
		return 0
	}
	return n
}

// irqTimeAccounting returns whether the kernel measures the time in interrupts instead of
// sampling it: yes, no or unknown.
func (c config) irqTimeAccounting() string {
	switch {
	case len(c) == 0:
		return "unknown"
	case c["CONFIG_IRQ_TIME_ACCOUNTING"] == "y" || c["CONFIG_VIRT_CPU_ACCOUNTING_NATIVE"] == "y":
		return "yes"
	}
	return "no"
}
