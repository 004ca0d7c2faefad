package agent

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// refusal is an error with its HTTP status.
type refusal struct {
	status int
	err    error
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

func refuse(status int, format string, args ...any) error {
	return &refusal{status, fmt.Errorf(format, args...)}
}

// refuseAs adds a status to an error, unless it has one or is a table's limit.
func refuseAs(status int, err error) error {
	var has *refusal
	if err == nil || errors.As(err, &has) || isLimit(err) {
		return err
	}
	return &refusal{status, err}
}

// statusOf is the HTTP status of an error.
func statusOf(err error) int {
	var r *refusal
	switch {
	case errors.As(err, &r):
		return r.status
	case isLimit(err):
		return http.StatusInsufficientStorage
	}
	return http.StatusInternalServerError
}

// isLimit reports whether a table or its ids are full.
func isLimit(err error) bool {
	var entries *datapath.LimitError
	var numbers *fib.LimitError
	return errors.As(err, &entries) || errors.As(err, &numbers)
}

// noSuchNode is the error of a state that does not have this node.
func noSuchNode(node string, s model.State) error {
	names := make([]string, 0, len(s.Nodes))
	for _, n := range s.Nodes {
		names = append(names, n.Name)
	}
	slices.Sort(names)
	if len(names) > 10 {
		names = append(names[:10], "…")
	}
	has := "it has no nodes"
	if len(names) > 0 {
		has = "its nodes are " + strings.Join(names, ", ")
	}
	return fmt.Errorf("the state does not have this node, %q: %s; add it under nodes, or apply the state to the right fleet", node, has)
}
