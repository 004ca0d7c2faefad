package k8s

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// client asks the API server as the service account of its pod.
type client struct {
	base  string
	token string // path of the file, which the kubelet renews
	http  *http.Client
}

const (
	accountDir     = "/var/run/secrets/kubernetes.io/serviceaccount"
	requestTimeout = 10 * time.Second
	watchTime      = 5 * time.Minute
)

// inCluster returns the client of a pod.
func inCluster() (*client, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" {
		return nil, errors.New("this command runs in a pod that `vrouter k8s manifest` describes: KUBERNETES_SERVICE_HOST is not set")
	}
	ca, err := os.ReadFile(filepath.Join(accountDir, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("read the pod's service account: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &client{
		base: "https://" + net.JoinHostPort(host, port), token: filepath.Join(accountDir, "token"),
		http: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}},
	}, nil
}

// refusal is an error status of the API server. The message of a missing permission names its verb.
type refusal struct {
	Code    int
	Message string
}

func (r *refusal) Error() string {
	if r.Code == http.StatusForbidden {
		return r.Message + "; apply the output of `vrouter k8s manifest` again"
	}
	return r.Message
}

// isCode reports whether the API server refused a request with one of the codes.
func isCode(err error, codes ...int) bool {
	var r *refusal
	for _, c := range codes {
		if errors.As(err, &r) && r.Code == c {
			return true
		}
	}
	return false
}

// open sends a request. The caller closes the body of the answer.
func (c *client) open(ctx context.Context, method, path, kind string, body any) (io.ReadCloser, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	token, err := os.ReadFile(c.token)
	if err != nil {
		return nil, fmt.Errorf("read the pod's token: %w", err)
	}
	r.Header.Set("Authorization", "Bearer "+string(bytes.TrimSpace(token)))
	r.Header.Set("Content-Type", kind)
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("the API server does not answer: %w", err)
	}
	if answer.StatusCode < 300 {
		return answer.Body, nil
	}
	defer answer.Body.Close()
	said := refusal{Code: answer.StatusCode, Message: answer.Status}
	_ = json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(&said) // another body: the status says enough
	said.Code = answer.StatusCode
	return nil, fmt.Errorf("%s %s: %w", method, path, &said)
}

// get reads an object.
func (c *client) get(ctx context.Context, path string, into any) error {
	return c.ask(ctx, http.MethodGet, path, "application/json", nil, into)
}

// ask sends a request and decodes the answer.
func (c *client) ask(ctx context.Context, method, path, kind string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err := c.open(ctx, method, path, kind, body)
	if err != nil {
		return err
	}
	defer answer.Close()
	if into == nil {
		return nil
	}
	return json.NewDecoder(answer).Decode(into)
}

// object has the fields of all objects.
type object struct {
	Metadata struct {
		Name              string            `json:"name"`
		Annotations       map[string]string `json:"annotations,omitempty"`
		DeletionTimestamp *time.Time        `json:"deletionTimestamp,omitempty"`
	} `json:"metadata"`
}

// watchDeleted calls deleted when an object of a collection is being deleted, until ctx ends.
// The API server checks the pod's permission only when a watch begins, so a watch goes on while
// the permissions are deleted.
func (c *client) watchDeleted(ctx context.Context, collection, name string, deleted func()) {
	path := collection + "?" + url.Values{
		"watch": {"true"}, "fieldSelector": {"metadata.name=" + name}, "timeoutSeconds": {fmt.Sprint(int(watchTime.Seconds()))},
	}.Encode()
	for ctx.Err() == nil {
		if answer, err := c.open(ctx, http.MethodGet, path, "application/json", nil); err == nil {
			events := json.NewDecoder(answer)
			for {
				var e struct {
					Type   string
					Object object
				}
				if events.Decode(&e) != nil {
					break
				}
				if e.Type == "DELETED" || e.Object.Metadata.DeletionTimestamp != nil {
					deleted()
				}
			}
			answer.Close()
		}
		pause(ctx)
	}
}

// lookPause is the time between two attempts.
const lookPause = time.Second

// pause waits, and reports whether ctx goes on.
func pause(ctx context.Context) bool {
	select {
	case <-time.After(lookPause):
		return true
	case <-ctx.Done():
		return false
	}
}
