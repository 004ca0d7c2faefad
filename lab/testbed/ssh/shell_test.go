package ssh

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"windtunnel/internal/must"
)

// tcsh is not a POSIX shell: it does not allow a line break between quotes.
func TestHostsWithTcshAsLoginShell(t *testing.T) {
	must.Long(t)
	tcsh, err := exec.LookPath("tcsh")
	if err != nil {
		t.Skip("tcsh is not installed; get it with: apt-get install tcsh")
	}
	s := newSite(t, `ForceCommand exec `+tcsh+` -c "$SSH_ORIGINAL_COMMAND"`)
	x := s.connect()
	if x.machines[0].survey == nil {
		t.Error("the host was not surveyed")
	}
}

func TestALoginWithoutAShellIsExplained(t *testing.T) {
	nologin, err := exec.LookPath("/usr/sbin/nologin")
	if err != nil {
		t.Skip("nologin is not installed; get it with: apt-get install login")
	}
	s := newSite(t, "ForceCommand "+nologin)
	refused(t, s, "This account is currently not available", "chsh -s /bin/sh")
}

func TestAMissingSha256sumIsNamed(t *testing.T) {
	programs := t.TempDir()
	for _, name := range []string{"sh", "id", "mkdir", "uname", "cat", "chmod", "mv", "rm"} {
		path := must.Get(exec.LookPath(name))(t)
		must.Succeed(t, os.Symlink(path, filepath.Join(programs, name)))
	}
	s := newSite(t, `ForceCommand PATH=`+programs+` exec sh -c "$SSH_ORIGINAL_COMMAND"`)
	refused(t, s, "sha256sum is not installed")
}

// refused checks that no connection to the hosts is possible, with a reason that has the texts.
func refused(t *testing.T, s *site, texts ...string) {
	t.Helper()
	x, err := Connect(context.Background(), s.hosts, nil)
	if err == nil {
		x.Close(context.Background())
		t.Fatal("the lab runs on the host")
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error lacks %q: %v", text, err)
		}
	}
}
