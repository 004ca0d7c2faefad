package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"windtunnel/lab/report/document"
	"windtunnel/lab/report/sentences"
	"windtunnel/lab/results"
	"windtunnel/lab/sample"
)

// mostLines is the number of attempts that the live view lists.
const mostLines = 50

// Times of a stream.
const (
	heartbeat = 15 * time.Second // longest time without a line
	sendTime  = 30 * time.Second // to send one event
	again     = 3 * time.Second  // until a browser asks again for an interrupted stream
)

// livePage shows the progress of a run. Its script follows the events.
func (s *Site) livePage(w http.ResponseWriter, r *http.Request) error {
	id, moved, err := s.resolve(w, r, "/live")
	if err != nil || moved {
		return err
	}
	t, err := s.follow(id)
	if err != nil {
		return err
	}
	view := t.view()
	view.Lines = t.lines()
	s.show(w, http.StatusOK, "live.html", page{Title: cmp.Or(t.run.Title, t.run.Suite), Links: []document.Link{toRuns, {Text: "Report until now", URL: runURL(id)}}, Script: "live.js", Data: view})
	return nil
}

// follow returns the progress of a run until now.
func (s *Site) follow(id string) (*tracker, error) {
	head, err := s.options.Store.Head(id)
	if err != nil {
		return nil, err
	}
	t := newTracker(head)
	_, err = s.look(t)
	return t, err
}

// look reads the samples that were stored since the last call, adds them to t and returns them.
func (s *Site) look(t *tracker) (*results.Progress, error) {
	p, err := s.options.Store.Progress(t.run.ID, t.last, sentences.Outlined...)
	if err == nil {
		t.add(p)
	}
	return p, err
}

// events streams the progress of a run as server-sent events (HTML Standard, 9.2): for each
// new sample an event "trial", whose ID is the sample's, and for each change of the whole
// an event "state". At the end of the run an event "end" follows, and the stream ends. The
// stream begins after the sample of the header Last-Event-ID or of the parameter after.
func (s *Site) events(w http.ResponseWriter, r *http.Request) error {
	after, err := begin(r)
	if err != nil {
		return err
	}
	t, err := s.follow(r.PathValue("id"))
	if err != nil {
		return err
	}
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		w.Header().Set("Retry-After", strconv.Itoa(int(again/time.Second)))
		return &problem{http.StatusServiceUnavailable, "Too many live views", "Too many live views are open. Close one of them."}
	}
	out := &stream{w: w, control: http.NewResponseController(w)}
	// The server's limits are for answers of known length.
	if err := out.control.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("stream the progress of run %s: %w", t.run.ID, err)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // nginx must not hold events back
	if r.Method == http.MethodHead {
		return nil
	}
	out.write(fmt.Sprintf("retry: %d\n\n", again/time.Millisecond))
	s.stream(r.Context(), out, t, after)
	return nil
}

// begin returns the ID of the sample after which a stream begins.
func begin(r *http.Request) (int64, error) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		text = r.URL.Query().Get("after")
	}
	if text == "" {
		return 0, nil
	}
	after, err := strconv.ParseInt(text, 10, 64)
	if err != nil || after < 0 {
		return 0, &problem{http.StatusBadRequest, "This cannot be shown", "The number of the last event is not a number: omit it."}
	}
	return after, nil
}

// stream sends events until the run ends, the reader leaves or the server ends.
func (s *Site) stream(ctx context.Context, out *stream, t *tracker, after int64) {
	for _, a := range t.attempts {
		if a.ID > after {
			out.send("trial", a.ID, a)
		}
	}
	out.send("state", 0, t.view())
	tick := time.NewTicker(s.poll)
	defer tick.Stop()
	for t.status == sample.Running && out.err == nil {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		before := t.status
		news, err := s.look(t)
		if errors.Is(err, results.ErrUnknownRun) {
			t.status = deleted
			break
		}
		if err != nil {
			s.options.Log.Printf("follow run %s: %v", t.run.ID, err)
			return // the browser asks again
		}
		for _, a := range t.attempts[len(t.attempts)-len(news.IDs):] {
			out.send("trial", a.ID, a)
		}
		if len(news.IDs) > 0 || t.status != before {
			out.send("state", 0, t.view())
		}
		out.beat()
	}
	if t.status != sample.Running {
		out.send("end", 0, struct {
			Status sample.Status `json:"status"`
		}{t.status})
	}
}

// deleted is the state of a run that was deleted while it was shown.
const deleted sample.Status = "deleted"

// stream is the connection of one live view.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	sent    time.Time
	err     error // the first; nothing is sent after it
}

// beat sends a comment if nothing was sent for some time, to find readers who have left.
func (o *stream) beat() {
	if time.Since(o.sent) > heartbeat {
		o.write(":\n\n")
	}
}

// send sends one event. id is the ID of the event; 0 is none.
func (o *stream) send(event string, id int64, data any) {
	text, err := json.Marshal(data) // has no line ends
	if err != nil {
		o.err = err
		return
	}
	line := "event: " + event + "\n"
	if id > 0 {
		line += "id: " + strconv.FormatInt(id, 10) + "\n"
	}
	o.write(line + "data: " + string(text) + "\n\n")
}

func (o *stream) write(text string) {
	if o.err != nil {
		return
	}
	if o.err = o.control.SetWriteDeadline(time.Now().Add(sendTime)); o.err != nil {
		return
	}
	if _, o.err = o.w.Write([]byte(text)); o.err == nil {
		o.err = o.control.Flush()
	}
	o.sent = time.Now()
}
