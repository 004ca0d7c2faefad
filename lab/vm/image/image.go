// Package image builds the file system that a guest boots from: a compressed
// archive that the kernel unpacks into memory. It has this program as the
// guest's init, the kernel's modules, and the traffic tools with the libraries
// that they need. There is no disk.
package image

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/renameio/v2"
	"github.com/klauspost/compress/gzip"
	"github.com/u-root/u-root/pkg/cpio"
	"github.com/u-root/u-root/pkg/ldd"

	"windtunnel/internal/lists"
	"windtunnel/lab/vm/kernel"
)

// Spec describes the contents of an image.
type Spec struct {
	Kernel kernel.Kernel
	// Init is the path of the program that is the guest's init.
	Init string
	// Programs are names of programs in PATH. Programs that are not installed are
	// left out.
	Programs []string
}

// Paths in the guest.
const (
	Init        = "/init"
	Programs    = "/usr/bin"
	Modules     = "/modules"
	ModuleOrder = Modules + "/order" // names of files in Modules, in the order of loading, one a line
)

// small files that programs expect.
var etc = map[string]string{
	"etc/passwd":        "root:x:0:0:root:/:/bin/false\nnobody:x:65534:65534:nobody:/:/bin/false\n",
	"etc/group":         "root:x:0:\nnogroup:x:65534:\n",
	"etc/hosts":         "127.0.0.1 localhost guest\n::1 localhost guest\n",
	"etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n",
	"etc/protocols":     "ip 0 IP\nicmp 1 ICMP\ntcp 6 TCP\nudp 17 UDP\nsctp 132 SCTP\n",
}

// folders to mount on.
var folders = []string{"proc", "sys", "dev", "tmp", "run", "var/tmp", "root"}

// file is one member of the archive, with its path, mode and contents.
type file struct {
	path    string
	mode    uint64
	content []byte
}

// Built returns the path of the image of a spec, in folder. If folder has an image with the
// same contents, Built uses it again.
func Built(spec Spec, folder string) (path string, err error) {
	files, err := gather(spec)
	if err != nil {
		return "", fmt.Errorf("build the guests' file system: %w", err)
	}
	path = filepath.Join(folder, "image-"+digest(files)+".cpio.gz")
	now := time.Now()
	if os.Chtimes(path, now, now) == nil { // it is there, and in use
		return path, nil
	}
	if err := write(files, path); err != nil {
		return "", fmt.Errorf("build the guests' file system: %w", err)
	}
	return path, prune(folder, path)
}

// gather reads everything that goes into the image.
func gather(spec Spec) ([]file, error) {
	own, err := os.ReadFile(spec.Init)
	if err != nil {
		return nil, fmt.Errorf("read the program that is to be its init: %w", err)
	}
	files := []file{{Init, 0o755, withoutSections(own)}}
	for name, text := range etc {
		files = append(files, file{name, 0o644, []byte(text)})
	}
	modules, err := moduleFiles(spec.Kernel)
	if err != nil {
		return nil, err
	}
	programs, err := programFiles(spec.Programs, spec.Init)
	if err != nil {
		return nil, err
	}
	files = append(append(files, modules...), programs...)
	slices.SortFunc(files, func(a, b file) int { return bytes.Compare([]byte(a.path), []byte(b.path)) })
	return slices.CompactFunc(files, func(a, b file) bool { return a.path == b.path }), nil
}

func moduleFiles(k kernel.Kernel) ([]file, error) {
	plan, err := k.Plan(kernel.Required)
	if err != nil {
		return nil, err
	}
	for _, name := range kernel.Useful {
		if more, err := k.Plan([]string{name}); err == nil {
			plan = append(plan, more...)
		}
	}
	var files []file
	var order bytes.Buffer
	seen := map[string]bool{}
	for _, m := range plan {
		if seen[m.Name] {
			continue
		}
		seen[m.Name] = true
		content, err := m.Read()
		if err != nil {
			return nil, err
		}
		files = append(files, file{filepath.Join(Modules, m.Name+".ko"), 0o644, content})
		fmt.Fprintln(&order, m.Name+".ko")
	}
	return append(files, file{ModuleOrder, 0o644, order.Bytes()}), nil
}

