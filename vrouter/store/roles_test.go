package store

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"windtunnel/vrouter/store/storetest"
)

// clusterCertificates are for a cluster with one member.
func clusterCertificates(t *testing.T) *storetest.Certificates {
	t.Helper()
	var addresses []string
	for i := range 250 {
		addresses = append(addresses, fmt.Sprintf("198.19.%d.1", i))
	}
	return storetest.NewCertificates(t, addresses...)
}

// Roles of an etcd that does not recognise certificates would lock all clients out. So
// EnableRoles undoes its change.
func TestRolesAreNotEnabledWithoutCertificates(t *testing.T) {
	t.Parallel()
	files := clusterCertificates(t)
	files.Anonymous = true
	c := storetest.Start(t, 1, files)
	a, err := ParseAddress("etcd://" + c.Endpoints())
	if err != nil {
		t.Fatal(err)
	}
	cert, key := files.Client(t, "admin")
	tls := TLS{CA: files.CA, Cert: cert, Key: key}
	admin, err := OpenAdmin(a, tls, c.Dial)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	ctx := context.Background()
	if err := admin.EnableRoles(ctx, "admin"); err == nil || !strings.Contains(err.Error(), "--client-cert-auth") {
		t.Errorf("EnableRoles: %v", err)
	}
	if on, err := admin.RolesEnabled(ctx); err != nil || on {
		t.Errorf("roles are enabled: %v, %v", on, err)
	}
	if users, err := admin.client.UserList(ctx); err != nil || strings.Contains(fmt.Sprint(users.Users), trialUser) {
		t.Errorf("users %v, %v", users.Users, err)
	}
	commit(t, admin, Commit{Put: put("a", "1")})
}

// Keys of other programs are noticed, so that init does not lock out their clients.
func TestKeysOfOtherProgramsAreNoticed(t *testing.T) {
	t.Parallel()
	files := clusterCertificates(t)
	c := storetest.Start(t, 1, files)
	a, err := ParseAddress("etcd://" + c.Endpoints())
	if err != nil {
		t.Fatal(err)
	}
	cert, key := files.Client(t, "admin")
	tls := TLS{CA: files.CA, Cert: cert, Key: key}
	if name, err := tls.CommonName(); err != nil || name != "admin" {
		t.Errorf("common name %q, %v", name, err)
	}
	admin, err := OpenAdmin(a, tls, c.Dial)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	commit(t, admin, Commit{Put: put("a", "1")})
	ctx := context.Background()
	if others, err := admin.HasOthers(ctx); err != nil || others {
		t.Errorf("others %v, %v", others, err)
	}
	if _, err := admin.client.Put(ctx, "/registry/x", "1"); err != nil {
		t.Fatal(err)
	}
	if others, err := admin.HasOthers(ctx); err != nil || !others {
		t.Errorf("with another program's key: others %v, %v", others, err)
	}
	for _, text := range []string{"etcd+insecure://10.0.0.1", "embedded", "file"} {
		a, err := ParseAddress(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := OpenAdmin(a, tls, nil); err == nil {
			t.Errorf("%s has roles", text)
		}
	}
}
