// Package cpio writes archives in the new ASCII format ("newc"), which Linux
// unpacks as its first file system (the kernel's
// Documentation/driver-api/early-userspace/buffer-format.rst, cpio(5)).
package cpio

import (
	"fmt"
	"io"
	"strings"
)

// Writer writes an archive. The first error sticks and is returned by every
// later call.
type Writer struct {
	to   io.Writer
	at   int64 // bytes written
	node uint32
	err  error
	made map[string]bool // folders
}

// File types of st_mode, inode(7).
const (
	typeFolder  = 0o040000
	typeFile    = 0o100000
	typeLink    = 0o120000
	magic       = "070701"
	headerBytes = 6 + 13*8
	trailer     = "TRAILER!!!"
	longest     = 1<<32 - 1 // a size has 8 hexadecimal digits
)

// NewWriter begins an archive.
func NewWriter(to io.Writer) *Writer { return &Writer{to: to, made: map[string]bool{}} }

// Folder adds a folder and those above it, each once. Paths are relative to
// the root, with or without a leading slash.
func (w *Writer) Folder(path string) error {
	path = clean(path)
	if path == "" || w.made[path] {
		return w.err
	}
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		if err := w.Folder(path[:i]); err != nil {
			return err
		}
	}
	w.made[path] = true
	return w.entry(path, typeFolder|0o755, nil)
}

// File adds a regular file, and the folders above it.
func (w *Writer) File(path string, mode uint32, content []byte) error {
	if err := w.parent(path); err != nil {
		return err
	}
	return w.entry(clean(path), typeFile|mode&0o7777, content)
}

// Link adds a symbolic link, and the folders above it.
func (w *Writer) Link(path, target string) error {
	if err := w.parent(path); err != nil {
		return err
	}
	return w.entry(clean(path), typeLink|0o777, []byte(target))
}

func (w *Writer) parent(path string) error {
	path = clean(path)
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return w.Folder(path[:i])
	}
	return w.err
}

// Close ends the archive.
func (w *Writer) Close() error {
	w.node = 0 // the trailer's is 0 by custom
	w.header(trailer, 0, 0)
	return w.err
}

func clean(path string) string { return strings.Trim(path, "/") }

func (w *Writer) entry(path string, mode uint32, content []byte) error {
	if w.err == nil && int64(len(content)) > longest {
		w.err = fmt.Errorf("archive %s: %d bytes are more than cpio's newc format can say (4 GiB)", path, len(content))
	}
	w.node++
	w.header(path, mode, len(content))
	w.write(content)
	w.pad()
	return w.err
}

// header writes the fields in the order of cpio(5): inode, mode, uid, gid,
// links, mtime, file size, device major and minor, special device's major and
// minor, name size with its NUL, check. All times are 0, so that the same
// files make the same archive.
func (w *Writer) header(path string, mode uint32, size int) {
	fields := [13]uint32{0: w.node, 1: mode, 4: 1, 6: uint32(size), 11: uint32(len(path) + 1)}
	head := make([]byte, 0, headerBytes+len(path)+1)
	head = append(head, magic...)
	for _, f := range fields {
		head = fmt.Appendf(head, "%08X", f)
	}
	head = append(head, path...)
	w.write(append(head, 0))
	w.pad()
}

func (w *Writer) write(b []byte) {
	if w.err != nil || len(b) == 0 {
		return
	}
	n, err := w.to.Write(b)
	w.at += int64(n)
	if err != nil {
		w.err = fmt.Errorf("write the archive: %w", err)
	}
}

// pad fills up to a multiple of four bytes.
func (w *Writer) pad() { w.write(make([]byte, -w.at&3)) }
