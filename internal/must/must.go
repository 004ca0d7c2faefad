// Package must ends tests at errors, and waits for conditions.
package must

import (
	"errors"
	"testing"
	"time"
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