// programFiles reads the installed programs, and the libraries of the programs and
// of init. It leaves out programs that are not installed.
func programFiles(names []string, init string) ([]file, error) {
	libraries, err := librariesOf(init)
	if err != nil {
		return nil, err
	}
	var files []file
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		libs, err := librariesOf(path)
		if err != nil {
			return nil, err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("copy %s into the VM's image: %w", name, err)
		}
		files = append(files, file{filepath.Join(Programs, name), 0o755, content})
		libraries = append(libraries, libs...)
	}
	for _, path := range libraries {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("copy a library into the VM's image: %w", err)
		}
		files = append(files, file{path, 0o755, content})
	}
	return files, nil
}

// librariesOf lists the paths of the loader and of all libraries that a program
// needs, directly or indirectly. The program's loader finds them. A static program
// has none.
func librariesOf(program string) ([]string, error) {
	f, err := elf.Open(program)
	if err != nil {
		return nil, fmt.Errorf("find the libraries of %s: read it as an ELF program: %w", program, err)
	}
	f.Close()
	libraries, err := ldd.List(program)
	if err != nil {
		return nil, fmt.Errorf("find the libraries of %s: %w", program, err)
	}
	for _, path := range libraries {
		if !filepath.IsAbs(path) { // the loader prints "NAME => not found"
			return nil, fmt.Errorf("%s needs a library that is not installed; `ldd %s` names it", program, program)
		}
	}
	return libraries, nil
}

// digest returns a hash of the paths, modes and contents, and of the format of the image.
func digest(files []file) string {
	h := sha256.New()
	fmt.Fprintln(h, "3", folders)
	for _, f := range files {
		fmt.Fprintf(h, "%s %o %d\n", f.path, f.mode, len(f.content))
		h.Write(f.content)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// write makes the archive under another name first: two nodes may build the
// same image at the same time.
func write(files []file, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)))
	if err != nil {
		return err
	}
	defer f.Cleanup()
	if err := pack(files, f); err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}

func pack(files []file, to io.Writer) error {
	z, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
	if err != nil {
		return err
	}
	records := lists.Map(folders, func(d string) cpio.Record { return cpio.Directory(d, 0o755) })
	for _, f := range files {
		records = append(records, cpio.StaticRecord(f.content, cpio.Info{Name: f.path, Mode: cpio.S_IFREG | f.mode}))
	}
	// Linux does not create missing folders when it unpacks an archive.
	w := cpio.NewDedupWriter(cpio.Newc.Writer(z))
	return errors.Join(cpio.WriteRecordsAndDirs(w, records), cpio.WriteTrailer(w), z.Close())
}

// kept is the number of images that prune keeps. Each tool needs one.
const kept = 8

// prune removes the images whose last use was longest ago.
func prune(folder, but string) error {
	paths, err := filepath.Glob(filepath.Join(folder, "image-*.cpio.gz"))
	if err != nil {
		return err
	}
	used := func(path string) time.Time {
		i, err := os.Stat(path)
		if err != nil {
			return time.Time{}
		}
		return i.ModTime()
	}
	slices.SortFunc(paths, func(a, b string) int { return used(b).Compare(used(a)) })
	for i, p := range paths {
		if i >= kept && p != but {
			if err := os.Remove(p); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("remove an old image: %w", err)
			}
		}
	}
	return nil
}

// Offsets in a 64-bit ELF header (elf(5)).
const (
	segmentTable  = 0x20 // e_phoff, 8 bytes
	segmentSize   = 0x36 // e_phentsize and e_phnum, 2 bytes each
	sectionTable  = 0x28 // e_shoff, 8 bytes
	sectionCounts = 0x3c // e_shnum and e_shstrndx, 2 bytes each
	headerLength  = 0x40
)

// withoutSections removes the bytes after a program's segments: symbols and debugging
// information, which no loader reads and each boot would unpack. Files other than 64-bit
// little-endian programs stay unchanged.
func withoutSections(program []byte) []byte {
	file, err := elf.NewFile(bytes.NewReader(program))
	if err != nil || file.Class != elf.ELFCLASS64 || file.Data != elf.ELFDATA2LSB {
		return program
	}
	at, size, count := binary.LittleEndian.Uint64(program[segmentTable:]), binary.LittleEndian.Uint16(program[segmentSize:]), binary.LittleEndian.Uint16(program[segmentSize+2:])
	end := at + uint64(size)*uint64(count)
	for _, p := range file.Progs {
		end = max(end, p.Off+p.Filesz)
	}
	if end < headerLength || end > uint64(len(program)) {
		return program
	}
	short := bytes.Clone(program[:end])
	clear(short[sectionTable : sectionTable+8])
	clear(short[sectionCounts : sectionCounts+4])
	return short
}
