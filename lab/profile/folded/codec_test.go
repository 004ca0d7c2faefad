package folded

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"windtunnel/internal/must"
)

func encode(t testing.TB, p *Profile) string {
	t.Helper()
	return must.Get(Encode(p))(t)
}

// packed is any text as Encode would pack it.
func packed(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	must.Get(z.Write([]byte(text)))(t)
	must.Succeed(t, z.Close())
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

func TestAnEncodedProfileIsDecodedUnchanged(t *testing.T) {
	p := must.Get(Decode(encode(t, sample())))(t)
	must.Equal(t, sample(), p)
}

func TestAnEncodedProfileIsSmall(t *testing.T) {
	p := sample()
	for i := range 2000 {
		p.Stacks = append(p.Stacks, Stack{Comm: "gen", Category: "TCP", Count: uint64(i), Nanos: uint64(i) * 1e6,
			Frames: append(strings.Split(strings.Repeat("some_kernel_function_[k] ", 30), " ")[:30], fmt.Sprintf("leaf%d_[k]", i%97))})
	}
	if n := len(encode(t, p)); n > 40_000 {
		t.Errorf("2,000 stacks of 31 frames take %d bytes", n)
	}
}

func TestADamagedProfileIsRefused(t *testing.T) {
	text := encode(t, sample())
	for name, test := range map[string]struct{ text, want string }{
		"empty":           {"", "cut off"},
		"no base64":       {"%%%", "no gzip in base64"},
		"cut":             {text[:len(text)/2], "cut off"},
		"no JSON":         {packed(t, "hello"), "not a profile"},
		"later version":   {packed(t, `{"version":7}`), "version 7"},
		"name beyond":     {packed(t, `{"version":1,"names":["a"],"stacks":[[0,1,1,1]]}`), "refers to name 1 of 1"},
		"short stack":     {packed(t, `{"version":1,"names":["a"],"stacks":[[0,0]]}`), "has 2 numbers"},
		"negative length": {packed(t, `{"version":1,"seconds":-1}`), "negative"},
		"too long":        {packed(t, `{"version":1,"names":["a"],"stacks":[[0,0,1,18446744073709551615]]}`), "more time"},
		"negative count":  {packed(t, `{"version":1,"names":["a"],"stacks":[[0,0,-1,1]]}`), "not a profile"},
	} {
		if p, err := Decode(test.text); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, %v; want an error with %q", name, p, err, test.want)
		}
	}
	// A flipped bit anywhere is noticed: gzip has a checksum.
	raw := []byte(text)
	raw[len(raw)/2] ^= 1
	if p, err := Decode(string(raw)); err == nil {
		t.Errorf("a changed letter went unnoticed: %+v", p)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(encode(f, sample()))
	f.Add(packed(f, `{"version":1,"names":["a","b"],"seconds":1,"rate":997,"stacks":[[0,1,5,5000,0,1,1]]}`))
	f.Add("H4sI")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Decode(text)
		if (p == nil) == (err == nil) {
			t.Fatalf("profile %v and error %v", p, err)
		}
		if err == nil {
			Categories(p)
			Flame(p)
			again, err := Decode(encode(t, p))
			if err != nil || len(again.Stacks) != len(p.Stacks) {
				t.Fatalf("encoded anew: %v", err)
			}
		}
	})
}

func FuzzParseFolded(f *testing.F) {
	f.Add("gen;main;tcp_sendmsg_[k] 12\nidle 4\n")
	f.Add("a;b")
	f.Fuzz(func(t *testing.T, text string) {
		stacks, err := parseFolded(text)
		if err != nil {
			return
		}
		p := Profile{Stacks: stacks}
		again, err := parseFolded(p.Folded())
		if err != nil || len(again) != len(stacks) {
			t.Fatalf("%q came back as %d stacks of %d: %v", text, len(again), len(stacks), err)
		}
	})
}

// parseFolded parses folded stacks. The text has sample counts, but no times and no
// categories.
func parseFolded(text string) ([]Stack, error) {
	var stacks []Stack
	for n, line := range strings.Split(text, "\n") {
		if line == "" {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		if at < 0 {
			return nil, fmt.Errorf("folded stacks, line %d: %.60q has no count; want program;function;… and, after a space, the number of samples", n+1, line)
		}
		count, err := strconv.ParseUint(line[at+1:], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("folded stacks, line %d: %.30q is not a number of samples: %w", n+1, line[at+1:], err)
		}
		comm, rest, more := strings.Cut(line[:at], ";")
		s := Stack{Comm: comm, Count: count}
		if more {
			s.Frames = strings.Split(rest, ";")
		}
		stacks = append(stacks, s)
	}
	return stacks, nil
}
