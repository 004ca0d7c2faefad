package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

// Etcd is a store in an etcd cluster. Every Etcd with the same cluster and prefix
// has the same content.
type Etcd struct {
	client *clientv3.Client
	prefix string // of all keys
	name   string // of the cluster, in errors
	close  func() error
	// identify adds a user to the context of a call. It is nil if the client has a
	// connection: etcd then reads the user from the connection's certificate.
	identify func(context.Context) context.Context
	exact    atomic.Bool           // result of hasExactProgress
	noDial   atomic.Pointer[error] // why the last attempt to connect failed; nil: it did not. The client's errors omit it

	mu      sync.Mutex
	seen    sight
	newest  Entry         // the newest that a read or a watch returned; Created 0: deleted
	next    Entry         // like newest, but over a connection that checkBack has not checked
	dialled int           // connections that were made
	checked int           // the value of dialled when checkBack last found newest in the store
	back    chan struct{} // closed and replaced when the store goes back
}

// sight has the revision, the leader's term and the cluster id from the answers of a store. In a store
// that was restored from a backup, the revision or the term is lower, or the cluster id differs.
type sight struct {
	revision      int64
	term, cluster uint64
	times         int // how many times the store went back to an older revision
}

// isBefore reports whether an answer is from an older or another store than s. A term of 0 does not
// count: a member that has just started may not know it yet.
func (s sight) isBefore(h *pb.ResponseHeader) bool {
	return h.Revision < s.revision || h.RaftTerm != 0 && h.RaftTerm < s.term || s.cluster != 0 && h.ClusterId != s.cluster
}

// asking returns the sight before a request. The answer to a linearizable request has at least this
// revision.
func (e *Etcd) asking() sight {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen
}

// answered notes the header of an answer. If the store went back, all watches end.
func (e *Etcd) answered(before sight, h *pb.ResponseHeader) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case before.times != e.seen.times: // another answer has shown it
	case before.isBefore(h):
		e.goBack(h)
	default:
		e.seen.revision, e.seen.term, e.seen.cluster = max(e.seen.revision, h.Revision), max(e.seen.term, h.RaftTerm), h.ClusterId
	}
}

// goesBack returns a channel that closes when the store goes back.
func (e *Etcd) goesBack() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.back
}

// goBack notes an answer of a store that went back. The caller holds mu.
func (e *Etcd) goBack(h *pb.ResponseHeader) {
	e.seen = sight{h.Revision, h.RaftTerm, h.ClusterId, e.seen.times + 1}
	e.newest, e.next = Entry{}, Entry{}
	close(e.back)
	e.back = make(chan struct{})
}

// met records an entry that the store returned. After a new connection, which may be to a restored
// store, checkBack looks there for the entry that was recorded before.
func (e *Etcd) met(entry Entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.newest.Revision == 0 {
		e.checked = e.dialled
	}
	into := &e.newest
	if e.checked != e.dialled {
		into = &e.next
	}
	if entry.Revision > into.Revision {
		*into = entry
	}
}

// mustCheck reports whether checkBack is necessary: after a new connection, or if an answer to a watch
// has an older revision.
func (e *Etcd) mustCheck(h *pb.ResponseHeader, after int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.checked != e.dialled || h != nil && (h.Revision < after || e.seen.isBefore(h))
}

