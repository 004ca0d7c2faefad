package ssh

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
)

// ordinaryUser makes sshd run all commands as an ordinary user, nobody.
const ordinaryUser = `ForceCommand exec setpriv --reuid 65534 --regid 65534 --clear-groups sh -c "$SSH_ORIGINAL_COMMAND"`

// newSiteOfUser starts two hosts with an ordinary user. The program is in the default
// directory.
func newSiteOfUser(t *testing.T) *site {
	t.Helper()
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip("setpriv is not installed; get it with: apt-get install util-linux")
	}
	s := newSite(t, ordinaryUser)
	for i := range s.hosts.Hosts {
		s.hosts.Hosts[i].Directory = ""
	}
	return s
}

func TestRawNeedsNoRoot(t *testing.T) {
	s := newSiteOfUser(t)
	for _, sp := range s.spaces {
		s.Must(sp.Sysctl("net.ipv4.ping_group_range", "0 2147483647")) // as systemd sets it
	}
	x := s.connect()
	if x.machines[0].survey.Root {
		t.Fatal("the service runs as root: the test does not test")
	}
	s.hold(x)
	n := &notebook{}
	six := scenario("raw", 1500*time.Millisecond)
	six.ID, six.Workload.IPVersion = "raw-6", 6
	s.Must(runTrials(x, n, 1, scenario("raw", 1500*time.Millisecond), six))
	for _, smp := range n.samples {
		assertFigures(t, smp)
	}
	x.dedicated = true
	sc := scenario("bridge", time.Second)
	_, err := requires(x, &sc)
	must.Fail(t, err, "needs root")
	s.Must(x.Remove(context.Background()))
	if _, err := os.Stat("/var/tmp/windtunnel-65534"); !os.IsNotExist(err) {
		t.Errorf("the program's directory is left: %v", err)
	}
}

func TestAnEchoThatTheUserMayNotSendIsExplained(t *testing.T) {
	must.Long(t)
	s := newSiteOfUser(t)
	x := s.connect()
	s.hold(x)
	n := &notebook{}
	s.Must(runTrials(x, n, 1, scenario("raw", 1500*time.Millisecond)))
	if f := n.samples[0].Failure; f == nil || !strings.Contains(f.Message, "ping_group_range") {
		t.Errorf("failure: %v", f)
	}
	s.Must(x.Remove(context.Background()))
}

func TestASudoThatRefusesIsExplained(t *testing.T) {
	if _, err := exec.LookPath("sudo"); err != nil {
		t.Skip("sudo is not installed; get it with: apt-get install sudo")
	}
	s := newSiteOfUser(t)
	t.Cleanup(func() { os.RemoveAll("/var/tmp/windtunnel-65534") })
	s.hosts.Hosts[1].Sudo = true
	x, err := Connect(context.Background(), s.hosts, nil)
	if err == nil {
		x.Close(context.Background())
	}
	must.Fail(t, err, "host b: user root may not use sudo without a password", "NOPASSWD")
}

// serveAgent starts an SSH agent with the given keys, and makes it the user's.
func serveAgent(t *testing.T, s *site, names ...string) {
	t.Helper()
	agent := exec.Command("ssh-agent", "-D", "-a", s.Path("agent"))
	out, err := agent.StdoutPipe() // it prints its environment when it listens
	s.Must(err)
	s.Must(agent.Start())
	t.Cleanup(func() {
		_ = agent.Process.Kill()
		_ = agent.Wait()
	})
	must.Get(out.Read(make([]byte, 1)))(t)
	t.Setenv("SSH_AUTH_SOCK", s.Path("agent"))
	for _, name := range names {
		if out, err := exec.Command("ssh-add", s.Path(name)).CombinedOutput(); err != nil {
			t.Fatalf("add key %s: %v: %s", name, err, out)
		}
	}
	for i := range s.hosts.Hosts {
		s.hosts.Hosts[i].Key = ""
	}
}

