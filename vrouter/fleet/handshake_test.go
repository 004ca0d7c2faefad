package fleet

import (
	"bytes"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/store"
	"windtunnel/vrouter/store/storetest"
)

// A member is down for a while, starts with an expired certificate, and later has a valid one. The status
// and the log name the certificate, although the first error is another one.
func TestAnExpiredCertificateOfTheStoreIsNamed(t *testing.T) {
	t.Parallel()
	files := storetest.NewClusterCertificates(t)
	c := storetest.Start(t, 1, files)
	address := must.Get(store.ParseAddress("etcd://" + c.Endpoints()))(t)
	s := must.Get(store.OpenEtcd(address, store.TLS{CA: files.CA, Cert: files.ClientCert, Key: files.ClientKey}, c.Dial))(t)
	defer s.Close()
	var log bytes.Buffer // written with the lock of the fleet
	f := followWith(t, s, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	apply(t, f, small())
	files.Until = time.Now().Add(-time.Minute)
	files.Server(t, c.Members[0].Address)
	c.Kill(0)
	must.Succeed(t, f.await(ctx(t), func() bool { return f.problem != nil }))
	c.StartMember(0)
	named := func() bool {
		return f.problem != nil && strings.Contains(f.problem.Error(), "expired") && strings.Contains(log.String(), "expired")
	}
	if err := f.await(ctx(t), named); err != nil {
		t.Errorf("the status or the log does not say that the certificate is expired: %v\n%s", err, &log)
	}
	files.Until = time.Time{}
	files.Server(t, c.Members[0].Address)
	must.Succeed(t, f.Reach(ctx(t)))
}

// When a store answers for the first time, the log says for how long it had been silent: since the start.
func TestTheLogSaysHowLongTheStoreWasSilentSinceTheStart(t *testing.T) {
	var log bytes.Buffer
	f := New(nil, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	f.setProblem(errors.New("no connection"))
	f.noteAnswer()
	m := regexp.MustCompile(`reachable again" silent_for=(\S+)`).FindStringSubmatch(log.String())
	if m == nil {
		t.Fatalf("the log does not say for how long the store was silent: %s", &log)
	}
	if silent := must.Get(time.ParseDuration(m[1]))(t); silent > time.Minute {
		t.Errorf("the log says that the store was silent for %v, but this test has just begun", silent)
	}
}
