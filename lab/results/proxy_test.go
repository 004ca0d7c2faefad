package results

import (
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/sample"
)

// proxy forwards connections to the server, and can drop the answer to a commit.
type proxy struct {
	dir  string // of its socket
	to   string
	drop atomic.Bool // the next confirmation of a commit ends its connection
}

const socketName = ".s.PGSQL.5432"

func startProxy(t *testing.T, to string) *proxy {
	t.Helper()
	dir := must.Get(os.MkdirTemp("", "wt-pg-"))(t) // not t.TempDir: the path of a socket must be short
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l := must.Get(net.Listen("unix", filepath.Join(dir, socketName)))(t)
	t.Cleanup(func() { _ = l.Close() })
	p := &proxy{dir: dir, to: to}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(client)
		}
	}()
	return p
}

func (p *proxy) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("unix", p.to)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil || bytes.Contains(buffer[:n], []byte("COMMIT\x00")) && p.drop.CompareAndSwap(true, false) {
			return
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func TestASampleWhoseCommitWasNotConfirmedIsStoredOnce(t *testing.T) {
	place := postgresBackend.place(t)
	_, socketDir, _ := strings.Cut(place, "&host=")
	p := startProxy(t, filepath.Join(socketDir, socketName))
	s := open(t, strings.Replace(place, socketDir, p.dir, 1), Options{})
	run, plan, samples := reporttest.Sized(1)
	run.Status = sample.Running
	must.Succeed(t, s.CreateRun(run, plan))
	p.drop.Store(true)
	id := must.Get(s.AppendSample(run.ID, samples[0]))(t)
	if p.drop.Load() {
		t.Fatal("the proxy saw no commit, so that the test tests nothing")
	}
	p.drop.Store(true)
	run.Status = sample.Complete
	must.Succeed(t, s.UpdateRun(run))
	data, err := open(t, place, Options{ReadOnly: true}).Load("")
	if err != nil || len(data.Samples) != 1 || data.IDs[0] != id || data.Run.Status != sample.Complete {
		t.Errorf("%+v, %v, want one sample with ID %d of a complete run", data, err, id)
	}
}
