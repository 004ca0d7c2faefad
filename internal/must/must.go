// Package must has the checks that most tests need: of errors and values, and waits for conditions.
package must

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Long skips the test if the flag -short is set. `make test` sets it.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long; run it with: make test-all")
	}
}

// Rounds returns the number of rounds of a test with random input: all, or a quarter of them if the
// flag -short is set.
func Rounds(all int) int {
	if testing.Short() {
		return (all + 3) / 4
	}
	return all
}

// Succeed ends the test if err is not nil.
func Succeed(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Get returns the value of a call, for example must.Get(os.ReadFile(path))(t). It ends the test if
// the call's error is not nil.
func Get[T any](value T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Succeed(t, err)
		return value
	}
}

// Eventually waits until check returns nil. After a minute it ends the test with the last error of
// check. The message begins with what, the name of the condition or the value.
func Eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
	}
	t.Fatalf("%s, after a minute: %v", what, err)
}

// EventuallyTrue waits until check returns true. After a minute it ends the test. The message begins
// with what, the name of the condition.
func EventuallyTrue(t testing.TB, what string, check func() bool) {
	t.Helper()
	Eventually(t, what, func() error {
		if !check() {
			return errors.New("the condition does not hold")
		}
		return nil
	})
}

// Fail reports a failure of the test if err is nil, or lacks one of the texts.
func Fail(t testing.TB, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("there is no error, want one that contains %q", texts)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error is %v, want one that contains %q", err, text)
		}
	}
}

// Equal reports a failure of the test if got differs from want.
func Equal[T any](t testing.TB, want, got T, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("the value differs from the wanted one (-want +got):\n%s", diff)
	}
}
