// Package must ends tests at errors.
package must

import "testing"

// Succeed ends the test if err is not nil.
func Succeed(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
