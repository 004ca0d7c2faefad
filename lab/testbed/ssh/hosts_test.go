package ssh

import (
	"errors"
	"strings"
	"testing"
)

const twoHosts = `hosts:
  - {name: a, address: 192.0.2.1, user: lab, data: 10.0.0.1, jump: [gate, "me@10.1.1.1:2222"]}
  - {name: b, user: lab, port: 2200, sudo: true, cpus: 2-3, data: 10.0.0.2, data6: "fd00::2"}
`

func TestHostsAreReadWithTheirDefaults(t *testing.T) {
	h, err := ParseHosts([]byte(twoHosts))
	if err != nil {
		t.Fatal(err)
	}
	route, err := h.Hosts[0].route()
	if err != nil {
		t.Fatal(err)
	}
	want := []stop{{"lab", "gate:22"}, {"me", "10.1.1.1:2222"}, {"lab", "192.0.2.1:22"}}
	if len(route) != 3 || route[0] != want[0] || route[1] != want[1] || route[2] != want[2] {
		t.Errorf("route %v, want %v", route, want)
	}
	if b := h.Hosts[1]; b.Address != "b" || b.Port != 2200 || len(b.cpus) != 2 || len(b.data) != 2 || h.Dedicated {
		t.Errorf("host b: %+v", b)
	}
}

func TestMistakesInAHostsFileAreErrors(t *testing.T) {
	for want, text := range map[string]string{
		`unknown field "usr"`:              strings.Replace(twoHosts, "user: lab, data", "usr: lab, data", 1),
		"[2:35]":                           strings.Replace(twoHosts, "user: lab, data", "usr: lab, data", 1),
		"the file has 1 hosts":             strings.Join(strings.SplitAfter(twoHosts, "\n")[:2], ""),
		"the file has 0 hosts":             "",
		"two hosts have the name a":        strings.Replace(twoHosts, "name: b", "name: a, address: b", 1),
		`host 1 (a): data: ""`:             strings.Replace(twoHosts, "data: 10.0.0.1, ", "", 1),
		`data: "10.0.0.1/24" is no IPv4`:   strings.Replace(twoHosts, "10.0.0.1,", "10.0.0.1/24,", 1),
		`data6: "10.0.0.3" is no IPv6`:     strings.Replace(twoHosts, `"fd00::2"`, "10.0.0.3", 1),
		`cpus "x" is no list`:              strings.Replace(twoHosts, "cpus: 2-3", "cpus: x", 1),
		"70000 is no port":                 strings.Replace(twoHosts, "port: 2200", "port: 70000", 1),
		`jump "@gate" is not of the form`:  strings.Replace(twoHosts, "[gate", `["@gate"`, 1),
		`jump "gate:x" is not of the form`: strings.Replace(twoHosts, "[gate", `["gate:x"`, 1),
		`"a b" is no name`:                 strings.Replace(twoHosts, "name: a", "name: a b", 1),
		`directory "tmp" is not absolute`:  strings.Replace(twoHosts, "sudo: true", "directory: tmp", 1),
	} {
		if _, err := ParseHosts([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestAProgramThatDoesNotStartIsExplained(t *testing.T) {
	cause := errors.New("it ended")
	for said, want := range map[string]string{
		"sudo: a password is required":                           "NOPASSWD",
		"lab is not in the sudoers file.":                        "NOPASSWD",
		"Sorry, user lab may not run sudo on h.":                 "NOPASSWD",
		"sh: 1: sudo: not found":                                 "sudo is not installed",
		"bash: line 1: sudo: command not found":                  "sudo is not installed",
		"sh: 1: /var/tmp/w/windtunnel-1: Permission denied":      "noexec",
		"windtunnel node: enter network namespace: no such file": "no such file",
		"": "it ended",
	} {
		if err := explainStart(said, "lab", "/var/tmp/w/windtunnel-1", cause); !strings.Contains(err.Error(), want) {
			t.Errorf("%q: want %q, got %v", said, want, err)
		}
	}
}

func TestTheProgramMustFitTheHost(t *testing.T) {
	for uname, want := range map[string]string{"FreeBSD amd64": "FreeBSD", "Linux riscv64": "riscv64"} {
		if err := fits(uname); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", uname, err)
		}
	}
}
