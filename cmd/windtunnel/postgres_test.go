package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/results"
	"windtunnel/lab/results/postgrestest"
	"windtunnel/lab/sample"
)

// A run into the store of a server is killed, resumed, and sees the server restart. The
// password of --db is neither in the process list nor in anything that the run writes.
func TestARunIntoTheStoreOfAServerIsKilledAndResumed(t *testing.T) {
	must.Long(t)
	h := newHome(t)
	server := postgrestest.Shared(t)
	const password = "hidden-word"
	db := server.URL("postgres:"+password, server.Database(t))
	cmd := h.untilTrials(1, "run", "slow.yaml", "--gates", "warn", "--cpu-distance", "any", "--db", db)
	argv, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cmd.Process.Pid))
	if err != nil || bytes.Contains(argv, []byte(password)) || !bytes.Contains(argv, []byte("postgres://postgres:***********@/")) {
		t.Errorf("command line %q, %v, want --db without its password", argv, err)
	}
	if out, err := h.run("runs", "--db", db); err != nil || !strings.Contains(out, " running ") {
		t.Errorf("runs during the run: %v\n%s", err, out)
	}
	if out, err := h.run("runs", "delete", "latest", "--db", db); err == nil || !strings.Contains(out, "is being measured") {
		t.Errorf("delete during the run: %v\n%s", err, out)
	}
	must.Succeed(t, cmd.Process.Kill())
	_ = cmd.Wait()
	if out, err := h.run("runs", "--db", db); err != nil || !strings.Contains(out, " interrupted ") {
		t.Errorf("runs after the kill: %v\n%s", err, out)
	}
	cmd = h.untilTrials(1, "run", "--resume", "latest", "--db", db)
	server.Kill()
	must.Succeed(t, server.Up())
	if err := cmd.Wait(); err != nil {
		t.Errorf("the resumed run: %v", err)
	}
	store := must.Get(results.Open(db, results.Options{ReadOnly: true}))(t)
	defer store.Close()
	data := must.Get(store.Load(""))(t)
	blocks := map[int]bool{}
	for i := range data.Samples {
		if data.Samples[i].Counts() {
			blocks[data.Samples[i].Block] = true
		}
	}
	if data.Run.Status != sample.Complete || len(blocks) != 6 {
		t.Errorf("the run is %s with samples of %d blocks, want complete with 6", data.Run.Status, len(blocks))
	}
	if text := fmt.Sprintf("%+v", data); strings.Contains(text, password) {
		t.Error("the stored run has the password")
	}
	files := 0
	err = filepath.WalkDir(filepath.Join(h.dir, "out"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(password)) {
			t.Errorf("%s has the password", path)
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files of the report, %v", files, err)
	}
}

func TestCtrlCWhileTheStoresServerIsUnreachableEndsWithStatus130(t *testing.T) {
	h := newHome(t)
	server := postgrestest.Shared(t)
	db := server.URL("postgres", server.Database(t))
	cmd := h.command("run", "slow.yaml", "--gates", "warn", "--cpu-distance", "any", "--db", db)
	stderr := must.Get(cmd.StderrPipe())(t)
	must.Succeed(t, cmd.Start())
	lines, killed, waits := bufio.NewScanner(stderr), false, false
	for !waits && lines.Scan() {
		if !killed && strings.Contains(lines.Text(), "sender CPU") {
			server.Kill()
			killed = true
		}
		waits = strings.Contains(lines.Text(), "the run waits for the server")
	}
	if !waits {
		t.Error("the run does not wait for the server")
	}
	go func() { _, _ = io.Copy(io.Discard, stderr) }()
	h.interrupt(cmd)
	must.Succeed(t, server.Up())
	if out, err := h.run("runs", "--db", db); err != nil || !strings.Contains(out, " interrupted ") {
		t.Errorf("runs after the interrupt: %v\n%s", err, out)
	}
}
