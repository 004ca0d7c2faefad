package store

import (
	"slices"
	"testing"

	"windtunnel/internal/must"
)

func TestAnAddressIsReadAndWrittenWithoutItsPassword(t *testing.T) {
	for text, want := range map[string]struct {
		is        string
		endpoints []string
	}{
		"":                                     {"file", nil},
		"file":                                 {"file", nil},
		"embedded":                             {"embedded", nil},
		"etcd://10.0.0.1:2379,10.0.0.2":        {"etcd://10.0.0.1:2379,10.0.0.2:2379", []string{"https://10.0.0.1:2379", "https://10.0.0.2:2379"}},
		"etcd+insecure://[fd00::1]:1/blue":     {"etcd+insecure://[fd00::1]:1/blue", []string{"http://[fd00::1]:1"}},
		"etcd://me:se%40cret@etcd.example/":    {"etcd://etcd.example:2379", []string{"https://etcd.example:2379"}},
		"etcd+insecure://fd00::1":              {"etcd+insecure://[fd00::1]:2379", []string{"http://[fd00::1]:2379"}},
		"etcd://a.example:2379,b.example/x/y/": {"etcd://a.example:2379,b.example:2379/x/y", []string{"https://a.example:2379", "https://b.example:2379"}},
	} {
		a, err := ParseAddress(text)
		if err != nil || a.String() != want.is || !slices.Equal(a.Endpoints, want.endpoints) {
			t.Errorf("the address %q is %v with endpoints %v (%v), want %s with %v", text, a, a.Endpoints, err, want.is, want.endpoints)
		}
	}
	if a, _ := ParseAddress("etcd://me:se%40cret@etcd.example"); a.User != "me" || a.Password != "se@cret" {
		t.Errorf("user %q, password %q", a.User, a.Password)
	}
}

func TestAnInvalidAddressIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"consul://a":    `unknown store "consul://a"; write file, embedded, or etcd://`,
		"10.0.0.1:2379": "unknown store",
		"etcd://":       "has an empty entry",
		"etcd://a,,b":   "has an empty entry",
		"etcd://a:0":    "is not a number from 1 to 65535",
		"etcd://a:x":    "is not a number from 1 to 65535",
		"etcd://a:b:c":  "in brackets",
		"etcd://%zz@a":  "user and password",
	} {
		_, err := ParseAddress(text)
		must.Fail(t, err, want)
	}
}
