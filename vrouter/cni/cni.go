// Package cni is vrouter as a CNI plugin (specification 1.1): a container runtime
// asks for an interface in a network namespace, and the node's agent makes it a
// port. All state is the agent's; the plugin has none.
package cni

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"

	"windtunnel/vrouter/api"
)

// versions of the specification that the plugin speaks.
var versions = version.PluginSupports("0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")

// patience is how long a runtime is let wait for the agent.
const patience = 20 * time.Second

// Codes of errors that are the plugin's own; those below 100 are the
// specification's.
const (
	codeNoNetwork   uint = 100
	codeTaken       uint = 101
	codeFull        uint = 102
	codeUnavailable uint = 50 // no containers can be served
)

// Main handles the one request that the environment and standard input describe,
// and ends the process. about is told to who runs the program by hand.
func Main(about string) {
	skel.PluginMainFuncs(skel.CNIFuncs{Add: add, Del: del, Check: check, Status: status, GC: gc}, versions, about)
}

// request is what every verb begins with.
type request struct {
	ctx    context.Context
	config config
	client *api.Client
	args   *skel.CmdArgs
}

// begin reads the configuration and finds the agent.
func begin(args *skel.CmdArgs) (*request, func(), error) {
	c, err := readConfig(args.StdinData, args.Args)
	if err != nil {
		return nil, nil, err
	}
	socket := c.Socket
	if socket == "" {
		if socket, err = api.Find(api.RunDir, c.Node); err != nil {
			return nil, nil, types.NewError(types.ErrTryAgainLater, "the node's vrouter agent is not to be found", err.Error())
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	client := api.Dial(socket)
	return &request{ctx, c, client, args}, func() { client.Close(); cancel() }, nil
}

// port is the name of a container's interface's port: the same for every request
// that is about it.
func (r *request) port() string { return portName(r.args.ContainerID, r.args.IfName) }

func portName(container, device string) string { return "cni-" + digest(container+"/"+device) }

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// owner says whose a port is, so that GC finds those of its configuration.
func (r *request) owner() string { return ownerOf(r.config.Name, r.args.ContainerID, r.args.IfName) }

func ownerOf(config, container, device string) string { return config + "/" + container + "/" + device }

// failed words an error of the agent's in the specification's codes.
func failed(what string, err error) error {
	if err == nil {
		return nil
	}
	var refused *api.Error
	var none *api.Unreachable
	code := types.ErrInternal
	switch {
	case errors.As(err, &none), errors.Is(err, context.DeadlineExceeded):
		code = types.ErrTryAgainLater
	case errors.As(err, &refused):
		switch refused.Status {
		case http.StatusServiceUnavailable:
			code = types.ErrTryAgainLater
		case http.StatusNotFound:
			code = codeNoNetwork
		case http.StatusConflict:
			code = codeTaken
		case http.StatusInsufficientStorage:
			code = codeFull
		case http.StatusBadRequest:
			code = types.ErrInvalidNetworkConfig
		}
	}
	return types.NewError(code, fmt.Sprintf("%s failed", what), err.Error())
}
