package cpio

import (
	"errors"
	"fmt"
	"io"
	"strconv"
)

// Entry is one member of an archive.
type Entry struct {
	Path    string
	Mode    uint32 // st_mode, with the file's type
	Content []byte // of a link: its target
}

// mostName bounds a name: a corrupt header shall not make us ask for gigabytes.
const mostName = 4096

// Read reads a whole archive of at most that many bytes of content.
func Read(from io.Reader, most int64) ([]Entry, error) {
	r := &reader{from: from}
	var all []Entry
	for {
		e, size, err := r.next()
		if err != nil {
			return nil, fmt.Errorf("read the archive at byte %d: %w", r.at, err)
		}
		if e.Path == trailer {
			return all, nil
		}
		if most -= size; most < 0 {
			return nil, fmt.Errorf("read the archive: %s makes it larger than what was expected at most", e.Path)
		}
		e.Content = make([]byte, size)
		if err := errors.Join(r.fill(e.Content), r.pad()); err != nil {
			return nil, fmt.Errorf("read %s in the archive: %w", e.Path, err)
		}
		all = append(all, e)
	}
}

type reader struct {
	from io.Reader
	at   int64
}

func (r *reader) next() (e Entry, size int64, err error) {
	var head [headerBytes]byte
	if err := r.fill(head[:]); err != nil {
		return e, 0, err
	}
	if string(head[:len(magic)]) != magic {
		return e, 0, fmt.Errorf("a header begins with %q and not with %s", head[:len(magic)], magic)
	}
	var fields [13]uint64
	for i := range fields {
		text := string(head[len(magic)+8*i:][:8])
		if fields[i], err = strconv.ParseUint(text, 16, 32); err != nil {
			return e, 0, fmt.Errorf("field %d of a header is %q and not 8 hexadecimal digits", i, text)
		}
	}
	if fields[11] < 1 || fields[11] > mostName {
		return e, 0, fmt.Errorf("a name of %d bytes", fields[11])
	}
	name := make([]byte, fields[11])
	if err := errors.Join(r.fill(name), r.pad()); err != nil {
		return e, 0, err
	}
	if name[len(name)-1] != 0 {
		return e, 0, errors.New("a name does not end")
	}
	return Entry{Path: string(name[:len(name)-1]), Mode: uint32(fields[1])}, int64(fields[6]), nil
}

func (r *reader) fill(b []byte) error {
	n, err := io.ReadFull(r.from, b)
	r.at += int64(n)
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (r *reader) pad() error { return r.fill(make([]byte, -r.at&3)) }
