package host

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"windtunnel/internal/must"
)

func TestTheFirstValidCNIConfigurationIsDescribed(t *testing.T) {
	list := func(name string) string {
		return `{"cniVersion": "1.0.0", "name": "` + name + `", "plugins": [{"type": "bridge"}, {"type": "portmap"}]}`
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"none":         {nil, ""},
		"two":          {map[string]string{"10-a.conflist": list("a"), "05-b.conflist": list("b")}, "b: bridge, portmap"},
		"one is wrong": {map[string]string{"05-b.conflist": "{", "10-a.conflist": list("a")}, "a: bridge, portmap"},
		"other files":  {map[string]string{"10-a.conflist.bak": list("a"), "README": "x"}, ""},
	} {
		dir := t.TempDir()
		for file, text := range c.files {
			must.Succeed(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644))
		}
		if got, err := describeCNI(dir); got != c.want || err != nil {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
	if got, err := describeCNI("/no/such/folder"); got != "" || err != nil {
		t.Errorf("no folder: %q, %v; want nothing", got, err)
	}
}

func TestTheModeOfKubeProxyIsQueried(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/proxyMode" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte("nftables\n"))
	}))
	defer proxy.Close()
	for path, want := range map[string]string{"/proxyMode": "nftables", "/other": ""} {
		if got := askProxy(proxy.URL + path); got != want {
			t.Errorf("%s: mode %q, want %q", path, got, want)
		}
	}
	must.Equal(t, "", askProxy("http://127.0.0.1:1/proxyMode"))
}
