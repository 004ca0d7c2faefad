package k8s

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windtunnel/internal/must"
)

// smallServer is a small API server for tests. It stores objects without checks, and serves watches as Kubernetes does: a
// watch first reports the objects that exist. It starts in milliseconds.
type smallServer struct {
	t      *testing.T
	server *httptest.Server

	mu      sync.Mutex
	changed *sync.Cond
	log     []smallChange // of all time
}

// smallChange is a change of an object. Its version is its index in the log plus 1.
type smallChange struct {
	resource, name string // such as /api/v1/pods, and NAMESPACE/NAME
	kind           string // of the event of a watch
	object         map[string]any
}

func startSmallServer(t *testing.T) *smallServer {
	s := &smallServer{t: t}
	s.changed = sync.NewCond(&s.mu)
	s.start()
	t.Cleanup(s.stop)
	return s
}

// start serves, at the address of the former server if there was one.
func (s *smallServer) start() {
	next := httptest.NewUnstartedServer(s)
	if s.server != nil {
		next.Listener.Close()
		next.Listener = must.Get(net.Listen("tcp", s.server.Listener.Addr().String()))(s.t)
	}
	next.StartTLS()
	s.server = next
}

// stop ends all connections, and refuses others.
func (s *smallServer) stop() {
	s.server.Listener.Close()
	s.server.CloseClientConnections() // watches do not end by themselves
	s.server.Close()
}

var smallPath = regexp.MustCompile(`^(/api/v1|/apis/[^/]+/v1)(?:/namespaces/([^/]+))?/([a-z]+)(?:/([^/]+))?$`)

func (s *smallServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	part := smallPath.FindStringSubmatch(r.URL.Path)
	if part == nil {
		http.NotFound(w, r)
		return
	}
	resource, namespace, name := part[1]+"/"+part[3], part[2], part[4]
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Query().Get("watch") != "":
		s.watch(w, r, resource)
	case r.Method == http.MethodGet:
		s.mu.Lock()
		defer s.mu.Unlock()
		has, _ := s.objects(resource)
		s.answer(w, map[string]any{"kind": "List", "apiVersion": "v1", "items": slices.Collect(maps.Values(has))})
	case r.Method == http.MethodPost:
		var o map[string]any
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		meta := o["metadata"].(map[string]any)
		meta["namespace"] = namespace
		s.change(w, resource, namespace+"/"+meta["name"].(string), "ADDED", o)
	case r.Method == http.MethodDelete:
		s.change(w, resource, namespace+"/"+name, "DELETED", nil)
	default:
		http.Error(w, r.Method, http.StatusMethodNotAllowed)
	}
}

// change adds an object, or deletes it.
func (s *smallServer) change(w http.ResponseWriter, resource, name, kind string, o map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	has, _ := s.objects(resource)
	if was := has[name]; (was != nil) != (kind == "DELETED") {
		w.WriteHeader(http.StatusConflict)
		s.answer(w, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "AlreadyExists", "code": http.StatusConflict})
		return
	}
	if kind == "DELETED" {
		o = maps.Clone(has[name])
		o["metadata"] = maps.Clone(o["metadata"].(map[string]any))
	}
	meta := o["metadata"].(map[string]any)
	if meta["resourceVersion"] = fmt.Sprint(len(s.log) + 1); kind == "ADDED" {
		meta["uid"] = fmt.Sprint("uid-", len(s.log)+1)
	}
	s.log = append(s.log, smallChange{resource, name, kind, o})
	s.changed.Broadcast()
	s.answer(w, o)
}

// objects returns the objects of a resource by name, and the version.
func (s *smallServer) objects(resource string) (has map[string]map[string]any, version int) {
	has = map[string]map[string]any{}
	for _, c := range s.log {
		if c.resource == resource {
			if has[c.name] = c.object; c.kind == "DELETED" {
				delete(has, c.name)
			}
		}
	}
	return has, len(s.log)
}

func (s *smallServer) answer(w http.ResponseWriter, o any) {
	_ = json.NewEncoder(w).Encode(o) // a client that went away needs no answer
}

// smallKinds are the kinds of resources.
var smallKinds = map[string]string{
	"events": "Event", "namespaces": "Namespace", "pods": "Pod", "services": "Service", "networkpolicies": "NetworkPolicy", "endpointslices": "EndpointSlice",
}

func (s *smallServer) watch(w http.ResponseWriter, r *http.Request, resource string) {
	defer context.AfterFunc(r.Context(), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})()
	send := func(kind string, object any) { s.answer(w, map[string]any{"type": kind, "object": object}) }
	s.mu.Lock()
	defer s.mu.Unlock()
	has, version := s.objects(resource)
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		for _, o := range has {
			send("ADDED", o)
		}
		group, short := path.Split(resource)
		send("BOOKMARK", map[string]any{
			"apiVersion": strings.Trim(strings.TrimPrefix(strings.TrimPrefix(group, "/apis"), "/api"), "/"), "kind": smallKinds[short],
			"metadata": map[string]any{"resourceVersion": fmt.Sprint(version), "annotations": map[string]any{metav1.InitialEventsAnnotationKey: "true"}},
		})
	} else if _, err := fmt.Sscan(r.URL.Query().Get("resourceVersion"), &version); err != nil {
		version = 0
	}
	for ; r.Context().Err() == nil; s.changed.Wait() {
		for ; version < len(s.log); version++ {
			if c := s.log[version]; c.resource == resource {
				send(c.kind, c.object)
			}
		}
		w.(http.Flusher).Flush()
	}
}
