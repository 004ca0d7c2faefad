package k8s

import (
	"context"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"windtunnel/internal/must"
)

// aRun is a run that began and was last renewed some time ago, in whole seconds: the API
// stores creation times in seconds.
type aRun struct {
	name           string
	began, renewed time.Duration // ago
	holder         holder        // zero: a host elsewhere
	noLease        bool
	leaves         bool
}

func (a aRun) run() otherRun {
	now := time.Now()
	r := otherRun{namespace: namespace{metadata{Name: a.name, Labels: map[string]string{runLabel: a.name}, Annotations: map[string]string{nodesMark: "n1,n2"}, CreationTimestamp: now.Add(-a.began)}}}
	if a.leaves {
		r.namespace.Metadata.DeletionTimestamp = &now
	}
	if a.noLease {
		return r
	}
	h := a.holder
	if h == (holder{}) {
		h = holder{"elsewhere", "another boot", 1, 1}
	}
	o := runObjects{namespace: a.name}
	r.lease = o.leaseObject(h, now.Add(-a.renewed))
	return r
}

func (a aRun) objects() []any {
	r := a.run()
	if r.lease == nil {
		return []any{&r.namespace}
	}
	return []any{&r.namespace, r.lease}
}

func TestRunsAreJudgedByTheirLease(t *testing.T) {
	gone := self()
	gone.start-- // a process with this PID that began earlier
	for name, c := range map[string]struct {
		run  aRun
		want verdict
	}{
		"renewed":                        {aRun{began: time.Hour, renewed: time.Second}, runs},
		"not renewed":                    {aRun{began: time.Hour, renewed: 2 * leaseTime}, silent},
		"its process runs here":          {aRun{began: time.Hour, renewed: time.Second, holder: self()}, runs},
		"its process here has ended":     {aRun{began: time.Minute, renewed: time.Second, holder: gone}, ended},
		"no lease yet":                   {aRun{began: time.Second, noLease: true}, runs},
		"killed before it made a lease":  {aRun{began: 2 * startTime, noLease: true}, ended},
		"the cluster deletes it already": {aRun{began: time.Hour, renewed: 2 * leaseTime, leaves: true}, leaves},
	} {
		r := c.run.run()
		if got := r.judge(time.Now()); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	r := aRun{began: time.Hour}.run()
	r.lease.Spec.RenewTime = nil
	must.Equal(t, ended, r.judge(time.Now()))
}

func TestAHolderIsReadAsItIsWritten(t *testing.T) {
	me := self()
	if me.pid != os.Getpid() || me.start == 0 || me.hasEnded() {
		t.Errorf("this process is %+v, ended %t", me, me.hasEnded())
	}
	if got := parseHolder(me.String()); got != me {
		t.Errorf("read %+v, wrote %+v", got, me)
	}
	for _, text := range []string{"", "x", "a/b/c/d", "a/b/1", "a/b/1/2/3"} {
		if h := parseHolder(text); h != (holder{}) || h.hasEnded() {
			t.Errorf("%q is read as %+v", text, h)
		}
	}
}

func TestOnlyEndedRunsAreRemoved(t *testing.T) {
	gone := self()
	gone.start--
	foreign := &namespace{metadata{Name: "wt-of-another"}} // without the label
	objects := slices.Concat([]any{foreign},
		aRun{name: "wt-own", began: time.Second, renewed: time.Second, holder: self()}.objects(),
		aRun{name: "wt-running", began: time.Hour, renewed: time.Second}.objects(),
		aRun{name: "wt-killed", began: time.Hour, renewed: time.Second, holder: gone}.objects(),
		aRun{name: "wt-begun", began: 2 * time.Hour, noLease: true}.objects())
	c, s := simulate(t, objects...)
	removed, running, err := c.clean(context.Background(), "wt-own")
	must.Succeed(t, err)
	slices.Sort(removed)
	must.Equal(t, "wt-begun wt-killed", strings.Join(removed, " "))
	if len(running) != 1 || running[0].namespace.Metadata.Name != "wt-running" {
		t.Errorf("%d runs go on, want wt-running alone", len(running))
	}
	must.Equal(t, "wt-of-another wt-own wt-running", strings.Join(s.namespaces(), " "))
}

// A run whose engine has a slow clock renews its lease, and stays.
func TestASilentRunThatRenewsItsLeaseStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := aRun{name: "wt-slow", began: time.Hour, renewed: time.Hour}
		dead := aRun{name: "wt-dead", began: time.Hour, renewed: time.Hour}
		c, _ := simulate(t, slices.Concat(slow.objects(), dead.objects())...)
		done := make(chan error, 1)
		time.AfterFunc(time.Second, func() {
			r := slow.run()
			r.lease.Spec.RenewTime = &microTime{time.Now().Add(-time.Hour + time.Second)}
			done <- c.ask(context.Background(), http.MethodPut, leasesPath("wt-slow")+"/"+leaseName, r.lease, nil)
		})
		removed, running, err := c.clean(context.Background(), "")
		must.Succeed(t, <-done)
		if err != nil || len(removed) != 1 || removed[0] != "wt-dead" || len(running) != 1 {
			t.Errorf("removed %v, %d go on, %v; want wt-dead removed", removed, len(running), err)
		}
	})
}