// checkBack returns an error if the store went back to an older revision. Answers to a watch do not
// suffice, because a member may be behind the others. The revision does not suffice either: others may
// have written to a restored store. So checkBack also looks for the newest entry that is known.
func (e *Etcd) checkBack(ctx context.Context, after int64) error {
	e.mu.Lock()
	before, dialled, noted := e.seen, e.dialled, []Entry{e.newest, e.next}
	e.mu.Unlock()
	get := func(key string, at int64) (*clientv3.GetResponse, error) {
		return withDeadline(ctx, func(ctx context.Context) (*clientv3.GetResponse, error) {
			return e.client.Get(ctx, e.prefix+key, clientv3.WithRev(at))
		})
	}
	now, err := get(noted[0].Key, 0)
	if err != nil {
		return nil // the watch notices it
	}
	e.answered(before, now.Header)
	has := now.Header.Revision >= after
	for _, entry := range noted {
		if has && err == nil && entry.Revision != 0 && !e.has(now, entry) {
			has, err = e.had(entry, get)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case errors.Is(err, ErrCompacted):
		e.newest, e.next = Entry{}, Entry{}
		return err
	case err != nil: // the watch notices it
	case has:
		if e.checked = dialled; dialled == e.dialled && e.next.Revision > e.newest.Revision {
			e.newest = e.next
		}
	case before.times == e.seen.times:
		e.goBack(now.Header)
		fallthrough
	default:
		return &WentBackError{after, now.Header.Revision}
	}
	return nil
}

// has reports whether an answer has exactly this entry.
func (e *Etcd) has(got *clientv3.GetResponse, entry Entry) bool {
	if len(got.Kvs) == 0 {
		return false
	}
	is := e.entry(got.Kvs[0])
	return is.Key == entry.Key && is.Revision == entry.Revision && is.Created == entry.Created && bytes.Equal(is.Value, entry.Value)
}

// had reports whether the store had an entry at the entry's revision. For a deletion, it reports
// whether the key existed until that revision.
func (e *Etcd) had(entry Entry, get func(key string, at int64) (*clientv3.GetResponse, error)) (bool, error) {
	got, err := get(entry.Key, entry.Revision)
	is := err == nil && e.has(got, entry)
	if entry.Created == 0 && err == nil && len(got.Kvs) == 0 {
		got, err = get(entry.Key, entry.Revision-1)
		is = err == nil && len(got.Kvs) > 0
	}
	switch {
	case errors.Is(err, rpctypes.ErrFutureRev):
		return false, nil
	case errors.Is(err, rpctypes.ErrCompacted):
		return false, ErrCompacted
	}
	return is, err
}

// Times of an etcd client.
const (
	rolesRetry  = 10 * time.Millisecond // before a request is repeated because roles changed
	dialTimeout = 5 * time.Second
	askTimeout  = 5 * time.Second // time limit of a request without a deadline
	// keepAlive is the interval of gRPC pings; etcd refuses clients that ping more
	// often than every 5 s.
	keepAlive        = 6 * time.Second
	keepAliveTimeout = 3 * time.Second
	// maxRedial is the longest time between two attempts to connect to a member. gRPC's is two minutes,
	// also after the member is back.
	maxRedial = 5 * time.Second
	// proveAlive is the interval at which a watch asks for progress if no commit arrives.
	proveAlive = 2 * time.Second
	// progressTime is the interval at which a watch asks for progress even if commits arrive:
	// other watches of the connection may have no commits.
	progressTime = time.Minute
	silence      = 3 * proveAlive // a store that is silent for longer is unreachable
	page         = 2000           // maximum number of entries that a request reads
)

// Dialer connects to HOST:PORT, for example from a network namespace.
type Dialer func(ctx context.Context, address string) (net.Conn, error)

// OpenEtcd makes a client of a cluster. It does not wait for the connection, so
// that an agent can start while its store is unreachable. dial may be nil.
func OpenEtcd(a Address, t TLS, dial Dialer) (*Etcd, error) {
	secrets, err := t.config(a)
	if err != nil {
		return nil, err
	}
	config := clientv3.Config{
		Endpoints: a.Endpoints, TLS: secrets, Username: a.User, Password: a.Password,
		DialTimeout: dialTimeout, DialKeepAliveTime: keepAlive, DialKeepAliveTimeout: keepAliveTimeout,
		PermitWithoutStream: true, Logger: zap.NewNop(), // no log: each call returns its error
	}
	redial := grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: dialTimeout}
	redial.Backoff.MaxDelay = maxRedial
	e := newEtcd(nil, a.Prefix, a.String(), nil)
	if dial == nil {
		dial = func(ctx context.Context, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}
	}
	config.DialOptions = append(config.DialOptions, grpc.WithConnectParams(redial), grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		e.mu.Lock()
		e.dialled++
		e.mu.Unlock()
		conn, err := dial(ctx, address)
		if err != nil || secrets == nil {
			e.noteDial(err)
		}
		return conn, err
	}))
	if secrets != nil {
		config.DialOptions = append(config.DialOptions, grpc.WithTransportCredentials(handshakes{credentials.NewTLS(secrets), e.noteDial}))
	}
	client, err := clientv3.New(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", a, err)
	}
	e.client, e.close = client, client.Close
	return e, nil
}

