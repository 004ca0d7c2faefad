package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
)

// Layout of the first two pages of a bbolt database (internal/common/meta.go of bbolt): a page
// header of 16 bytes, and then a meta. Each commit writes the meta of the older page.
const (
	metaAt       = 16
	metaMagic    = 0xED0CDAED
	metaPageSize = 8  // offset of the page size in a meta
	metaPages    = 40 // offset of the number of pages
	metaSum      = 56 // offset of the checksum
	metaBytes    = 64
)

// checkPages returns an error if a bbolt database lost data in a way that bbolt does not report.
// If one meta is damaged, bbolt silently uses the other, which has an older state. If the file is
// too short, bbolt reads memory that does not exist. A missing or empty file is no error.
func checkPages(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	size, need, valid := int64(os.Getpagesize()), int64(0), 0
	var wrong error
	for page := range int64(2) {
		var meta [metaBytes]byte
		_, err := f.ReadAt(meta[:], page*size+metaAt)
		sum := fnv.New64a()
		sum.Write(meta[:metaSum])
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return err
		case binary.NativeEndian.Uint32(meta[:]) != metaMagic || binary.NativeEndian.Uint64(meta[metaSum:]) != sum.Sum64():
			wrong = fmt.Errorf("page %d of the file is damaged", page)
			continue
		}
		valid++
		if page == 0 {
			size = int64(binary.NativeEndian.Uint32(meta[metaPageSize:]))
		}
		need = max(need, size*int64(binary.NativeEndian.Uint64(meta[metaPages:])))
	}
	switch {
	case valid == 0:
		return errors.New("the file is not a bbolt database")
	case wrong != nil:
		return wrong
	case info.Size() < need:
		return fmt.Errorf("the file is cut off: it has %d bytes and needs %d", info.Size(), need)
	}
	return nil
}
