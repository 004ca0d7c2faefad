package agent

import (
	"io"
	"testing"
	"testing/synctest"
	"time"
)

func TestAReaderExpiresOnlyWhenNothingArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe()
		defer out.Close()
		r := Expire(in, 10*time.Second)
		started := time.Now()
		go func() {
			for range 3 {
				time.Sleep(9 * time.Second)
				_, _ = out.Write([]byte("x"))
			}
		}()
		text, err := io.ReadAll(r)
		if took := time.Since(started); string(text) != "xxx" || err != nil || took != 37*time.Second {
			t.Errorf("read %q, %v after %v; want xxx after 37s", text, err, took)
		}
	})
}