// noteDial notes why a connection failed; nil: it did not.
func (e *Etcd) noteDial(err error) {
	if err == nil {
		e.noDial.Store(nil)
	} else {
		e.noDial.Store(&err)
	}
}

func newEtcd(client *clientv3.Client, prefix, name string, close func() error) *Etcd {
	return &Etcd{client: client, prefix: strings.TrimSuffix(prefix, "/") + "/", name: name, close: close, back: make(chan struct{})}
}

func (e *Etcd) identified(ctx context.Context) context.Context {
	if e.identify == nil {
		return ctx
	}
	return e.identify(ctx)
}

// Read reads pages of entries, all at the revision of the first page. A page has entries of
// several spans.
func (e *Etcd) Read(ctx context.Context, at int64, spans ...Span) (Image, error) {
	ctx = e.identified(ctx)
	if spans == nil {
		spans = []Span{All}
	}
	i := Image{Revision: at}
	var newest Entry
	for len(spans) > 0 {
		some, before := spans[:min(len(spans), e.MaxKeys())], e.asking()
		got, err := withDeadline(ctx, func(ctx context.Context) (*clientv3.TxnResponse, error) {
			return e.client.Txn(ctx).Then(e.gets(some, i.Revision)...).Commit()
		})
		if errors.Is(err, rpctypes.ErrCompacted) {
			return Image{}, ErrCompacted
		}
		if err != nil {
			return Image{}, e.failed("read", err)
		}
		e.answered(before, got.Header)
		i.Revision = cmp.Or(i.Revision, got.Header.Revision)
		spans = spans[len(some):]
		for n, r := range got.Responses {
			kvs := r.GetResponseRange().Kvs
			for _, kv := range kvs {
				i.Entries = append(i.Entries, e.entry(kv))
				if kv.ModRevision > newest.Revision {
					newest = i.Entries[len(i.Entries)-1]
				}
			}
			if r.GetResponseRange().More {
				spans = append(spans, Span{i.Entries[len(i.Entries)-1].Key + "\x00", some[n].To})
			}
		}
	}
	e.met(newest)
	return i, nil
}

// gets returns the requests for a page of entries of spans at a revision; 0: the newest.
func (e *Etcd) gets(spans []Span, at int64) (all []clientv3.Op) {
	for _, s := range spans {
		all = append(all, clientv3.OpGet(e.prefix+s.From, clientv3.WithRange(e.prefix+s.To), clientv3.WithLimit(int64(page/len(spans))), clientv3.WithRev(at)))
	}
	return all
}

func (e *Etcd) entry(kv *mvccpb.KeyValue) Entry {
	return Entry{Key: strings.TrimPrefix(string(kv.Key), e.prefix), Value: kv.Value, Revision: kv.ModRevision, Created: kv.CreateRevision}
}

// withDeadline calls f with a deadline of askTimeout, unless ctx has one.
func withDeadline[R any](ctx context.Context, f func(context.Context) (R, error)) (R, error) {
	if _, has := ctx.Deadline(); !has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, askTimeout)
		defer cancel()
	}
	for {
		r, err := f(ctx)
		// The roles changed while etcd handled the request. etcd did not execute it.
		if !errors.Is(err, rpctypes.ErrAuthOldRevision) || ctx.Err() != nil {
			return r, err
		}
		time.Sleep(rolesRetry)
	}
}

