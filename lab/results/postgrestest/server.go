// Package postgrestest runs a PostgreSQL server for tests.
package postgrestest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/internal/setup"
)

// Server is a PostgreSQL server with its data in a temporary directory. It listens on a Unix
// socket in that directory only, and trusts every user except Guarded.
type Server struct {
	dir      string // with data/ and the socket
	programs string // directory of postgres and initdb
	as       *syscall.Credential

	mu      sync.Mutex
	process *os.Process // nil while the server is down
	ended   chan struct{}
	log     bytes.Buffer
	count   int // databases made
}

// Guarded is a role that needs Password.
const (
	Guarded  = "guarded"
	Password = "s3cr3t pässwörd/@?"
)

var shared struct {
	once   sync.Once
	server *Server
	err    error
}

// Shared returns the server of this test program, and starts it at the first call. It skips
// the test if PostgreSQL is not installed. TestMain must call StopShared at the end.
func Shared(t testing.TB) *Server {
	t.Helper()
	if len(programDirs()) == 0 {
		t.Skip("postgres is not installed; get it with: " + setup.Command("postgres"))
	}
	shared.once.Do(func() { shared.server, shared.err = Start() })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

// StopShared ends the server of Shared, if there is one, and deletes its data.
func StopShared() {
	if shared.server != nil {
		shared.server.Stop()
	}
}

// programDirs lists the directories with the server's programs, which Debian does not put
// in PATH, the newest version last.
func programDirs() []string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	found = slices.DeleteFunc(found, func(path string) bool { return unix.Access(path, unix.X_OK) != nil })
	if path, err := exec.LookPath("postgres"); err == nil {
		found = append(found, path)
	}
	for i := range found {
		found[i] = filepath.Dir(found[i])
	}
	return found
}

// Start makes a new server and starts it.
func Start() (s *Server, err error) {
	dirs := programDirs()
	if len(dirs) == 0 {
		return nil, errors.New("postgres is not installed; get it with: " + setup.Command("postgres"))
	}
	s = &Server{programs: dirs[len(dirs)-1]}
	if s.dir, err = os.MkdirTemp("", "wt-pg-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(s.dir)
		}
	}()
	if err := s.unprivileged(); err != nil {
		return nil, err
	}
	initdb := exec.Command(filepath.Join(s.programs, "initdb"), "-D", s.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
	initdb.Dir = s.dir
	initdb.SysProcAttr = &syscall.SysProcAttr{Credential: s.as}
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("make a PostgreSQL cluster: %w\n%s", err, out)
	}
	rules := "local all " + Guarded + " scram-sha-256\nlocal all all trust\n"
	if err := os.WriteFile(filepath.Join(s.data(), "pg_hba.conf"), []byte(rules), 0o644); err != nil {
		return nil, err
	}
	if err := s.Up(); err != nil {
		return nil, err
	}
	return s, s.exec("postgres", fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", Guarded, Password))
}

// unprivileged selects the user that the server runs as, because it refuses to run as root.
func (s *Server) unprivileged() error {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return err
		}
		s.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return os.Chown(s.dir, int(uid), int(gid))
	}
	return errors.New("run PostgreSQL: neither the user postgres nor nobody exists")
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// Up starts the server, and returns when it accepts connections.
func (s *Server) Up() error {
	deadline := time.Now().Add(time.Minute)
	for {
		err := s.start()
		for err == nil && time.Now().Before(deadline) {
			if err = s.exec("postgres", "SELECT 1"); err == nil {
				return nil
			}
			select {
			case <-s.ended: // processes of the killed server can still have its memory
			case <-time.After(20 * time.Millisecond):
				err = nil
			}
		}
		s.end(syscall.SIGKILL)
		if time.Now().After(deadline) {
			return fmt.Errorf("start PostgreSQL: %w\n%s", err, s.log.String())
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// start starts the server's process. A thread of its own waits for the process: the server
// ends with this thread, and so with this program.
func (s *Server) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.Reset()
	cmd := exec.Command(filepath.Join(s.programs, "postgres"), "-D", s.data(), "-p", "5432", "-k", s.dir, "-h", "",
		"-c", "shared_buffers=16MB", "-c", "max_connections=60", "-c", "fsync=off", "-c", "autovacuum=off", "-c", "log_min_messages=fatal")
	cmd.Dir = s.dir
	cmd.Stdout, cmd.Stderr = &s.log, &s.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as, Pdeathsig: syscall.SIGQUIT}
	started, ended := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // its end by a signal is expected
		}
		close(ended)
	}()
	if err := <-started; err != nil {
		return err
	}
	s.process, s.ended = cmd.Process, ended
	return nil
}

// Kill kills the server and its processes, as a crash of the machine does.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Stop ends the server and deletes its data.
func (s *Server) Stop() {
	s.end(syscall.SIGQUIT)
	_ = os.RemoveAll(s.dir)
}

func (s *Server) end(with syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return
	}
	pids := []int{s.process.Pid}
	if with == syscall.SIGKILL {
		pids = append(pids, children(s.process.Pid)...)
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, with)
	}
	<-s.ended
	s.process = nil
}

func children(pid int) (pids []int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	for field := range strings.FieldsSeq(string(text)) {
		if n, err := strconv.Atoi(field); err == nil {
			pids = append(pids, n)
		}
	}
	return pids
}

// Pause stops the server's processes until the returned function is called: connections are
// accepted and not answered.
func (s *Server) Pause() (resume func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pids := append([]int{s.process.Pid}, children(s.process.Pid)...)
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	return func() {
		for _, pid := range slices.Backward(pids) {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
}

// URL returns the URL of a database for a user. user can have a password, as in "user:password".
func (s *Server) URL(user, database string) string {
	return "postgres://" + user + "@/" + database + "?port=5432&host=" + s.dir
}

// Database makes an empty database and returns its name.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	s.mu.Lock()
	s.count++
	name := fmt.Sprintf("db%d", s.count)
	s.mu.Unlock()
	s.Exec(t, "postgres", "CREATE DATABASE "+name)
	return name
}

// Exec executes statements in a database as the superuser.
func (s *Server) Exec(t testing.TB, database, statements string) {
	t.Helper()
	must.Succeed(t, s.exec(database, statements))
}

func (s *Server) exec(database, statements string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL("postgres", database))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, statements)
	return err
}
