package testcluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"strings"
	"time"

	"windtunnel/internal/must"
)

func (k *Cluster) startMaster() {
	clients := "http://127.0.0.1:2379,http://" + net.JoinHostPort(k.masterIP(), "2379")
	k.run("etcd", "--data-dir", k.Path("etcd"), "--unsafe-no-fsync", "--log-level", "error", "--listen-client-urls", clients, "--advertise-client-urls", clients)
	k.StartServer()
	if k.options.ServerOnly {
		k.Await("the API server answers", k.Answers)
		return
	}
	var subnets []string
	if k.options.Subnets {
		subnets = []string{"--allocate-node-cidrs", "--cluster-cidr", k.both(PodNetwork, PodNetwork6)}
	}
	k.Controllers = k.run("kube-controller-manager", append(subnets, "--kubeconfig", k.Path("kubeconfig"), "--leader-elect=false", "--service-account-private-key-file", k.Path("account.key"),
		"--root-ca-file", k.Path("ca.crt"), "--use-service-account-credentials=false", "--bind-address", "127.0.0.1", "--authentication-skip-lookup")...)
	k.run("kube-scheduler", "--kubeconfig", k.Path("kubeconfig"), "--leader-elect=false", "--bind-address", "127.0.0.1", "--secure-port", "0")
	k.Await("the API server answers", k.Answers)
}

// Answers reports whether the API server answers.
func (k *Cluster) Answers() bool {
	_, err := k.Kubectl("", "get", "--raw", "/readyz")
	return err == nil
}

// writeKeys writes the certificates, the tokens and the kubeconfigs.
func (k *Cluster) writeKeys() {
	t := k.T
	authority, authorityKey := k.certificate("ca", nil, nil)
	k.certificate("server", authority, authorityKey)
	account, err := rsa.GenerateKey(rand.Reader, 2048)
	must.Succeed(t, err)
	k.Write("account.key", string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(account)})))
	k.Write("tokens", AdminToken+",admin,1,system:masters\n"+LimitedToken+",limited,2\n")
	k.Write("audit.yaml", auditPolicy)
	k.Write("kubeconfig", k.kubeconfig(AdminToken))
	k.Write("limited", k.kubeconfig(LimitedToken))
}

// certificate makes a certificate. Without a parent it is an authority.
func (k *Cluster) certificate(name string, parent *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t := k.T
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.Succeed(t, err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.ParseIP(MasterAddress), net.ParseIP(masterAddress6), net.ParseIP("127.0.0.1"), net.ParseIP("10.96.0.1"), net.ParseIP("fd00:96::1")},
	}
	if parent == nil {
		c.IsCA, c.KeyUsage, c.IPAddresses, c.ExtKeyUsage = true, x509.KeyUsageCertSign, nil, nil
		parent, by = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
	must.Succeed(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must.Succeed(t, err)
	k.Write(name+".crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	k.Write(name+".key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	made, err := x509.ParseCertificate(der)
	must.Succeed(t, err)
	return made, key
}

func (k *Cluster) kubeconfig(token string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "https://%s", certificate-authority: %s}}]
users: [{name: user, user: {token: %s}}]
contexts: [{name: test, context: {cluster: test, user: user}}]
current-context: test
`, k.API(), k.Path("ca.crt"), token)
}

// auditPolicy makes the API server log the programs that are started in pods.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: Metadata
  resources: [{group: "", resources: [pods/exec]}]
- level: None
`

// StartServer starts the API server, with further options.
func (k *Cluster) StartServer(options ...string) {
	k.Server = k.run("kube-apiserver", append(options, "--etcd-servers", "http://127.0.0.1:2379", "--service-cluster-ip-range", k.both(ServiceNetwork, serviceNetwork6), "--advertise-address", k.masterIP(),
		"--bind-address", k.everyAddress(), "--tls-cert-file", k.Path("server.crt"), "--tls-private-key-file", k.Path("server.key"), "--token-auth-file", k.Path("tokens"),
		"--authorization-mode", "RBAC", "--anonymous-auth=false", "--allow-privileged=true", "--kubelet-preferred-address-types", "InternalIP",
		"--audit-policy-file", k.Path("audit.yaml"), "--audit-log-path", k.Path("audit.log"), "--service-account-issuer", "https://test", "--service-account-key-file", k.Path("account.key"), "--service-account-signing-key-file", k.Path("account.key"))...)
}

// Execs returns the number of programs that were started in pods by requests with a verb: get
// for WebSocket, create for SPDY.
func (k *Cluster) Execs(verb string) (n int) {
	text, err := os.ReadFile(k.Path("audit.log"))
	must.Succeed(k.T, err)
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, `"verb":"`+verb+`"`) && strings.Contains(line, `"code":101`) {
			n++
		}
	}
	return n
}
