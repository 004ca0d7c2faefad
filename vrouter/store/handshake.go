package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/credentials"
)

// ErrHandshake is wrapped by the errors of a store whose certificate, or the client's, is refused.
var ErrHandshake = errors.New("TLS handshake")

// handshakes are credentials that note why the last TLS handshake failed. The errors of etcd's client
// only say that a deadline has passed.
type handshakes struct {
	credentials.TransportCredentials
	note func(error)
}

// ClientHandshake notes its error.
func (h handshakes) ClientHandshake(ctx context.Context, name string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	member := raw.RemoteAddr()
	conn, info, err := h.TransportCredentials.ClientHandshake(ctx, name, raw)
	if err != nil {
		h.note(handshakeError(member, err))
		return nil, nil, err
	}
	return &firstRead{Conn: conn, note: func(err error) { h.note(handshakeError(member, err)) }}, info, nil
}

// Clone is called once per connection.
func (h handshakes) Clone() credentials.TransportCredentials {
	return handshakes{h.TransportCredentials.Clone(), h.note}
}

// firstRead notes whether the first read returns data or the server's refusal. In TLS 1.3, a server
// verifies the client's certificate after the client has completed the handshake (RFC 8446, section 2).
type firstRead struct {
	net.Conn
	note func(error)
	once sync.Once
}

func (c *firstRead) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.once.Do(func() {
		if err == nil || isRefusal(err) {
			c.note(err)
		}
	})
	return n, err
}

// Write reads the refusal if a write fails, because gRPC then closes the connection, possibly before it
// reads.
func (c *firstRead) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err != nil {
		c.SetReadDeadline(time.Now().Add(time.Second))
		c.Read(make([]byte, 1))
	}
	return n, err
}

// isRefusal reports whether the server sent an alert.
func isRefusal(err error) bool {
	var remote *net.OpError
	return errors.As(err, &remote) && remote.Op == "remote error" // as crypto/tls writes it
}

// handshakeError adds the member and the remedy to an error of a TLS handshake.
func handshakeError(member net.Addr, err error) error {
	var (
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
		record  tls.RecordHeaderError
		remedy  string
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unknown):
		remedy = "store_tls.ca must have the CA certificate of the members"
	case errors.As(err, &name):
		remedy = "the certificate of the member must have the address or the name that `store` has"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		remedy = "renew the certificate of the member, or set this node's clock"
	case errors.As(err, &record), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		remedy = "if the member serves without TLS, write etcd+insecure:// in `store`"
	case isRefusal(err):
		err = fmt.Errorf("the member refuses this client's certificate: %w", err)
		remedy = "store_tls.cert must be signed by a CA that the member trusts, and be valid by the member's clock"
	}
	err = fmt.Errorf("%w with %s: %w", ErrHandshake, member, err)
	if remedy != "" {
		err = fmt.Errorf("%w; %s", err, remedy)
	}
	return err
}
