package cni

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

// wrong is a configuration that must be refused, with the specification's code and
// the text of the error.
var wrong = []struct {
	text, args string
	code       uint
	says       string
}{
	{`{`, "", types.ErrDecodingFailure, "unexpected end of JSON input"},
	{`[]`, "", types.ErrDecodingFailure, "cannot unmarshal array"},
	{`{"network": 7}`, "", types.ErrDecodingFailure, "network"},
	{`{"cniVersion": "1.1.0", "type": "vrouter"}`, "", types.ErrInvalidNetworkConfig, "network: is missing"},
	{`{"name": "red", "ipam": {"type": "host-local"}}`, "", types.ErrInvalidNetworkConfig, `ipam: "host-local"`},
	{`{"name": "red", "socket": "run/a.sock"}`, "", types.ErrInvalidNetworkConfig, `socket: "run/a.sock"`},
	{`{"name": "red", "ranges": ["10.1.0.9-10.1.0.1"]}`, "", types.ErrInvalidNetworkConfig, `ranges: "10.1.0.9-10.1.0.1"`},
	{`{"name": "red", "runtimeConfig": {"ips": ["10.1.0.300"]}}`, "", types.ErrInvalidNetworkConfig, `ips: "10.1.0.300"`},
	{`{"name": "red", "runtimeConfig": {"ips": ["fe80::1%eth0"]}}`, "", types.ErrInvalidNetworkConfig, `ips: "fe80::1%eth0"`},
	{`{"name": "red", "runtimeConfig": {"mac": "02:00:00"}}`, "", types.ErrInvalidNetworkConfig, `mac: "02:00:00"`},
	{`{"name": "red"}`, "IP", types.ErrInvalidEnvironmentVariables, "IP"},
	{`{"name": "red"}`, "IP=seven", types.ErrInvalidNetworkConfig, `ips: "seven"`},
}

// forAdd reads a configuration for ADD.
func forAdd(text []byte, args string) (config, portConfig, error) {
	c, err := readConfig(text)
	if err != nil {
		return c, portConfig{}, err
	}
	p, err := c.readPort(text, args)
	return c, p, err
}

// A wrong value that only ADD uses must not prevent DEL and GC.
func TestADeletionReadsOnlyWhatItUses(t *testing.T) {
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			fmt.Fprint(w, "{}")
			return
		}
		http.Error(w, `{"error": "no"}`, http.StatusNotFound)
	})}
	socket := filepath.Join(t.TempDir(), "a.sock")
	l := must.Get(net.Listen("unix", socket))(t)
	go server.Serve(l) // ends with an error when the server is closed
	defer server.Close()
	for _, fields := range []string{
		`"ranges": ["10.1.0.9-10.1.0.1"]`, `"ranges": 7`, `"policies": 7`, `"ipam": {"type": "host-local"}`,
		`"runtimeConfig": {"ips": ["10.1.0.300"]}`, `"runtimeConfig": {"mac": "zz"}`, `"runtimeConfig": {"bandwidth": {"ingressRate": -1}}`,
		`"args": {"cni": {"ips": 7}}`,
	} {
		args := &skel.CmdArgs{ContainerID: "x", IfName: "eth0", Args: "MAC", StdinData: []byte(fmt.Sprintf(`{"name": "red", "socket": %q, %s}`, socket, fields))}
		if err := del(args); err != nil {
			t.Errorf("delete a port with the configuration %s: %v", args.StdinData, err)
		}
	}
}

func TestAConfigurationThatCannotWorkIsRefusedWithItsField(t *testing.T) {
	for _, w := range wrong {
		_, _, err := forAdd([]byte(w.text), w.args)
		var told *types.Error
		if !errors.As(err, &told) || told.Code != w.code || !strings.Contains(told.Details, w.says) {
			t.Errorf("%s %q: %+v, want code %d and %q", w.text, w.args, err, w.code, w.says)
		}
	}
}

func TestValuesOfTheRuntimeOverrideTheConfiguration(t *testing.T) {
	for args, want := range map[string]struct{ text, ip, mac string }{
		"":                      {`{"name": "red", "args": {"cni": {"ips": ["10.1.0.7/16"]}}}`, "10.1.0.7", "00:00:00:00:00:00"},
		"IP=10.1.0.8":           {`{"name": "red"}`, "10.1.0.8", "00:00:00:00:00:00"},
		"IP=10.1.0.9;OTHER=no":  {`{"name": "red", "runtimeConfig": {"ips": ["::ffff:10.1.0.7"], "mac": "02:00:00:00:00:07"}}`, "10.1.0.7", "02:00:00:00:00:07"},
		"MAC=02-00-00-00-00-08": {`{"name": "red", "network": "blue", "runtimeConfig": {"ips": ["10.1.0.7"]}}`, "10.1.0.7", "02:00:00:00:00:08"},
	} {
		_, c, err := forAdd([]byte(want.text), args)
		if err != nil {
			t.Errorf("read %s with arguments %q: %v", want.text, args, err)
			continue
		}
		if len(c.ips) != 1 || c.ips[0].String() != want.ip || c.mac.String() != want.mac {
			t.Errorf("%s %q: addresses %v, MAC %s; want %s and %s", want.text, args, c.ips, c.mac, want.ip, want.mac)
		}
	}
}

func TestAPortHasThePodOfItsEnvironment(t *testing.T) {
	c, _, err := forAdd([]byte(`{"name": "red"}`), "IgnoreUnknown=1;K8S_POD_NAMESPACE=web;K8S_POD_NAME=web-0;K8S_POD_INFRA_CONTAINER_ID=7f;K8S_POD_UID=5c1b")
	if want := (model.Pod{Namespace: "web", Name: "web-0", UID: "5c1b"}); err != nil || c.pod == nil || *c.pod != want {
		t.Errorf("the pod is %+v, %v; want %+v", c.pod, err, want)
	}
}

// FuzzConfig reads any configuration: it is refused with a code of the
// specification, or the result is valid.
func FuzzConfig(f *testing.F) {
	for _, w := range wrong {
		f.Add([]byte(w.text), w.args)
	}
	f.Add([]byte(`{"cniVersion": "1.1.0", "name": "pods", "type": "vrouter", "network": "red", "ranges": ["10.1.2.0/24"], "prevResult": {"cniVersion": "1.1.0", "interfaces": [{"name": "vr-1"}, {"name": "eth0", "sandbox": "/run/netns/x"}], "ips": [{"address": "10.1.2.2/16", "gateway": "10.1.0.1", "interface": 1}]}}`), "IP=10.1.0.8;MAC=02:00:00:00:00:08")
	f.Fuzz(func(t *testing.T, text []byte, args string) {
		c, p, err := forAdd(text, args)
		var told *types.Error
		if err != nil {
			if !errors.As(err, &told) || told.Code == 0 || told.Msg == "" {
				t.Fatalf("%#v is not in the specification's form", err)
			}
			return
		}
		if c.Network == "" {
			t.Error("it has no network")
		}
		for _, a := range p.ips {
			if !a.IsValid() || a.Zone() != "" || a.Is4In6() {
				t.Errorf("address %v", a)
			}
		}
		for _, r := range p.pools {
			if !r.Contains(r.First) || !r.Contains(r.Last) {
				t.Errorf("range %v", r)
			}
		}
		r := &request{config: c, args: &skel.CmdArgs{ContainerID: "x", IfName: "eth0", Netns: "/none"}}
		if wrong := r.differences(api.Port{}); c.RawPrevResult == nil && len(wrong) != 1 {
			t.Errorf("without a previous result: %v", wrong)
		}
	})
}
