package storetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"windtunnel/internal/lists"
	"windtunnel/internal/must"
)

// Certificates are the files of a certificate authority and of the certificates
// that it has signed.
type Certificates struct {
	CA                    string
	ServerCert, ServerKey string
	ClientCert, ClientKey string
	// Anonymous makes the servers ignore the user names in client certificates.
	Anonymous bool
	// Until is the end of the certificates that Client and Server sign; zero: in an hour.
	Until time.Time

	dir    string
	caKey  *ecdsa.PrivateKey
	caCert *x509.Certificate
}

// Client makes a client certificate with a common name. It returns the names of the
// certificate's file and the key's file.
func (c *Certificates) Client(tb testing.TB, name string) (cert, key string) {
	tb.Helper()
	return c.sign(tb, name, nil)
}

// Server replaces the server certificate by one for addresses. A running member uses it in the next
// handshake.
func (c *Certificates) Server(tb testing.TB, addresses ...string) {
	tb.Helper()
	ips := lists.Map(addresses, net.ParseIP)
	c.ServerCert, c.ServerKey = c.sign(tb, "server", ips)
}

// NewCertificates makes an authority, a server certificate for addresses, and a
// client certificate.
func NewCertificates(tb testing.TB, addresses ...string) *Certificates {
	tb.Helper()
	dir := tb.TempDir()
	key, ca := authority(tb)
	c := &Certificates{CA: filepath.Join(dir, "ca.pem"), dir: dir, caKey: key, caCert: ca}
	write(tb, c.CA, "CERTIFICATE", ca.Raw)
	c.Server(tb, addresses...)
	c.ClientCert, c.ClientKey = c.Client(tb, "client")
	return c
}

// NewClusterCertificates makes certificates for a cluster with one member. The server
// certificate has the member's address in every cluster that Start can make.
func NewClusterCertificates(tb testing.TB) *Certificates {
	tb.Helper()
	var addresses []string
	for number := range mostClusters {
		addresses = append(addresses, fmt.Sprintf(network, number, 1))
	}
	return NewCertificates(tb, addresses...)
}

func authority(tb testing.TB) (*ecdsa.PrivateKey, *x509.Certificate) {
	tb.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(tb)
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	raw := must.Get(x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key))(tb)
	ca := must.Get(x509.ParseCertificate(raw))(tb)
	return key, ca
}

func (c *Certificates) sign(tb testing.TB, name string, ips []net.IP) (certFile, keyFile string) {
	tb.Helper()
	until := c.Until
	if until.IsZero() {
		until = time.Now().Add(time.Hour)
	}
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(tb)
	form := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, IPAddresses: ips,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	raw := must.Get(x509.CreateCertificate(rand.Reader, form, c.caCert, &key.PublicKey, c.caKey))(tb)
	encoded := must.Get(x509.MarshalECPrivateKey(key))(tb)
	certFile, keyFile = filepath.Join(c.dir, name+".pem"), filepath.Join(c.dir, name+"-key.pem")
	write(tb, certFile, "CERTIFICATE", raw)
	write(tb, keyFile, "EC PRIVATE KEY", encoded)
	return certFile, keyFile
}

func write(tb testing.TB, path, kind string, raw []byte) {
	tb.Helper()
	must.Succeed(tb, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600))
}
