package k8s

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	api "k8s.io/apimachinery/pkg/api/errors"
)

// place names the API server, and where its address comes from.
func (c *cluster) place() string { return fmt.Sprintf("API server %s (%s)", c.server, c.origin) }

// contactError adds the API server and a remedy to the error of a request. It is for the first
// requests to a cluster: the kubeconfig, the context or the user can be wrong.
func (c *cluster) contactError(ctx context.Context, attempt string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	remedy := contactRemedy(err)
	if network := new(url.Error); errors.As(err, &network) {
		err = network.Err // without the URL, which the place has
	}
	return fmt.Errorf("%s at %s: %w; %s", attempt, c.place(), err, remedy)
}

// contactRemedy returns what a person can do about a failed request.
func contactRemedy(err error) string {
	const another = "or choose another cluster by --kubeconfig and --context"
	const renew = "renew the credentials of this context, " + another
	var certificate *tls.CertificateVerificationError
	var network *url.Error
	switch code := codeOf(err); {
	case code == http.StatusUnauthorized, strings.Contains(err.Error(), "getting credentials"): // by a plugin
		return renew
	case code == http.StatusForbidden:
		return renew + "; an administrator grants permissions with: " + grantCommand
	case errors.As(err, &certificate):
		return "correct the certificate-authority in the kubeconfig, " + another
	case errors.As(err, &network), code >= http.StatusInternalServerError, code == http.StatusTooManyRequests:
		return "check that the API server runs and that this machine reaches it, " + another
	}
	return "no API server of Kubernetes answers there: correct the server in the kubeconfig, " + another
}

// codeOf returns the HTTP status in the error of a request; 0 if no API server answered.
func codeOf(err error) int {
	var status api.APIStatus
	if errors.As(err, &status) {
		return int(status.Status().Code)
	}
	return 0
}
