package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/internal/testprogram"
)

// fetch returns status and body of a page.
func fetch(t *testing.T, address string) (status int, body string) {
	t.Helper()
	response := must.Get(http.Get(address))(t)
	defer response.Body.Close()
	text := must.Get(io.ReadAll(response.Body))(t)
	return response.StatusCode, string(text)
}

// firstLine returns the address that the server prints.
func firstLine(t *testing.T, out io.Reader) *url.URL {
	t.Helper()
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatalf("the server printed %q: %v", line, err)
	}
	go io.Copy(io.Discard, lines)
	return must.Get(url.Parse(strings.TrimSpace(line)))(t)
}

func TestServeEndsWithStatus0AtASignal(t *testing.T) {
	program := must.Get(testprogram.Build(programs, "windtunnel"))(t)
	dir := t.TempDir()
	must.Succeed(t, putAll(dir, "main.db", newStored("main", 1)))
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		cmd := exec.Command(program, "serve", "--listen", "127.0.0.1:0", "--db", filepath.Join(dir, "main.db"))
		var problems bytes.Buffer
		cmd.Stderr = &problems
		reader, writer, err := os.Pipe()
		must.Succeed(t, err)
		cmd.Stdout = writer
		must.Succeed(t, cmd.Start())
		writer.Close()
		t.Cleanup(func() { _ = cmd.Process.Kill() }) // does nothing after the end
		address := firstLine(t, reader)
		if status, body := fetch(t, address.String()+"api/runs"); status != http.StatusOK || !strings.Contains(body, `"main"`) {
			t.Errorf("the list of runs: status %d, %.200q; want the run main", status, body)
		}
		must.Succeed(t, cmd.Process.Signal(signal))
		if err := cmd.Wait(); err != nil || problems.Len() > 0 {
			t.Errorf("after %v the server ended with %v and said %q, want exit status 0 and nothing", signal, err, problems.String())
		}
	}
}

func TestServeBeyondLoopbackNeedsAToken(t *testing.T) {
	dir := t.TempDir()
	must.Succeed(t, putAll(dir, "main.db", newStored("main", 1)))
	file := filepath.Join(dir, "token")
	must.Succeed(t, os.WriteFile(file, []byte("the-token-of-the-file\n"), 0o600))
	for name, c := range map[string]struct {
		options serveOptions
		printed bool   // the address has a token
		token   string // that is right; "": the printed one
	}{
		"every address, a generated token":    {serveOptions{listen: "0.0.0.0:0"}, true, ""},
		"every address, the token of a file":  {serveOptions{listen: "0.0.0.0:0", tokenFile: file}, false, "the-token-of-the-file"},
		"loopback, with the token of a file":  {serveOptions{listen: "127.0.0.1:0", tokenFile: file}, false, "the-token-of-the-file"},
		"loopback by its name, without token": {serveOptions{listen: "localhost:0"}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.options.db = filepath.Join(dir, "main.db")
			ctx, cancel := context.WithCancel(t.Context())
			reader, writer := io.Pipe()
			done := make(chan error, 1)
			go func() {
				err := c.options.run(ctx, writer)
				writer.CloseWithError(err)
				done <- err
			}()
			address := firstLine(t, reader)
			token := address.Query().Get("token")
			if (token != "") != c.printed {
				t.Errorf("the printed address is %s, want a token in it: %v", address, c.printed)
			}
			address.RawQuery = ""
			if address.Hostname() != "127.0.0.1" && address.Hostname() != "::1" {
				address.Host = "127.0.0.1:" + address.Port() // the name may not resolve here
			}
			if c.token != "" {
				token = c.token
			}
			want := http.StatusOK
			if token != "" {
				want = http.StatusUnauthorized
			}
			if status, _ := fetch(t, address.String()); status != want {
				t.Errorf("without a token: status %d, want %d", status, want)
			}
			if token != "" {
				if status, body := fetch(t, address.String()+"?token="+token); status != http.StatusOK || !strings.Contains(body, "Token accepted") {
					t.Errorf("with the token: status %d, %.200q; want 200", status, body)
				}
			}
			cancel()
			if err := <-done; err != nil {
				t.Errorf("the server ended with %v", err)
			}
		})
	}
}
