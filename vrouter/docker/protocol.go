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

type ipamData struct {
	AddressSpace string
	Pool         string // a prefix
	Gateway      string // an address with the pool's prefix length
}

// networkRequest is a call about a network. Only those that create a network have more than its id.
type networkRequest struct {
	NetworkID string
	Options   map[string]any
	IPv4Data  []ipamData
	IPv6Data  []ipamData
}

type endpointInterface struct {
	Address     string `json:",omitempty"` // with its prefix length
	AddressIPv6 string `json:",omitempty"`
	MacAddress  string `json:",omitempty"`
}

// endpointRequest is a call about an endpoint.
type endpointRequest struct {
	NetworkID  string
	EndpointID string
	Interface  *endpointInterface // of CreateEndpoint
}

// externalRequest has the ports to publish on the host. Docker makes the call for the endpoint
// that has the container's default route.
type externalRequest struct {
	Options struct {
		Published []struct{ Port uint16 } `json:"com.docker.network.portmap"`
	}
}

type requestPoolRequest struct {
	AddressSpace string
	Pool         string
	SubPool      string
	Options      map[string]string
	V6           bool
}

// addressRequest is a call about an address of a pool. Options are of RequestAddress.
type addressRequest struct {
	PoolID  string
	Address string
	Options map[string]string
}

// answer is the response to a call.
type answer map[string]any

// nothing is a request with no used field, or an empty response.
type nothing struct{}

// checked is a request with ids of Docker that must be checked.
type checked interface{ check() error }

func (r *networkRequest) check() error  { return ids(r.NetworkID) }
func (r *endpointRequest) check() error { return ids(r.NetworkID, r.EndpointID) }

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

// serve serves one of Docker's calls. Docker expects an error in the field Err.
func serve[R any](mux *http.ServeMux, path string, call func(context.Context, *R) (any, error)) {
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
