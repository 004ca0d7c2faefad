package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"syscall"
)

// Error is the agent's refusal of a request. Its text is for users.
type Error struct {
	Status int // HTTP status; see the package comment
	Text   string
}

func (e *Error) Error() string { return e.Text }

// Unreachable says that no agent answered. Its text says what to do. The cause is
// the system's error.
type Unreachable struct {
	Text  string
	Cause error
}

func (e *Unreachable) Error() string { return e.Text }

func (e *Unreachable) Unwrap() error { return e.Cause }

// IsNotFound reports whether the requested object does not exist.
func IsNotFound(err error) bool { return isStatus(err, http.StatusNotFound) }

// IsConflict reports whether existing objects prevent the request.
func IsConflict(err error) bool { return isStatus(err, http.StatusConflict) }

// IsForbidden reports whether the agent's role in the store does not allow the
// request.
func IsForbidden(err error) bool { return isStatus(err, http.StatusForbidden) }

func isStatus(err error, status int) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == status
}

// refusal reads the agent's error from a response.
func refusal(r *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("read the agent's refusal of %s %s (%s): %w", r.Request.Method, r.Request.URL.Path, r.Status, err)
	}
	var body struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(text, &body) == nil && body.Error != "" {
		if strings.HasPrefix(body.Error, "read the request: unknown field ") || strings.HasPrefix(body.Error, "the API has no ") {
			body.Error += "; this command and the agent have different versions: restart the agent with the version of this command, and retry"
		}
		return &Error{Status: r.StatusCode, Text: body.Error}
	}
	detail := strings.TrimSpace(string(text))
	if len(detail) > 200 {
		detail = detail[:200] + "…"
	}
	return &Error{Status: r.StatusCode, Text: fmt.Sprintf("the agent answered %s %s with %s: %s; agent and command may have different versions, see `vrouter status`",
		r.Request.Method, r.Request.URL.Path, r.Status, detail)}
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// unreachable says why no answer came, and what to do.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // removes "Get http://vrouter/…", which means nothing to users
	}
	switch {
	case isTimeout(err):
		return &Unreachable{fmt.Sprintf("the agent at %s did not answer within %s; packets keep flowing. The agent may be stopped or busy: see its log, or wait longer with --timeout", c.socket, c.http.Timeout), err}
	case errors.Is(err, fs.ErrNotExist):
		return &Unreachable{"no agent listens on " + c.socket + "; start one with `vrouter agent --config NODE.yaml`", err}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &Unreachable{"the agent at " + c.socket + " ended without removing its socket; packets keep flowing; restart the agent with `vrouter agent --config NODE.yaml`", err}
	case errors.Is(err, fs.ErrPermission):
		return &Unreachable{"connect to the agent at " + c.socket + ": permission denied; use sudo", err}
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return &Unreachable{"the agent at " + c.socket + " ended before it answered; see its log, then retry", err}
	}
	return &Unreachable{fmt.Sprintf("connect to the agent at %s: %v", c.socket, err), err}
}