func TestARunStaysWhenTheDeletionOfAnotherTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := aRun{name: "wt-0", began: time.Hour, noLease: true}
		running := aRun{name: "wt-1", began: time.Hour, renewed: time.Second}
		c, s := simulate(t, slices.Concat(ended.objects(), running.objects())...)
		s.react = func(method, at string, _ map[string]any) *failure {
			if method == http.MethodDelete && path.Base(at) == "wt-0" {
				return &failure{http.StatusConflict, "Conflict", "it is being deleted"}
			}
			return nil
		}
		removed, goOn, err := c.clean(context.Background(), "")
		if err == nil || !strings.Contains(err.Error(), "namespace wt-0 was deleted, and is not gone after 40s") || len(removed) > 0 || len(goOn) != 1 {
			t.Errorf("removed %v, %d go on, error %v", removed, len(goOn), err)
		}
		must.Equal(t, "wt-0 wt-1", strings.Join(s.namespaces(), " "))
	})
}

func TestAnEarlierRunOnTheSameNodeIsNamed(t *testing.T) {
	earlier, own, later := aRun{name: "wt-1", began: time.Hour}.run(), aRun{name: "wt-2", began: time.Minute}.run(), aRun{name: "wt-3", began: time.Second}.run()
	err := busyNodes(&own, []otherRun{later, earlier}, []string{"n2", "n3"})
	must.Fail(t, err, "runs on node n2 (namespace wt-1, process elsewhere/")
	for name, err := range map[string]error{
		"other nodes": busyNodes(&own, []otherRun{earlier}, []string{"n3"}),
		"a later run": busyNodes(&own, []otherRun{later}, []string{"n1", "n2"}),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The engine makes the namespace before the lease.
func TestAnEarlierRunWithoutALeaseIsNamed(t *testing.T) {
	earlier, own := aRun{name: "wt-1", began: 2 * time.Second, noLease: true}.run(), aRun{name: "wt-2", began: time.Second}.run()
	same := aRun{name: "wt-3", began: time.Second, noLease: true}.run()
	same.namespace.Metadata.CreationTimestamp = own.namespace.Metadata.CreationTimestamp
	for _, r := range []otherRun{earlier, same} {
		must.Fail(t, busyNodes(&own, []otherRun{r}, []string{"n2"}), "runs on node n2 (namespace "+r.namespace.Metadata.Name+")")
	}
}

// A refused run makes no pod: the pull of the image and the survey would disturb the other
// run.
func TestARunOnBusyNodesMakesNoPod(t *testing.T) {
	earlier := aRun{name: "wt-1", began: time.Hour, renewed: time.Second}
	ended := aRun{name: "wt-0", began: time.Hour, noLease: true}
	c, s := simulate(t, slices.Concat(earlier.objects(), ended.objects(), []any{aNode("n1", at("192.0.2.1")), aNode("n2", at("192.0.2.2"))})...)
	_, removed, err := c.testbeds(context.Background(), Options{Least: 2, Service: true}, nil)
	must.Fail(t, err, "runs on node n1 (namespace wt-1, process elsewhere/")
	for _, made := range s.did(http.MethodPost) {
		if kind := path.Base(made); kind == "pods" || kind == "services" {
			t.Errorf("the refused run made %s", kind)
		}
	}
	must.Equal(t, "wt-0", strings.Join(removed, " "))
	must.Equal(t, "wt-1", strings.Join(s.namespaces(), " "))
}

func TestTheLeaseIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := aRun{name: "wt-own", began: time.Hour, renewed: time.Hour}
		c, s := simulate(t, r.objects()...)
		ctx, cancel := context.WithCancel(context.Background())
		renewed := make(chan any, 1)
		s.react = func(method, _ string, object map[string]any) *failure {
			if method == http.MethodPut {
				renewed <- object["spec"].(map[string]any)["renewTime"]
			}
			return nil
		}
		go c.keepLease(ctx, *r.run().lease)
		defer cancel()
		select {
		case got := <-renewed:
			// The API server requires exactly six digits after the point of the seconds.
			if at, err := time.Parse("2006-01-02T15:04:05.000000Z07:00", got.(string)); err != nil || time.Since(at) > time.Minute {
				t.Errorf("renewed at %v (%v)", got, err)
			}
		case <-time.After(10 * renewTime):
			t.Error("the lease was not renewed")
		}
	})
}
