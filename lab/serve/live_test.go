package serve

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/sample"
)

// event is one server-sent event.
type event struct{ name, id, data string }

// listen opens a stream. The channel has its events, and is closed when the stream ends.
func listen(t *testing.T, address string, headers ...string) <-chan event {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil))(t)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response := must.Get(http.DefaultClient.Do(r))(t)
	if kind := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || kind != "text/event-stream" {
		t.Fatalf("the stream is %q with status %d, want text/event-stream and 200", kind, response.StatusCode)
	}
	out := make(chan event, 1000)
	go func() {
		defer close(out)
		defer response.Body.Close()
		var e event
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "event":
				e.name = value
			case "id":
				e.id = value
			case "data":
				e.data = value
			case "":
				if e.name != "" {
					out <- e
				}
				e = event{}
			}
		}
	}()
	return out
}

// next returns the next event with a name.
func next(t *testing.T, events <-chan event, name string) event {
	t.Helper()
	bound := time.After(20 * time.Second)
	for {
		select {
		case e, open := <-events:
			if !open {
				t.Fatalf("the stream ended, want an event %s", name)
			}
			if e.name == name {
				return e
			}
		case <-bound:
			t.Fatalf("no event %s within 20 s", name)
		}
	}
}

func decode[T any](t *testing.T, e event) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(e.data), &v); err != nil {
		t.Fatalf("event %s: %v in %s", e.name, err, e.data)
	}
	return v
}

// closed fails unless the stream ends, and returns its last event.
func closed(t *testing.T, events <-chan event) (last event) {
	t.Helper()
	bound := time.After(20 * time.Second)
	for {
		select {
		case e, open := <-events:
			if !open {
				return last
			}
			last = e
		case <-bound:
			t.Fatal("the stream does not end within 20 s")
		}
	}
}

func TestALiveViewFollowsTheRunToItsEnd(t *testing.T) {
	writer, reader, running, _ := filled(t)
	_, at := site(t, reader)
	_, _, samples := reporttest.Sample()
	events := listen(t, at+"/runs/"+running.ID+"/events")
	for i := range 3 { // the samples that are stored already
		if a := decode[attempt](t, next(t, events, "trial")); a.Scenario != samples[i].Scenario || a.Trial != 1 || !a.Counts || a.Text == "" {
			t.Errorf("attempt %d is %+v, want one of %s that counts", i, a, samples[i].Scenario)
		}
	}
	if v := decode[liveView](t, next(t, events, "state")); v.Measured != 3 || v.Total != 54-6 || !v.Running || !strings.HasPrefix(v.Left, "about ") {
		t.Errorf("the state is %+v, want 3 of 48 trials, running, with the remaining time", v)
	}

	failed := samples[3]
	failed.Metrics, failed.Failure = nil, &sample.Failure{Kind: sample.ToolHung, Message: "the client was killed"}
	must.Get(writer.AppendSample(running.ID, failed))(t)
	e := next(t, events, "trial")
	if a := decode[attempt](t, e); a.Counts || a.Text != "tool-hung: the client was killed" || e.id == "" {
		t.Errorf("the failed attempt is %+v with event id %q", a, e.id)
	}
	repeated := samples[3]
	repeated.Attempt = 1
	must.Get(writer.AppendSample(running.ID, repeated))(t)
	if a := decode[attempt](t, next(t, events, "trial")); !a.Counts || a.Attempt != 2 {
		t.Errorf("the repeated attempt is %+v, want attempt 2, which counts", a)
	}
	v := decode[liveView](t, next(t, events, "state"))
	for v.Measured < 4 || rejectedOf(v, failed.Scenario) == 0 {
		v = decode[liveView](t, next(t, events, "state"))
	}
	if v.Measured != 4 || rejectedOf(v, failed.Scenario) != 1 {
		t.Errorf("the state is %+v, want 4 trials and one attempt of %s that does not count", v, failed.Scenario)
	}

	// A second reader begins after the event that it has already.
	more := listen(t, at+"/runs/"+running.ID+"/events?after=1", "Last-Event-ID", e.id)
	if a := decode[attempt](t, next(t, more, "trial")); a.Attempt != 2 {
		t.Errorf("the first attempt after event %s is %+v, want the repeated one", e.id, a)
	}

	running.Status, running.Finished = sample.Complete, running.Started.Add(time.Hour)
	must.Succeed(t, writer.UpdateRun(running))
	for _, stream := range []<-chan event{events, more} {
		if last := closed(t, stream); last.name != "end" || last.data != `{"status":"complete"}` {
			t.Errorf("the last event is %v, want the end of a complete run", last)
		}
	}
	ended := listen(t, at+"/runs/"+running.ID+"/events?after=9999999")
	if e := next(t, ended, "state"); decode[liveView](t, e).Running {
		t.Error("the ended run is running")
	}
	if last := closed(t, ended); last.name != "end" {
		t.Errorf("the stream of an ended run ends with %v", last)
	}
}

