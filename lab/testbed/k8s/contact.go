package k8s

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// place names the API server, and where its address comes from.
func (c *cluster) place() string { return fmt.Sprintf("API server %s (%s)", c.server, c.origin) }

// contactError adds the API server and a remedy to the error of a request. It is for the first
// requests to a cluster: the kubeconfig, the context or the user can be wrong.
func (c *cluster) contactError(ctx context.Context, attempt string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%s at %s: %w; %s", attempt, c.place(), err, contactRemedy(err))
}

// contactRemedy returns what a person can do about a failed request.
func contactRemedy(err error) string {
	const another = "or choose another cluster by --kubeconfig and --context"
	const renew = "renew the credentials of this context, " + another
	f := &failure{}
	errors.As(err, &f)
	switch said := f.Message; {
	case f.Code == http.StatusUnauthorized, strings.Contains(said, "getting credentials"), strings.Contains(said, "credential plugin"):
		return renew
	case f.Code == http.StatusForbidden:
		return renew + "; an administrator grants permissions with: " + grantCommand
	case strings.Contains(said, "x509: "):
		return "correct the certificate-authority in the kubeconfig, " + another
	case f.Code == 0, f.Code >= http.StatusInternalServerError, f.Code == http.StatusTooManyRequests:
		return "check that the API server runs and that this machine reaches it, " + another
	}
	return "no API server of Kubernetes answers there: correct the server in the kubeconfig, " + another
}
