// Package must has the checks that most tests need: errors, values, and waits for conditions.
package must

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Succeed ends the test if err is not nil.
func Succeed(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Eventually waits until a condition holds. It ends the test with the condition's error after a minute.
func Eventually(t testing.TB, what string, is func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if err = is(); err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}

// Become waits until a condition holds. It ends the test after a minute.
func Become(t testing.TB, what string, is func() bool) {
	t.Helper()
	Eventually(t, what, func() error {
		if is() {
			return nil
		}
		return errors.New("not within a minute")
	})
}

// Fail reports a failure of the test if err is nil, or lacks one of the texts.
func Fail(t testing.TB, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("the error is %v, want one that contains %q", err, text)
		}
	}
}

// Equal reports a failure of the test if got differs from want.
func Equal(t testing.TB, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
