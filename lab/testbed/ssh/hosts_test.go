package ssh

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/sample"
)

const twoHosts = `hosts:
  - {name: a, address: 192.0.2.1, user: lab, data: 10.0.0.1, jump: [gate, "me@10.1.1.1:2222", "me@realm@gate2"]}
  - {name: b, user: lab, port: 2200, sudo: true, cpus: 2-3, data: 10.0.0.2, data6: "fd00::2", zone: eu-1a, price: 0.12 USD/h}
`

func TestHostsAreReadWithTheirDefaults(t *testing.T) {
	h := must.Get(parseHosts([]byte(twoHosts)))(t)
	for i, want := range []string{
		"-l lab -J lab@gate,me@10.1.1.1:2222,me@realm@gate2 192.0.2.1",
		"-l lab -p 2200 b",
	} {
		must.Equal(t, want, strings.Join(h.Hosts[i].destination(), " "))
	}
	if b := h.Hosts[1]; b.Address != "b" || b.Port != 2200 || len(b.cpus) != 2 || len(b.data) != 2 || h.Dedicated {
		t.Errorf("host b: %+v", b)
	}
	must.Equal(t, sample.Host{Name: "b", Address: "b:2200", Data: "10.0.0.2", Data6: "fd00::2", Zone: "eu-1a", Price: sample.Price{PerHour: 0.12, Currency: "USD"}}, h.Record()[1])
}

func TestMistakesInAHostsFileAreErrors(t *testing.T) {
	for want, text := range map[string]string{
		`unknown field "usr"`:                                          strings.Replace(twoHosts, "user: lab, data", "usr: lab, data", 1),
		"[2:35]":                                                       strings.Replace(twoHosts, "user: lab, data", "usr: lab, data", 1),
		"the file has 1 hosts":                                         strings.Join(strings.SplitAfter(twoHosts, "\n")[:2], ""),
		"the file has 0 hosts":                                         "",
		"two hosts have the name a":                                    strings.Replace(twoHosts, "name: b", "name: a, address: b", 1),
		`host 1 (a): data: ""`:                                         strings.Replace(twoHosts, "data: 10.0.0.1, ", "", 1),
		`data: "10.0.0.1/24" is not an IPv4`:                           strings.Replace(twoHosts, "10.0.0.1,", "10.0.0.1/24,", 1),
		`data6: "10.0.0.3" is not an IPv6`:                             strings.Replace(twoHosts, `"fd00::2"`, "10.0.0.3", 1),
		`cpus is "x"; write a list of CPUs`:                            strings.Replace(twoHosts, "cpus: 2-3", "cpus: x", 1),
		`price: "0.1 usd/h" is not a price such as 0.12 USD/h`:         strings.Replace(twoHosts, "0.12 USD", "0.1 usd", 1),
		"the price is in EUR, but the price of a host above is in USD": strings.NewReplacer("user: lab, data", "price: 1 USD/h, data", "0.12 USD", "0.12 EUR").Replace(twoHosts),
		"70000 is not a port":                                          strings.Replace(twoHosts, "port: 2200", "port: 70000", 1),
		`jump "@gate" is not of the form`:                              strings.Replace(twoHosts, "[gate", `["@gate"`, 1),
		`jump "gate:x" is not of the form`:                             strings.Replace(twoHosts, "[gate", `["gate:x"`, 1),
		`"a b" is not a name`:                                          strings.Replace(twoHosts, "name: a", "name: a b", 1),
		`directory "tmp" is not absolute`:                              strings.Replace(twoHosts, "sudo: true", "directory: tmp", 1),
		"a and b have the data address 10.0.0.1":                       strings.Replace(twoHosts, "10.0.0.2", "10.0.0.1", 1),
		"a and b have the data address fd00::2":                        strings.Replace(twoHosts, "10.0.0.1,", "10.0.0.1, data6: 'fd00:0::2',", 1),
		"data: other hosts cannot send to 0.0.0.0":                     strings.Replace(twoHosts, "10.0.0.2", "0.0.0.0", 1),
		"data: other hosts cannot send to 224.0.0.1":                   strings.Replace(twoHosts, "10.0.0.2", "224.0.0.1", 1),
		"data6: other hosts cannot send to ff02::1":                    strings.Replace(twoHosts, "fd00::2", "ff02::1", 1),
		"write `address: \"192.0.2.1\"` and `port: 22`":                strings.Replace(twoHosts, "address: 192.0.2.1", "address: '192.0.2.1:22'", 1),
		"write `address: \"h\"` and `user: \"u\"`":                     strings.Replace(twoHosts, "192.0.2.1", "u@h", 1),
		"write `address: \"h\"`, `user: \"u\"` and `port: 22`":         strings.Replace(twoHosts, "192.0.2.1", "'ssh://u@h:22/'", 1),
		"write `address: \"fd00::1\"` and `user: \"u\"`":               strings.Replace(twoHosts, "192.0.2.1", "'u@[fd00::1]'", 1),
		"write `address: \"h\"`":                                       strings.Replace(twoHosts, "192.0.2.1", "'ssh://h'", 1),
		`jump "ssh://u@gate" begins with ssh://; write "u@gate"`:       strings.Replace(twoHosts, "[gate", `["ssh://u@gate"`, 1),
		`jump "u:p@gate" is not of the form`:                           strings.Replace(twoHosts, "[gate", `["u:p@gate"`, 1),
		`user "ssh://u" contains`:                                      strings.Replace(twoHosts, "user: lab", "user: 'ssh://u'", 1),
		`address: "a b" is neither a host name nor an IP address`:      strings.Replace(twoHosts, "192.0.2.1", "a b", 1),
		`jump "a b" is not of the form`:                                strings.Replace(twoHosts, "[gate", `["a b"`, 1),
		"[2:68] write a list, such as [gate]":                          strings.Replace(twoHosts, `[gate, "me@10.1.1.1:2222", "me@realm@gate2"]`, "gate", 1),
		`[3:32] write a number, not "abc"`:                             strings.Replace(twoHosts, "2200", "abc", 1),
		`[3:44] write true or false, not "maybe"`:                      strings.Replace(twoHosts, "true", "maybe", 1),
		"[2:12] write one word, not a list":                            strings.Replace(twoHosts, "name: a", "name: [a]", 1),
		"[2:3] write a list, such as [a]":                              "hosts:\n  a",
		"write keys with values":                                       "hosts: [a, b]",
		"[2:2] anchors, aliases and merge keys are not allowed":        "hosts:\n &x - {name: a}",
		"nested more than 8 deep":                                      "hosts: " + strings.Repeat("[", 20),
		"byte 0xe9 is not UTF-8":                                       "hosts: caf\xe9",
		"is too large":                                                 strings.Replace(twoHosts, "2200", "99999999999999999999", 1),
		"[4:1] a second document in the file; remove":                  twoHosts + "---\nhosts: []\n",
	} {
		_, err := parseHosts([]byte(text))
		must.Fail(t, err, want)
	}
}