func rejectedOf(v liveView, scenario string) int {
	for _, r := range v.Rows {
		if r.Scenario == scenario {
			return r.Rejected
		}
	}
	return -1
}

func TestALiveViewEndsWhenTheRunIsDeleted(t *testing.T) {
	writer, reader, running, _ := filled(t)
	_, at := site(t, reader)
	events := listen(t, at+"/runs/"+running.ID+"/events")
	next(t, events, "state")
	// The store deletes no run that is being measured.
	change(t, writer.Path(), "DELETE FROM run WHERE id = '"+running.ID+"'")
	if last := closed(t, events); last.data != `{"status":"deleted"}` {
		t.Errorf("the last event is %v, want deleted", last)
	}
}

func TestLiveViewsAreLimited(t *testing.T) {
	_, reader, running, _ := filled(t)
	s, at := site(t, reader)
	for range mostStreams {
		next(t, listen(t, at+"/runs/"+running.ID+"/events"), "state")
	}
	a := get(t, at+"/runs/"+running.ID+"/events")
	a.expect(t, "one stream too many", http.StatusServiceUnavailable, "Close one")
	if a.header.Get("Retry-After") == "" {
		t.Error("the answer has no Retry-After")
	}
	get(t, at+"/").expect(t, "another page meanwhile", http.StatusOK)
	must.Equal(t, mostStreams, len(s.streams))
}

// When a reader disconnects, its stream ends, and another one may begin.
func TestAClosedConnectionEndsItsStream(t *testing.T) {
	_, reader, running, _ := filled(t)
	s, at := site(t, reader)
	response := must.Get(http.Get(at + "/runs/" + running.ID + "/events"))(t)
	must.Equal(t, 1, len(s.streams))
	response.Body.Close()
	must.EventuallyTrue(t, "the stream has ended after its reader left", func() bool { return len(s.streams) == 0 })
}

func TestTheServerEndsWithOpenStreams(t *testing.T) {
	_, reader, run, _ := filled(t)
	s := New(Options{Store: reader})
	at, end := running(t, s)
	events := listen(t, at+"/runs/"+run.ID+"/events")
	next(t, events, "state")
	get(t, at+"/").expect(t, "the list", http.StatusOK)
	began := time.Now()
	must.Succeed(t, end())
	// The bound is wide for a busy machine; the server's own is graceTime.
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the server ended after %v", took)
	}
	closed(t, events)
	if _, err := http.Get(at + "/"); err == nil {
		t.Error("the ended server answers")
	}
}

// The limits of other answers must not end a stream.
func TestAStreamOutlivesTheTimeOfARequest(t *testing.T) {
	writer, reader, run, _ := filled(t)
	s := New(Options{Store: reader})
	s.poll = 10 * time.Millisecond
	s.requestTime, s.answerTime = 200*time.Millisecond, 200*time.Millisecond
	at, _ := running(t, s)
	events := listen(t, at+"/runs/"+run.ID+"/events")
	next(t, events, "state")
	time.Sleep(600 * time.Millisecond)
	_, _, samples := reporttest.Sample()
	must.Get(writer.AppendSample(run.ID, samples[7]))(t)
	if a := decode[attempt](t, next(t, events, "trial")); a.Scenario == "" {
		t.Error("the attempt has no scenario")
	}
}
