package store

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"windtunnel/vrouter/store/storetest"
)

// openAdmin starts a cluster and connects to it as the user admin.
func openAdmin(t *testing.T, files *storetest.Certificates) (*Admin, TLS) {
	t.Helper()
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
	return admin, tls
}

// If etcd ignores client certificates, enabled roles would lock out all clients. So
// EnableRoles must disable them again.
func TestRolesAreNotEnabledWithoutCertificates(t *testing.T) {
	t.Parallel()
	files := storetest.NewClusterCertificates(t)
	files.Anonymous = true
	admin, _ := openAdmin(t, files)
	ctx := context.Background()
	if err := admin.EnableRoles(ctx, "admin"); err == nil || !strings.Contains(err.Error(), "--client-cert-auth") {
		t.Errorf("EnableRoles: error %v, want one that names --client-cert-auth", err)
	}
	if on, err := admin.RolesEnabled(ctx); err != nil || on {
		t.Errorf("after EnableRoles has failed: RolesEnabled returns %v, %v, want false", on, err)
	}
	if users, err := admin.client.UserList(ctx); err != nil || strings.Contains(fmt.Sprint(users.Users), trialUser) {
		t.Errorf("after EnableRoles has failed: users %v, error %v, want no user %s", users.Users, err, trialUser)
	}
	commit(t, admin, Commit{Put: put("a", "1")})
}

// HasForeignKeys finds keys of other programs, so that `vrouter store init` does not
// lock out their clients.
func TestKeysOfOtherProgramsAreNoticed(t *testing.T) {
	t.Parallel()
	admin, tls := openAdmin(t, storetest.NewClusterCertificates(t))
	if name, err := tls.CommonName(); err != nil || name != "admin" {
		t.Errorf("common name %q, %v, want \"admin\"", name, err)
	}
	commit(t, admin, Commit{Put: put("a", "1")})
	ctx := context.Background()
	if foreign, err := admin.HasForeignKeys(ctx); err != nil || foreign {
		t.Errorf("with keys of the fleet alone: HasForeignKeys returns %v, %v, want false", foreign, err)
	}
	if _, err := admin.client.Put(ctx, "/registry/x", "1"); err != nil {
		t.Fatal(err)
	}
	if foreign, err := admin.HasForeignKeys(ctx); err != nil || !foreign {
		t.Errorf("with another program's key: HasForeignKeys returns %v, %v, want true", foreign, err)
	}
	for _, text := range []string{"etcd+insecure://10.0.0.1", "embedded", "file"} {
		a, err := ParseAddress(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := OpenAdmin(a, tls, nil); err == nil {
			t.Errorf("OpenAdmin of %s succeeds, but this store has no roles", text)
		}
	}
}