func TestKeysOfTheSSHAgentAreUsed(t *testing.T) {
	s := newSite(t)
	s.WriteKey("other")
	serveAgent(t, s, "other", "key")
	s.connect()
}

func TestAnInterruptEndsTheWaitForAnSSHAgent(t *testing.T) {
	s := newSite(t)
	l, err := net.Listen("unix", s.Path("agent")) // nothing answers
	s.Must(err)
	defer l.Close()
	t.Setenv("SSH_AUTH_SOCK", s.Path("agent"))
	s.hosts.Hosts[0].Key = ""
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		if _, err := l.Accept(); err == nil {
			cancel(interrupted)
		}
	}()
	_, err = (&machine{Host: s.hosts.Hosts[0], folder: t.TempDir()}).dial(ctx)
	if !errors.Is(err, interrupted) || !strings.Contains(err.Error(), "log in to root@"+s.Hosts[0].Address) {
		t.Errorf("error: %v", err)
	}
}

func TestAnSSHAgentWithoutTheKeyIsNamed(t *testing.T) {
	s := newSite(t)
	s.WriteKey("other")
	serveAgent(t, s, "other")
	refused(t, s, "host b: ", "does not accept user root with the keys of the SSH agent", "set `key` and `user`")
}

func TestTheProgramIsCopiedOnce(t *testing.T) {
	must.Long(t)
	s := newSite(t)
	s.hosts.Hosts[1].Directory = s.Path("program-b")
	var copies []os.FileInfo
	for range 2 {
		x, err := Connect(context.Background(), s.hosts, nil)
		s.Must(err)
		s.Must(x.Close(context.Background()))
		files, err := filepath.Glob(s.Path("program-b/windtunnel-*"))
		if err != nil || len(files) != 1 {
			t.Fatalf("the directory has %v (%v), want one program", files, err)
		}
		info, err := os.Stat(files[0])
		s.Must(err)
		copies = append(copies, info)
	}
	if !os.SameFile(copies[0], copies[1]) || !copies[0].ModTime().Equal(copies[1].ModTime()) {
		t.Errorf("the second connection has written the program again: %v, %v", copies[0].ModTime(), copies[1].ModTime())
	}
	own, err := thisProgram()
	s.Must(err)
	if copies[0].Name() != own.file() || copies[0].Size() != int64(len(own.text)) {
		t.Errorf("the copy is %s of %d bytes, want %s of %d bytes", copies[0].Name(), copies[0].Size(), own.file(), len(own.text))
	}
}

func TestADamagedProgramIsCopiedAgain(t *testing.T) {
	must.Long(t)
	s := newSite(t)
	own, err := thisProgram()
	s.Must(err)
	copied := filepath.Join(s.Path("program"), own.file())
	for name, damaged := range map[string]string{"empty": "", "cut": string(own.text[:len(own.text)/2])} {
		s.Must(os.WriteFile(copied, []byte(damaged), 0o700))
		x, err := Connect(context.Background(), s.hosts, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		s.Must(x.Close(context.Background()))
		if text, err := os.ReadFile(copied); err != nil || !bytes.Equal(text, own.text) {
			t.Errorf("%s: the program on the host has %d bytes, want %d: %v", name, len(text), len(own.text), err)
		}
	}
}

func TestAHostKeepsItsDescriptionWhenAReconnectionFails(t *testing.T) {
	must.Long(t)
	s := newSite(t)
	m := s.connect().machines[1]
	m.mu.Lock()
	m.drop()
	m.mu.Unlock()
	good, text := m.program, []byte("#!/bin/sh\nexit 1\n")
	m.program = &program{text, fmt.Sprintf("%x", sha256.Sum256(text))}
	if err := m.connect(context.Background()); err == nil || m.agent.Hello.Boot == "" {
		t.Errorf("after a failed reconnection (%v) the host has the boot ID %q", err, m.agent.Hello.Boot)
	}
	m.program = good
	s.Must(m.connect(context.Background()))
}
