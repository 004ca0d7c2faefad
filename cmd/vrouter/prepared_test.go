package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// prepared is a server with prepared answers. A script can put other answers
// into answers/: NAME.json, or NAME.1.json, NAME.2.json, … for successive
// requests. The server refuses a request after the last of these, so that
// --follow ends. It lists the requests in the file requests.
type prepared struct {
	dir    string // the script's
	shared string // testdata/prepared
	mu     sync.Mutex
	asked  map[string]int
}

// servePrepared serves on a socket until the script ends.
func servePrepared(env *testscript.Env) (string, error) {
	shared, err := filepath.Abs("testdata/prepared")
	if err != nil {
		return "", err
	}
	// A unix socket's path has 107 characters at most, a test's directory may have more.
	dir, err := os.MkdirTemp("", "vr-cli")
	if err != nil {
		return "", err
	}
	env.Defer(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "a.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: &prepared{dir: env.WorkDir, shared: shared, asked: map[string]int{}}}
	done := make(chan struct{})
	go func() { defer close(done); server.Serve(l) }()
	env.Defer(func() { server.Close(); <-done })
	return socket, nil
}

func (s *prepared) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := strings.Join(strings.Split(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")[:1], "")
	if r.Method != http.MethodGet {
		name += "." + strings.ToLower(r.Method)
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = s.note(r, body)
	}
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, `{"error": %q}`, err)
		return
	}
	s.asked[name]++
	s.answer(w, name)
}

// note appends a request to the file requests.
func (s *prepared) note(r *http.Request, body []byte) error {
	f, err := os.OpenFile(filepath.Join(s.dir, "requests"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintf(f, "%s %s %s\n", r.Method, r.URL.RequestURI(), body)
	return err
}

func (s *prepared) answer(w http.ResponseWriter, name string) {
	answers := filepath.Join(s.dir, "answers")
	for _, path := range []string{
		filepath.Join(answers, fmt.Sprintf("%s.%d.json", name, s.asked[name])),
		filepath.Join(answers, name+".json"),
		filepath.Join(s.shared, name+".json"),
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if refused(text) {
			w.WriteHeader(http.StatusBadRequest)
		}
		w.Write(text)
		return
	}
	w.WriteHeader(http.StatusNotFound)
	fmt.Fprintf(w, `{"error": "no answer is prepared for %s %d"}`, name, s.asked[name])
}

// refused reports whether an answer is an error.
func refused(text []byte) bool {
	var e struct {
		Error string `json:"error"`
	}
	return json.Unmarshal(text, &e) == nil && e.Error != ""
}
