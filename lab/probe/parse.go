package probe

import (
	"strconv"
	"strings"
)

// field finds the value of "key: value" or "key : value" lines, as in
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

// cpuModel names the processor from /proc/cpuinfo; architectures differ in
// the key. Where there is none, the architecture has to do.
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
	for _, f := range strings.Fields(flags) {
		if f == "hypervisor" {
			return true
		}
	}
	return false
}

// osName is PRETTY_NAME of os-release(5).
func osName(release string) string {
	name := ""
	for line := range strings.Lines(release) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok {
			continue
		}
		value = unquote(value)
		if key == "PRETTY_NAME" {
			return value
		}
		if key == "NAME" {
			name = value
		}
	}
	return name
}

// unquote takes off shell quotes; escapes occur before quotes, $, \ and `.
func unquote(s string) string {
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		double := s[0] == '"'
		s = s[1 : len(s)-1]
		if !double {
			return s
		}
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// config is the kernel's build configuration; nil where it is not known.
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

// hz is the frequency of the timer interrupt; 0 where it is not known.
func (c config) hz() int {
	n, err := strconv.Atoi(c["CONFIG_HZ"])
	if err != nil || n < 1 || n > 10_000 {
		return 0
	}
	return n
}

// irqTimeAccounting says whether time in interrupts is counted and not
// sampled: yes, no or unknown.
func (c config) irqTimeAccounting() string {
	switch {
	case len(c) == 0:
		return "unknown"
	case c["CONFIG_IRQ_TIME_ACCOUNTING"] == "y" || c["CONFIG_VIRT_CPU_ACCOUNTING_NATIVE"] == "y":
		return "yes"
	}
	return "no"
}

// hasCapability reads a set of capabilities as /proc/PID/status prints it.
func hasCapability(status, set string, number uint) bool {
	v, ok := field(status, set)
	if !ok {
		return false
	}
	bits, err := strconv.ParseUint(v, 16, 64)
	return err == nil && bits>>number&1 == 1
}
