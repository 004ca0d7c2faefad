package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode"
)

// Docker's plugin protocol, JSON over HTTP: the messages of libnetwork's remote
// driver and remote IPAM (libnetwork/docs/remote.md and ipam.md of
// github.com/moby/moby). Unused fields are omitted.

type capabilities struct {
	Scope             string // local, global
	ConnectivityScope string
}

type ipamData struct {
	AddressSpace string
	Pool         string // a prefix
	Gateway      string // an address with the pool's prefix length
}

type createNetworkRequest struct {
	NetworkID string
	Options   map[string]any
	IPv4Data  []ipamData
	IPv6Data  []ipamData
}

type allocateNetworkRequest struct {
	NetworkID string
	Options   map[string]string
	IPv4Data  []ipamData
	IPv6Data  []ipamData
}

type allocateNetworkResponse struct {
	Options map[string]string
}

type networkRequest struct {
	NetworkID string
}

type endpointInterface struct {
	Address     string `json:",omitempty"` // with its prefix length
	AddressIPv6 string `json:",omitempty"`
	MacAddress  string `json:",omitempty"`
}

type createEndpointRequest struct {
	NetworkID  string
	EndpointID string
	Interface  *endpointInterface
}

type createEndpointResponse struct {
	Interface *endpointInterface
}

type endpointRequest struct {
	NetworkID  string
	EndpointID string
}

// externalRequest has the ports to publish on the host. Docker makes the call for the endpoint
// that has the container's default route.
type externalRequest struct {
	Options struct {
		Published []struct{ Port uint16 } `json:"com.docker.network.portmap"`
	}
}

type endpointInfoResponse struct {
	Value map[string]string
}

type interfaceName struct {
	SrcName   string
	DstPrefix string
}

type joinResponse struct {
	InterfaceName interfaceName
	Gateway       string `json:",omitempty"`
	GatewayIPv6   string `json:",omitempty"`
}

type ipamCapabilities struct {
	RequiresMACAddress bool
}

type addressSpaces struct {
	LocalDefaultAddressSpace  string
	GlobalDefaultAddressSpace string
}

type requestPoolRequest struct {
	AddressSpace string
	Pool         string
	SubPool      string
	Options      map[string]string
	V6           bool
}

type requestPoolResponse struct {
	PoolID string
	Pool   string
}

type requestAddressRequest struct {
	PoolID  string
	Address string
	Options map[string]string
}

type requestAddressResponse struct {
	Address string // with its prefix length
}

type releaseAddressRequest struct {
	PoolID  string
	Address string
}

// nothing is a request with no used field, or an empty response.
type nothing struct{}

// checked is a request with ids of Docker that must be checked.
type checked interface{ check() error }

func (r *createNetworkRequest) check() error   { return ids(r.NetworkID) }
func (r *allocateNetworkRequest) check() error { return ids(r.NetworkID) }
func (r *networkRequest) check() error         { return ids(r.NetworkID) }
func (r *createEndpointRequest) check() error  { return ids(r.NetworkID, r.EndpointID) }
func (r *endpointRequest) check() error        { return ids(r.NetworkID, r.EndpointID) }

// ids refuses invalid ids. An id has 1 to 64 letters and digits, for example a
// SHA-256 in hexadecimal.
func ids(all ...string) error {
	for _, id := range all {
		if id == "" || len(id) > 64 || strings.ContainsFunc(id, func(r rune) bool { return r > 'z' || !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			return fmt.Errorf("%q is not a Docker id", id)
		}
	}
	return nil
}

const (
	contentType = "application/vnd.docker.plugins.v1.2+json"
	maxBody     = 1 << 20
)

// answer serves one of Docker's calls. Docker expects an error in the field Err.
func answer[R any](mux *http.ServeMux, path string, call func(context.Context, *R) (any, error)) {
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		var request R
		ctx, cancel := context.WithTimeout(r.Context(), agentTimeout)
		defer cancel()
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&request)
		if errors.Is(err, io.EOF) {
			err = nil // some calls have no body
		}
		if c, ok := any(&request).(checked); ok && err == nil {
			err = c.check()
		}
		var body any
		if err != nil {
			err = fmt.Errorf("parse the call %s: %w", path, err)
		} else {
			body, err = call(ctx, &request)
		}
		w.Header().Set("Content-Type", contentType)
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			body = map[string]string{"Err": err.Error()}
		}
		json.NewEncoder(w).Encode(body) // an error means that the client has disconnected
	})
}
