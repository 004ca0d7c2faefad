package sample

import (
	"errors"
	"fmt"
	"hash/crc32"
	"regexp"
	"slices"
	"strings"

	"github.com/google/shlex"

	"windtunnel/internal/phrase"
)

// Form separates the runs of a suite into series. Figures of two forms differ although the
// software is the same, so a trend follows runs of one form.
type Form struct {
	// Testbed has the hosts with the addresses of their traffic, or the cluster's nodes; "": network
	// namespaces of the engine's machine.
	Testbed string `json:"testbed,omitempty"`
	// Flags are those of the command line that change what is measured, quoted for a shell, such
	// as "--scenario bridge --short"; "": the whole suite at full length.
	Flags string `json:"flags,omitempty"`
}

// Words returns the form for readers; "" for the whole suite on the engine's machine.
func (f Form) Words() string {
	if f.Testbed == "" {
		return f.Flags
	}
	return strings.TrimSpace("testbed " + f.Testbed + " " + f.Flags)
}

// neutral are the flags that do not separate series: they change the number of trials and not
// what a trial measures, describe the run, or are part of Form.Testbed.
var neutral = []string{
	"--trials", "--max-trials", "--max-time", "--precision", "--profile", "--name", "--note",
	"--testbed", "--nodes", "--image", "--kubeconfig", "--context",
}

// Form returns the form of a run with these options.
func (o *Options) Form() Form {
	f := Form{Testbed: o.testbed()}
	words, err := shlex.Split(o.Command)
	if err != nil || len(words) == 0 {
		return f
	}
	var kept []string
	if words[0] != "run" {
		kept = words[:1]
	}
	for i, word := range words {
		if !strings.HasPrefix(word, "--") || slices.Contains(neutral, word) {
			continue
		}
		kept = append(kept, word)
		if i+1 < len(words) && !strings.HasPrefix(words[i+1], "--") {
			value := words[i+1]
			if word == "--scenario" { // their order does not matter
				list := strings.Split(value, ",")
				slices.Sort(list)
				value = strings.Join(list, ",")
			}
			kept = append(kept, value)
		}
	}
	f.Flags = phrase.Shell(kept)
	return f
}

func (o *Options) testbed() string {
	if o.Cluster.Nodes != "" {
		return strings.Join(strings.Fields(o.Testbed+" "+o.Cluster.Context+" "+o.Cluster.Nodes), " ")
	}
	if len(o.Hosts) == 0 {
		return o.Testbed
	}
	var names []string
	for _, h := range o.Hosts {
		names = append(names, strings.TrimSpace(h.Name+" "+h.Data))
	}
	const most = 4
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more (%08x)", strings.Join(names[:2], ", "), len(names)-2, crc32.ChecksumIEEE([]byte(strings.Join(names, ", "))))
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9_.+/][A-Za-z0-9_.+/-]{0,63}$`)

// CheckName returns an error unless a run can have this name.
func CheckName(name string) error {
	switch {
	case name == "latest":
		return errors.New(`"latest" always means the newest run; choose another name`)
	case !nameForm.MatchString(name):
		return errors.New("a name has 1 to 64 letters, digits, and the characters - _ . + /, and does not begin with -")
	}
	return nil
}
