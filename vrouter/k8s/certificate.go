package k8s

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net/http"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// signerName names the signer of the nodes' certificates, which is the store's pod.
const signerName = "vrouter.internal/node"

const requestsPath = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

// certificateWait is the maximum time to wait for a certificate.
const certificateWait = 10 * time.Second

// certificateRequest is a node's request for a certificate.
type certificateRequest struct {
	node string
	name string // of the object; "": there is none
	key  []byte // PEM
}

// certificate waits for the certificate. If it does not come in time, the next call waits for the
// same one. The name of its user is the node's.
func (r *certificateRequest) certificate(ctx context.Context, c *client) (pair, error) {
	ctx, cancel := context.WithTimeout(ctx, certificateWait)
	defer cancel()
	if r.name == "" {
		if err := r.create(ctx, c); err != nil {
			return pair{}, err
		}
	}
	for {
		var is certificatesv1.CertificateSigningRequest
		if err := c.get(ctx, requestsPath+"/"+r.name, &is); err != nil {
			if isCode(err, http.StatusNotFound) {
				r.name = ""
			}
			return pair{}, err
		}
		if len(is.Status.Certificate) > 0 {
			return pair{is.Status.Certificate, r.key}, nil
		}
		if d := condition(&is, certificatesv1.CertificateDenied); d != nil {
			r.name = ""
			return pair{}, fmt.Errorf("the store gives this node no certificate: %s; see `kubectl describe csr %s`", d.Message, is.Name)
		}
		if !pause(ctx) {
			return pair{}, fmt.Errorf("the store has not answered the request %s within %v; see `kubectl -n %s logs -l app=%s`", r.name, certificateWait, Namespace, StoreName)
		}
	}
}

// create makes a key, and asks for its certificate.
func (r *certificateRequest) create(ctx context.Context, c *client) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	raw, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: r.node}}, key)
	if err != nil {
		return err
	}
	if r.key, err = encodeKey(key); err != nil {
		return err
	}
	made := certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: NodeName + "-" + r.node + "-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: raw}), SignerName: signerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
	err = c.ask(ctx, http.MethodPost, requestsPath, "application/json", made, &made)
	r.name = made.Name
	return err
}

func condition(r *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType) *certificatesv1.CertificateSigningRequestCondition {
	for i, is := range r.Status.Conditions {
		if is.Type == kind {
			return &r.Status.Conditions[i]
		}
	}
	return nil
}

// requestedNode returns the public key of a request, and the name of the node whose pod made it. It returns an error if
// another client made the request, or asks for the name of another node. The API server writes
// the user and the pod of the request's token into the request.
func requestedNode(r *certificatesv1.CertificateSigningRequest, find func(name string) (*corev1.Pod, error)) (node string, key any, err error) {
	block, _ := pem.Decode(r.Spec.Request)
	if block == nil {
		return "", nil, fmt.Errorf("the request has no PEM block")
	}
	form, err := x509.ParseCertificateRequest(block.Bytes)
	if err == nil {
		err = form.CheckSignature()
	}
	if err != nil {
		return "", nil, err
	}
	if account := "system:serviceaccount:" + Namespace + ":" + NodeName; r.Spec.Username != account {
		return "", nil, fmt.Errorf("the user %s is not %s", r.Spec.Username, account)
	}
	extra := func(key string) string {
		return cmp.Or(append(r.Spec.Extra["authentication.kubernetes.io/"+key], "")...)
	}
	pod, err := find(extra("pod-name"))
	if err != nil {
		return "", nil, err
	}
	if uid := extra("pod-uid"); uid == "" || string(pod.UID) != uid {
		return "", nil, fmt.Errorf("the token of the request is not of the pod %s that exists now", pod.Name)
	}
	if node = form.Subject.CommonName; pod.Spec.NodeName != node {
		return "", nil, fmt.Errorf("a pod of node %s asks for the certificate of node %s", pod.Spec.NodeName, node)
	}
	return node, form.PublicKey, nil
}
