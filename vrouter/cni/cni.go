// Package cni implements a CNI plugin (specification 1.1). A container runtime
// asks it for an interface in a network namespace, and it asks the node's agent
// for a port. The plugin keeps no state.
package cni

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"

	"windtunnel/vrouter/api"
)

// versions of the specification that the plugin supports.
var versions = version.PluginSupports("0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")

// agentTimeout is the time limit of a request to the agent.
const agentTimeout = 20 * time.Second

// Error codes. The specification defines the codes below 100.
const (
	codeNoNetwork   uint = 100
	codeTaken       uint = 101
	codeFull        uint = 102
	codeUnavailable uint = 50 // containers cannot be added
)

// Main handles the request in the environment and on standard input, and ends
// the process. If the environment has no request, it prints the text about.
func Main(about string) {
	skel.PluginMainFuncs(skel.CNIFuncs{Add: add, Del: del, Check: check, Status: status, GC: gc}, versions, about)
}

// request is the common state of all verbs.
type request struct {
	ctx    context.Context
	config config
	client *api.Client
	args   *skel.CmdArgs
}

// begin reads the configuration and connects to the agent.
func begin(args *skel.CmdArgs) (*request, func(), error) {
	c, err := readConfig(args.StdinData)
	if err != nil {
		return nil, nil, err
	}
	socket := c.Socket
	if socket == "" {
		if socket, err = api.Find(api.RunDir, c.Node); err != nil {
			return nil, nil, types.NewError(types.ErrTryAgainLater, "find the node's vrouter agent", err.Error())
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), agentTimeout)
	client := api.Dial(socket)
	return &request{ctx, c, client, args}, func() { client.Close(); cancel() }, nil
}

// port is the name of the port of a container's interface. It is the same in every
// request.
func (r *request) port() string { return portName(r.args.ContainerID, r.args.IfName) }

func portName(container, device string) string { return "cni-" + digest(container+"/"+device) }

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// owner is the owner in the port's record. gc uses it to find the ports of a
// configuration.
func (r *request) owner() string { return ownerOf(r.config.Name, r.args.ContainerID, r.args.IfName) }

func ownerOf(config, container, device string) string { return config + "/" + container + "/" + device }

// failed maps an error of the agent to the specification's codes.
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
	return types.NewError(code, what, err.Error())
}