// unavailable wraps an error by ErrUnavailable. It adds why the last connection failed.
func (e *Etcd) unavailable(what string, err error) error {
	if why := e.noDial.Load(); why != nil {
		err = fmt.Errorf("%w: %w", *why, err)
	}
	return fmt.Errorf("%s %s: %w: %w", what, e.name, ErrUnavailable, err)
}

// failed wraps an error of the client. It adds ErrUnavailable if the store could
// not be reached.
func (e *Etcd) failed(what string, err error) error {
	switch {
	case isUnavailable(err):
		return e.unavailable(what, err)
	case errors.Is(err, rpctypes.ErrNoSpace):
		return fmt.Errorf("%s %s: its database has no space left (etcd's alarm NOSPACE); compact and defragment it, or raise its quota, then disarm the alarm: %w", what, e.name, err)
	case errors.Is(err, rpctypes.ErrPermissionDenied), errors.Is(err, rpctypes.ErrAuthFailed), errors.Is(err, rpctypes.ErrUserEmpty), errors.Is(err, rpctypes.ErrUserNotFound):
		return fmt.Errorf("%s %s: %w: the user of this client's certificate has no role that allows it; an administrator can add a role with `vrouter store grant`: %w", what, e.name, ErrDenied, err)
	}
	return fmt.Errorf("%s %s: %w", what, e.name, err)
}

func isUnavailable(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, rpctypes.ErrNoLeader) || errors.Is(err, rpctypes.ErrTimeout) ||
		errors.Is(err, rpctypes.ErrTimeoutDueToLeaderFail) || errors.Is(err, rpctypes.ErrTimeoutDueToConnectionLost) || errors.Is(err, rpctypes.ErrLeaderChanged) {
		return true
	}
	var etcd rpctypes.EtcdError
	if errors.As(err, &etcd) {
		return etcd.Code() == codes.Unavailable || etcd.Code() == codes.DeadlineExceeded
	}
	s, is := status.FromError(err)
	return is && (s.Code() == codes.Unavailable || s.Code() == codes.DeadlineExceeded)
}

// MaxKeys is below etcd's default of 128 operations per transaction.
func (e *Etcd) MaxKeys() int { return 100 }

// Commit runs one transaction.
func (e *Etcd) Commit(ctx context.Context, c Commit) (int64, error) {
	if err := c.check(e.MaxKeys()); err != nil {
		return 0, err
	}
	ctx = e.identified(ctx)
	compares := e.compares(c)
	var then, otherwise []clientv3.Op
	for _, key := range c.sortedPut() {
		then = append(then, clientv3.OpPut(e.prefix+key, string(c.Put[key])))
	}
	for _, key := range c.Delete {
		then = append(then, clientv3.OpDelete(e.prefix+key))
	}
	for _, key := range slices.Sorted(maps.Keys(c.Exact)) {
		otherwise = append(otherwise, clientv3.OpGet(e.prefix+key, clientv3.WithKeysOnly()))
	}
	before := e.asking()
	got, err := withDeadline(ctx, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return e.client.Txn(ctx).If(compares...).Then(then...).Else(otherwise...).Commit()
	})
	if err != nil {
		return 0, e.failed("write to", err)
	}
	e.answered(before, got.Header)
	if !got.Succeeded {
		return 0, e.conflict(c, got)
	}
	return got.Header.Revision, nil
}

// compares returns the conditions of a commit.
func (e *Etcd) compares(c Commit) (all []clientv3.Cmp) {
	for _, key := range slices.Sorted(maps.Keys(c.Exact)) {
		all = append(all, clientv3.Compare(clientv3.ModRevision(e.prefix+key), "=", c.Exact[key]))
	}
	for _, prefix := range slices.Sorted(maps.Keys(c.Ranges)) {
		all = append(all, clientv3.Compare(clientv3.ModRevision(e.prefix+prefix), "<", c.Ranges[prefix]+1).WithPrefix())
	}
	return all
}

