// Package serve shows a store of runs in a browser: the list of runs, their reports,
// comparisons, trends, and runs in progress. It has the figures for Prometheus too. It
// only reads the store. Its pages need nothing from other hosts.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"k8s.io/utils/lru"

	"windtunnel/lab/results"
)

// Options of New.
type Options struct {
	Store *results.Store // opened for reading
	// Token is what requests must have; "": requests need none.
	Token string
	// Hosts are names that the Host header of a request may have. IP addresses and
	// localhost are always allowed.
	Hosts []string
	Log   *log.Logger // errors of the server; nil: the standard logger
}

// Site is the web application: an http.Handler.
type Site struct {
	options Options
	cookie  cookie
	mux     *http.ServeMux
	metrics http.Handler
	// kept is a cache of pages. figures is a cache of the newest figures of each series. slot lets
	// the server make only one page or set of figures at a time, because the machine may be
	// measuring.
	kept, figures *lru.Cache
	slot          chan struct{}
	streams       chan struct{} // holds a value for each open stream
	poll          time.Duration // between two looks at a run in progress
	// Time of a request and of its answer, live views excepted.
	requestTime, answerTime time.Duration
}

// Limits of a server.
const (
	mostKept        = 32   // rendered pages of up to a few MB each
	mostSeries      = 1000 // whose figures are kept
	mostStreams     = 32   // live views
	mostConnections = 256
	mostOfClient    = 64 // connections of one client, see limiter
	headerTime      = 2 * time.Second
	idleTime        = 2 * time.Minute
	mostHeader      = 64 << 10 // bytes
	// graceTime is the time for answers in progress when the server ends.
	graceTime = 500 * time.Millisecond
)

// New returns the application over a store.
func New(o Options) *Site {
	if o.Log == nil {
		o.Log = log.Default()
	}
	s := &Site{
		options: o, cookie: cookieOf(o.Token), mux: http.NewServeMux(), kept: lru.New(mostKept), figures: lru.New(mostSeries),
		slot: make(chan struct{}, 1), streams: make(chan struct{}, mostStreams), poll: time.Second,
		requestTime: 30 * time.Second, answerTime: 2 * time.Minute,
	}
	s.metrics = s.metricsHandler()
	s.routes()
	return s
}

func (s *Site) routes() {
	for pattern, page := range map[string]func(http.ResponseWriter, *http.Request) error{
		"/{$}":              s.runsPage,
		"/runs/{id}":        s.reportPage,
		"/runs/{id}/live":   s.livePage,
		"/runs/{id}/events": s.events,
		"/compare":          s.comparePage,
		"/trend":            s.trendPage,
		"/api/runs":         s.runsJSON,
		"/metrics":          s.metricsPage,
		staticPattern:       static,
		"/favicon.ico":      favicon,
		"/":                 notFound,
	} {
		s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := page(w, r); err != nil {
				s.fail(w, r, err)
			}
		})
	}
}

// Serve answers requests on l until ctx ends. Then it ends the live views and closes l,
// within a second.
func (s *Site) Serve(ctx context.Context, l net.Listener) error {
	limited := &limiter{Listener: l, all: mostConnections, each: mostOfClient}
	server := &http.Server{
		Handler: s, ConnState: limited.note, ErrorLog: s.options.Log, MaxHeaderBytes: mostHeader,
		ReadHeaderTimeout: headerTime, ReadTimeout: s.requestTime, WriteTimeout: s.answerTime, IdleTimeout: idleTime,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(limited) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceTime)
	defer cancel()
	if err := server.Shutdown(grace); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		s.options.Log.Printf("end the server: %v", err)
	}
	_ = server.Close() // ends what did not end in time
	<-failed
	return nil
}

// keep returns the page of this key that was made before, or calls make. Only one make runs at
// a time.
func keep(ctx context.Context, s *Site, key string, make func() ([]byte, error)) ([]byte, error) {
	return newest(ctx, s, s.kept, key, key, make)
}

// dated is a value in a cache, with the state of the run from which it was made.
type dated struct {
	state string
	value any
}

// newest returns the value of the cache for this key if it was made from this state. Else it
// calls make, and replaces the value. Only one make runs at a time.
func newest[T any](ctx context.Context, s *Site, cache *lru.Cache, key, state string, make func() (T, error)) (made T, err error) {
	find := func() bool {
		found, ok := cache.Get(key)
		if d, _ := found.(dated); ok && d.state == state {
			made = d.value.(T)
			return true
		}
		return false
	}
	if find() {
		return made, nil
	}
	select {
	case s.slot <- struct{}{}:
		defer func() { <-s.slot }()
	case <-ctx.Done():
		return made, ctx.Err()
	}
	if find() { // made while this request waited
		return made, nil
	}
	if made, err = make(); err == nil {
		cache.Add(key, dated{state, made})
	}
	return made, err
}
