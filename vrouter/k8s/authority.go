package k8s

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// authority signs the certificates of the store and of its clients. Its key stays in the directory
// of the store.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte // of the certificate
}

// lifetime of certificates. The store and the nodes get new ones each time they start.
const lifetime = 10 * 365 * 24 * time.Hour

// pair is a certificate and its key, PEM.
type pair struct{ cert, key []byte }

// openAuthority reads the authority in a directory, or makes one there.
func openAuthority(dir string) (*authority, error) {
	certFile, keyFile := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca-key.pem")
	text, err := os.ReadFile(keyFile)
	if errors.Is(err, fs.ErrNotExist) {
		made, err := sign(nil, "vrouter store")
		if err == nil {
			err = os.WriteFile(certFile, made.cert, 0o600)
		}
		if err == nil { // the key is written last: if it is there, both files are complete
			err = os.WriteFile(keyFile+".new", made.key, 0o600)
		}
		if err == nil {
			err = os.Rename(keyFile+".new", keyFile)
		}
		if err != nil {
			return nil, fmt.Errorf("make the certificate authority of the store: %w", err)
		}
		text = made.key
	} else if err != nil {
		return nil, fmt.Errorf("read the certificate authority of the store: %w", err)
	}
	a := &authority{}
	if a.pem, err = os.ReadFile(certFile); err != nil {
		return nil, fmt.Errorf("read the certificate authority of the store: %w", err)
	}
	cert, _ := pem.Decode(a.pem)
	key, _ := pem.Decode(text)
	if cert == nil || key == nil {
		return nil, fmt.Errorf("read the certificate authority of the store: %s or %s has no PEM block; restore the files from a backup", certFile, keyFile)
	}
	var err2 error
	a.certificate, err = x509.ParseCertificate(cert.Bytes)
	a.key, err2 = x509.ParseECPrivateKey(key.Bytes)
	if err := errors.Join(err, err2); err != nil {
		return nil, fmt.Errorf("read the certificate authority of the store in %s: %w; restore the files from a backup", dir, err)
	}
	return a, nil
}

// sign makes a key, and a certificate for a user, and for the addresses of a server. Without an
// authority it makes one.
func sign(by *authority, name string, addresses ...string) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	private, err := encodeKey(key)
	if err != nil {
		return pair{}, err
	}
	if by == nil {
		by = &authority{key: key}
	}
	cert, err := by.certify(name, &key.PublicKey, addresses...)
	return pair{cert, private}, err
}

// certify makes a certificate, PEM, for the key of a user, and for the addresses of a server. An
// authority without a certificate makes its own.
func (a *authority) certify(name string, key any, addresses ...string) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	form := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, BasicConstraintsValid: true,
		// An hour earlier than now: the clocks of nodes differ.
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, text := range addresses {
		form.IPAddresses = append(form.IPAddresses, net.ParseIP(text))
	}
	parent := a.certificate
	if parent == nil {
		form.IsCA, form.KeyUsage, form.ExtKeyUsage = true, x509.KeyUsageCertSign, nil
		parent = form
	}
	raw, err := x509.CreateCertificate(rand.Reader, form, parent, key, a.key)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), err
}

// encodeKey returns a key as PEM.
func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	raw, err := x509.MarshalECPrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw}), err
}

// write writes the authority's certificate and a pair into a directory.
func (p pair) write(dir, name string) (cert, key string, err error) {
	cert, key = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+"-key.pem")
	return cert, key, errors.Join(os.WriteFile(cert, p.cert, 0o600), os.WriteFile(key, p.key, 0o600))
}