// conflict returns an error with the exact keys that have other revisions than the commit
// requires. If there are no such keys, a range has changed, and the error lists the ranges.
func (e *Etcd) conflict(c Commit, got *clientv3.TxnResponse) *ConflictError {
	err := &ConflictError{Revisions: map[string]int64{}}
	for i, key := range slices.Sorted(maps.Keys(c.Exact)) {
		revision := int64(0)
		if kvs := got.Responses[i].GetResponseRange().Kvs; len(kvs) > 0 {
			revision = kvs[0].ModRevision
		}
		if revision != c.Exact[key] {
			err.Keys = append(err.Keys, key)
			err.Revisions[key] = revision
		}
	}
	if len(err.Keys) == 0 {
		err.Keys = slices.Sorted(maps.Keys(c.Ranges))
	}
	return err
}

// Watch returns an error when the store has sent nothing for the time silence.
// Without this limit it would not notice a broken connection.
//
// It begins at the revision after, and ignores the events of that revision: etcd answers a request
// for progress only once it has the revision at which each watch of the connection begins
// (progressIfSync in etcd's watchable_store.go). An idle store would answer nothing.
func (e *Etcd) Watch(ctx context.Context, s Span, after int64, changed func(Changes), alive func()) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(e.identified(ctx)))
	defer cancel()
	var responses clientv3.WatchChan
	opened := make(chan clientv3.WatchChan, 1)
	go func() { // Watch blocks while the store is unreachable
		opened <- e.client.Watch(ctx, e.prefix+s.From, clientv3.WithRange(e.prefix+s.To), clientv3.WithRev(max(after, 1)), clientv3.WithFragment(), clientv3.WithCreatedNotify())
	}()
	var ask <-chan time.Time
	if alive != nil {
		go func() { e.exact.Store(e.hasExactProgress(ctx)) }()
		ticker := time.NewTicker(proveAlive)
		defer ticker.Stop()
		ask = ticker.C
	}
	heard, progressed := time.Now(), time.Now()
	back := e.goesBack()
	var checked chan error // nil: no check whether the store went back is under way
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case responses = <-opened:
		case <-back:
			return &WentBackError{after, e.asking().revision}
		case err := <-checked:
			if checked = nil; err != nil {
				return err
			}
		case r, ok := <-responses:
			if !ok {
				return cmp.Or(context.Cause(ctx), e.unavailable("watch", errors.New("the connection ended")))
			}
			if r.CompactRevision > 0 {
				return ErrCompacted
			}
			if err := r.Err(); err != nil {
				return e.failed("watch", err)
			}
			if checked == nil && e.mustCheck(r.Header, after) {
				checked = make(chan error, 1)
				go func() { checked <- e.checkBack(ctx, after) }()
			}
			if alive != nil {
				heard = time.Now()
				alive()
			}
			progress := r.IsProgressNotify()
			r.Events = slices.DeleteFunc(r.Events, func(ev *clientv3.Event) bool { return ev.Kv.ModRevision <= after })
			switch {
			case len(r.Events) > 0:
				e.met(e.entry(r.Events[len(r.Events)-1].Kv))
				changed(e.changes(r))
			case progress:
				progressed = time.Now()
				if e.exact.Load() {
					changed(Changes{Revision: r.Header.Revision})
				}
			}
		case <-ask:
			quiet := time.Since(heard)
			if quiet > silence {
				return e.unavailable("watch", fmt.Errorf("no answer for %v", silence))
			}
			if quiet > proveAlive/2 || time.Since(progressed) > progressTime { // a recent commit is proof enough
				// RequestProgress blocks on a broken connection, so it needs a
				// goroutine.
				go e.client.RequestProgress(ctx)
			}
		}
	}
}

