package folded

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// wireForm is the stored form of a profile. It has every name once, and every stack as
// numbers: program, category, count, nanos, and its frames, root first.
type wireForm struct {
	Version int `json:"version"`
	Profile
	Names  []string   `json:"names"`
	Stacks [][]uint64 `json:"stacks"`
}

const (
	version    = 1
	stackHead  = 4         // numbers before the frames
	maxEncoded = 256 << 20 // bytes of JSON that Decode takes; a profile of an hour has a few MB
)

// Encode writes a profile as text: JSON, compressed with gzip, in base64.
func Encode(p *Profile) (string, error) {
	f := wireForm{Version: version, Profile: *p}
	index := map[string]uint64{}
	name := func(s string) uint64 {
		i, ok := index[s]
		if !ok {
			i = uint64(len(f.Names))
			index[s] = i
			f.Names = append(f.Names, s)
		}
		return i
	}
	for _, s := range p.Stacks {
		row := []uint64{name(s.Comm), name(s.Category), s.Count, s.Nanos}
		for _, frame := range s.Frames {
			row = append(row, name(frame))
		}
		f.Stacks = append(f.Stacks, row)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := errors.Join(json.NewEncoder(z).Encode(f), z.Close()); err != nil {
		return "", fmt.Errorf("encode the profile of %s: %w", p.Node, err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes()), nil
}

// Decode reads the text of Encode. Damaged text is an error, never an empty profile.
func Decode(text string) (*Profile, error) {
	z, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(text)))
	if err != nil {
		return nil, fmt.Errorf("decode a profile of %d characters: it is cut off or no gzip in base64: %w", len(text), err)
	}
	raw, err := io.ReadAll(io.LimitReader(z, maxEncoded+1))
	if err != nil {
		return nil, fmt.Errorf("decode a profile of %d characters: the text was cut off or changed: %w", len(text), err)
	}
	if len(raw) > maxEncoded {
		return nil, fmt.Errorf("decode a profile: it unpacks to more than %d MB, which no profile does", maxEncoded>>20)
	}
	var f wireForm
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fmt.Errorf("decode a profile: the unpacked text is not a profile: %w", err)
	}
	if f.Version != version {
		return nil, fmt.Errorf("decode a profile: it has version %d and this program reads version %d; take the profile anew or use the program that wrote it", f.Version, version)
	}
	return f.profile()
}

func (f *wireForm) profile() (*Profile, error) {
	p := &f.Profile
	if !(f.Seconds >= 0) || !(f.Rate >= 0) || slices.ContainsFunc(f.CPUs, func(c int) bool { return c < 0 }) {
		return nil, fmt.Errorf("decode a profile: a negative figure (%g s at %g Hz on CPUs %v)", f.Seconds, f.Rate, f.CPUs)
	}
	var nanos uint64
	for i, row := range f.Stacks {
		if len(row) < stackHead {
			return nil, fmt.Errorf("decode a profile: stack %d has %d numbers, and %d are the fewest", i, len(row), stackHead)
		}
		if row[3] > math.MaxInt64-nanos {
			return nil, fmt.Errorf("decode a profile: the stacks up to number %d take more time than a clock can hold", i)
		}
		nanos += row[3]
		s := Stack{Count: row[2], Nanos: row[3]}
		names := make([]string, 0, len(row)-2)
		for _, n := range slices.Concat(row[:2], row[stackHead:]) {
			if n >= uint64(len(f.Names)) {
				return nil, fmt.Errorf("decode a profile: stack %d refers to name %d of %d", i, n, len(f.Names))
			}
			names = append(names, f.Names[n])
		}
		s.Comm, s.Category = names[0], names[1]
		if len(names) > 2 {
			s.Frames = names[2:]
		}
		p.Stacks = append(p.Stacks, s)
	}
	return p, nil
}