func TestAHostsFileCanHaveMarkersAndComments(t *testing.T) {
	for _, text := range []string{"# lab\n---\n" + twoHosts + "---\n# end\n", "\ufeff" + twoHosts} {
		h, err := parseHosts([]byte(text))
		if err != nil || len(h.Hosts) != 2 || h.Hosts[0].User != "lab" {
			t.Errorf("%.10q: hosts %+v, error %v", text, h, err)
		}
	}
}

// The user's configuration of ssh has what the hosts file does not have.
func TestAHostCanBeANameOfTheConfigurationOfSSH(t *testing.T) {
	h := parsed(t, "h1", "h2").Hosts[0]
	h.User, h.Jump = "", []string{"gate", "fe80::1"}
	must.Equal(t, "-J gate,[fe80::1] h1", strings.Join(h.destination(), " "))
	if config := h.config(); !strings.HasSuffix(config, "\nInclude ~/.ssh/config\nInclude /etc/ssh/ssh_config\n") || strings.Contains(config, "Identit") || strings.Contains(config, "KnownHosts") {
		t.Errorf("configuration:\n%s", config)
	}
	h.Key, h.knownHosts = `/k"%h \`, "/known"
	for _, want := range []string{`IdentityFile "/k\"%%h \\"`, "IdentitiesOnly yes", `UserKnownHostsFile "/known"`, "GlobalKnownHostsFile /dev/null"} {
		if !strings.Contains(h.config(), want+"\n") {
			t.Errorf("no line %s in:\n%s", want, h.config())
		}
	}
}

func TestPathsOfAHostsFileAreRelativeToIt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts.yaml")
	text := "known_hosts: keys/known\n" + strings.NewReplacer("name: a", "name: a, key: keys/a", "name: b", "name: b, key: ~/b").Replace(twoHosts)
	must.Succeed(t, os.WriteFile(file, []byte(text), 0o600))
	h := must.Get(ReadHosts(file))(t)
	keys := filepath.Join(filepath.Dir(file), "keys")
	if a, b := h.Hosts[0], h.Hosts[1]; a.Key != keys+"/a" || a.knownHosts != keys+"/known" || b.Key != "~/b" || b.knownHosts != keys+"/known" {
		t.Errorf("keys %s and %s, known hosts %s and %s", a.Key, b.Key, a.knownHosts, b.knownHosts)
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
		must.Fail(t, fits(uname), want)
	}
}
