package k8s

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"windtunnel/internal/must"
)

// simulated is an API server that only stores objects. A service gets an address.
type simulated struct {
	mu      sync.Mutex
	objects map[string]map[string]any // by path
	done    []string                  // requests: the method and the path
	except  []string                  // permissions that the user lacks
	// react returns the error of a request; nil lets the server store the object.
	react func(method, path string, object map[string]any) *failure
}

// simulate returns a cluster with an API server that stores the objects.
func simulate(t *testing.T, objects ...any) (*cluster, *simulated) {
	t.Helper()
	s := &simulated{objects: map[string]map[string]any{}}
	c := &cluster{http: &http.Client{Transport: s}, close: func() {}}
	for _, o := range objects {
		collection := ""
		switch o := o.(type) {
		case *nodeObject:
			collection = nodesPath
		case *namespace:
			collection = namespacesPath
		case *lease:
			collection = leasesPath(o.Metadata.Namespace)
		}
		text := must.Get(json.Marshal(o))(t)
		object := map[string]any{}
		must.Succeed(t, json.Unmarshal(text, &object))
		s.objects[collection+"/"+nameOf(object)] = object
	}
	return c, s
}

func nameOf(object map[string]any) string {
	return object["metadata"].(map[string]any)["name"].(string)
}

// did returns the requests with a method, by their paths.
func (s *simulated) did(method string) (paths []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.done {
		if m, p, _ := strings.Cut(d, " "); m == method {
			paths = append(paths, p)
		}
	}
	return paths
}

// namespaces lists the names of the namespaces.
func (s *simulated) namespaces() (names []string) {
	for _, p := range slices.Sorted(maps.Keys(s.objects)) {
		if path.Dir(p) == namespacesPath {
			names = append(names, path.Base(p))
		}
	}
	return names
}

// RoundTrip implements http.RoundTripper.
func (s *simulated) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	s.mu.Lock()
	defer s.mu.Unlock()
	var object map[string]any
	_ = json.NewDecoder(r.Body).Decode(&object) // a GET has none
	s.done = append(s.done, r.Method+" "+r.URL.Path)
	if s.react != nil {
		if f := s.react(r.Method, r.URL.Path, object); f != nil {
			refuse(w, f)
			return w.Result(), nil
		}
	}
	s.serve(w, r, object)
	return w.Result(), nil
}

func refuse(w http.ResponseWriter, f *failure) {
	w.WriteHeader(f.Code)
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "reason": f.Reason, "message": f.Message})
}

func (s *simulated) serve(w http.ResponseWriter, r *http.Request, object map[string]any) {
	at := r.URL.Path
	switch known := s.objects[at]; {
	case at == reviewsPath:
		a := object["spec"].(map[string]any)["resourceAttributes"].(map[string]any)
		word := func(key string) string { return a[key].(string) }
		p := permission{word("group"), word("resource"), word("subresource"), word("verb")}
		object["status"] = map[string]any{"allowed": !slices.Contains(s.except, p.String())}
	case r.Method == http.MethodPost:
		m := object["metadata"].(map[string]any)
		m["creationTimestamp"], m["uid"] = time.Now().UTC().Format(time.RFC3339), "uid"
		if path.Base(at) == "services" {
			object["spec"].(map[string]any)["clusterIP"] = "10.96.0.9"
		}
		s.objects[at+"/"+nameOf(object)] = object
	case r.Method == http.MethodPut:
		s.objects[at] = object
	case r.Method == http.MethodDelete && known != nil:
		maps.DeleteFunc(s.objects, func(p string, _ map[string]any) bool { return p == at || strings.HasPrefix(p, at+"/") })
	case known != nil:
		object = known
	case slices.Contains([]string{"namespaces", "nodes", "pods", "events"}, path.Base(at)):
		items := []any{}
		for p, o := range s.objects {
			labels, _ := o["metadata"].(map[string]any)["labels"].(map[string]any)
			if label := r.URL.Query().Get("labelSelector"); path.Dir(p) == at && (label == "" || labels[label] != nil) {
				items = append(items, o)
			}
		}
		object = map[string]any{"items": items}
	default:
		refuse(w, &failure{http.StatusNotFound, "NotFound", at + " not found"})
		return
	}
	_ = json.NewEncoder(w).Encode(object)
}
