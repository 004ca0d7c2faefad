package agent

import (
	"errors"
	"fmt"
	"net/http"

	"windtunnel/vrouter/agent/reconcile"
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
	if err == nil || errors.As(err, &has) || reconcile.IsLimit(err) {
		return err
	}
	return &refusal{status, err}
}

// statusOf is the HTTP status of an error.
func statusOf(err error) int {
	var r *refusal
	var u *reconcile.UnfitError
	switch {
	case errors.As(err, &r):
		return r.status
	case errors.As(err, &u):
		return http.StatusBadRequest
	case reconcile.IsLimit(err):
		return http.StatusInsufficientStorage
	}
	return http.StatusInternalServerError
}