// hasExactProgress reports whether all servers send a progress notification only after all
// events up to its revision, to all watches of the connection. Versions before 3.4.25 and 3.5.8
// may send it earlier (github.com/etcd-io/etcd/issues/15220).
func (e *Etcd) hasExactProgress(ctx context.Context) bool {
	for _, endpoint := range e.client.Endpoints() {
		status, err := withDeadline(ctx, func(ctx context.Context) (*clientv3.StatusResponse, error) {
			return e.client.Status(ctx, endpoint)
		})
		if err != nil || !isExact(status.Version) {
			return false
		}
	}
	return true
}

// isExact reports whether an etcd version has exact progress notifications.
func isExact(version string) bool {
	var major, minor, patch int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); err != nil {
		return false
	}
	switch {
	case major != 3:
		return major > 3
	case minor == 4:
		return patch >= 25
	case minor == 5:
		return patch >= 8
	}
	return minor > 5
}

// changes merges the events of a response. The last event of a key counts.
func (e *Etcd) changes(r clientv3.WatchResponse) Changes {
	ch := Changes{Revision: r.Events[len(r.Events)-1].Kv.ModRevision}
	last := map[string]*clientv3.Event{}
	for _, ev := range r.Events {
		last[string(ev.Kv.Key)] = ev
	}
	for _, key := range slices.Sorted(maps.Keys(last)) {
		if ev := last[key]; ev.Type == clientv3.EventTypeDelete {
			ch.Deleted = append(ch.Deleted, strings.TrimPrefix(key, e.prefix))
		} else {
			ch.Put = append(ch.Put, e.entry(ev.Kv))
		}
	}
	return ch
}

// Hold grants a lease, puts the key with that lease, renews the lease, and watches the
// key. The client renews the lease whenever a third of it has passed. After ctx ends, the
// key expires with the lease.
func (e *Etcd) Hold(ctx context.Context, key string, value []byte, revision int64, ttl time.Duration) (<-chan struct{}, error) {
	ctx = e.identified(ctx)
	lease, err := withDeadline(ctx, func(ctx context.Context) (*clientv3.LeaseGrantResponse, error) {
		return e.client.Grant(ctx, int64((ttl+time.Second-1)/time.Second))
	})
	if err != nil {
		return nil, e.failed("write to", err)
	}
	got, err := withDeadline(ctx, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		compares := e.compares(Commit{Exact: map[string]int64{key: revision}})
		return e.client.Txn(ctx).If(compares...).Then(clientv3.OpPut(e.prefix+key, string(value), clientv3.WithLease(lease.ID))).Commit()
	})
	var renewals <-chan *clientv3.LeaseKeepAliveResponse
	switch {
	case err == nil && !got.Succeeded:
		err = &ConflictError{Keys: []string{key}}
	case err != nil:
		err = e.failed("write to", err)
	default:
		if renewals, err = e.client.KeepAlive(ctx, lease.ID); err != nil {
			err = e.failed("write to", err)
		}
	}
	if err != nil {
		// If this fails, the lease expires.
		withDeadline(ctx, func(ctx context.Context) (*clientv3.LeaseRevokeResponse, error) {
			return e.client.Revoke(ctx, lease.ID)
		})
		return nil, err
	}
	lost, back := make(chan struct{}), e.goesBack()
	watch := e.client.Watch(ctx, e.prefix+key, clientv3.WithRev(got.Header.Revision+1))
	go func() {
		defer close(lost)
		for {
			select {
			case <-back: // the store may not have the key
				return
			case _, ok := <-renewals:
				if !ok { // the lease or ctx has ended
					return
				}
			case r, ok := <-watch:
				if !ok || len(r.Events) > 0 { // !ok: the store has compacted the watch's revision
					return
				}
			}
		}
	}()
	return lost, nil
}

// Close closes the connection. Held keys expire with their leases.
func (e *Etcd) Close() error { return e.close() }
