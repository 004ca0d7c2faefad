package k8s

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"windtunnel/internal/must"
)

// A pod gets a certificate with the name of its own node only, and for the key that it made.
func TestAPodGetsTheCertificateOfItsNode(t *testing.T) {
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	request := func(node string) []byte {
		raw := must.Get(x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: node}}, key))(t)
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: raw})
	}
	block, _ := pem.Decode(request("n1"))
	block.Bytes[len(block.Bytes)-1] ^= 1 // of the signature
	forged := pem.EncodeToMemory(block)
	const account = "system:serviceaccount:vrouter:vrouter-node"
	for _, c := range []struct {
		name, user, pod, uid string
		request              []byte
		want                 string // part of the error
	}{
		{"own node", account, "p1", "u1", request("n1"), ""},
		{"another node", account, "p1", "u1", request("n2"), "a pod of node n1 asks for the certificate of node n2"},
		{"another account", "system:serviceaccount:red:default", "p1", "u1", request("n1"), "is not " + account},
		{"a pod that was replaced", account, "p1", "u0", request("n1"), "that exists now"},
		{"a token without a pod", account, "", "", request("n1"), "no such pod"},
		{"a pod without a UID in its token", account, "p1", "", request("n1"), "that exists now"},
		{"no PEM", account, "p1", "u1", []byte("x"), "no PEM block"},
		{"a changed request", account, "p1", "u1", forged, "x509"},
	} {
		r := &certificatesv1.CertificateSigningRequest{}
		r.Spec.Request, r.Spec.Username = c.request, c.user
		r.Spec.Extra = map[string]certificatesv1.ExtraValue{}
		if c.pod != "" {
			r.Spec.Extra["authentication.kubernetes.io/pod-name"] = certificatesv1.ExtraValue{c.pod}
			r.Spec.Extra["authentication.kubernetes.io/pod-uid"] = certificatesv1.ExtraValue{c.uid}
		}
		node, public, err := requestedNode(r, func(name string) (*corev1.Pod, error) {
			if name != "p1" {
				return nil, errors.New("no such pod")
			}
			pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1"}}
			pod.Name, pod.UID = "p1", "u1"
			return pod, nil
		})
		if c.want == "" {
			if err != nil || node != "n1" || !key.PublicKey.Equal(public) {
				t.Errorf("%s: node %q, error %v; want n1 and the request's key", c.name, node, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}
