package meter

import "bytes"

// scanner splits a /proc text into lines and fields without allocating: light
// readings are taken ten times a second under traffic.
type scanner struct{ rest []byte }

// line returns the next line without its end; ok is false at the end of the
// text.
func (s *scanner) line() (line []byte, ok bool) {
	if len(s.rest) == 0 {
		return nil, false
	}
	line, s.rest, _ = bytes.Cut(s.rest, newline)
	return line, true
}

var newline = []byte{'\n'}

// field returns the next field of a line, up to a blank; empty at the end.
func (s *scanner) field() []byte {
	i := 0
	for i < len(s.rest) && isBlank(s.rest[i]) {
		i++
	}
	j := i
	for j < len(s.rest) && !isBlank(s.rest[j]) {
		j++
	}
	f := s.rest[i:j]
	s.rest = s.rest[j:]
	return f
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// decimal parses an unsigned number. ok is false for anything else, and for a
// number that overflows.
func decimal(b []byte) (n uint64, ok bool) {
	if len(b) == 0 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		d := uint64(c - '0')
		if n > (1<<64-1-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}
