// Package sharedlib finds the shared libraries that a program needs to run, so
// that the program can be taken to a place that has none.
package sharedlib

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Finder looks for libraries as ld.so(8) does, without LD_LIBRARY_PATH and
// without the cache: in the folders that a file names itself (DT_RUNPATH,
// DT_RPATH), then in those of the system.
type Finder struct {
	// Folders of the system, in order.
	Folders []string
}

// System looks where this machine's loader looks: in the folders that
// /etc/ld.so.conf names, then in the loader's own.
func System() *Finder {
	folders := configured("/etc/ld.so.conf", 4)
	return &Finder{append(folders, "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib")}
}

// configured reads folders from a loader's configuration: a folder a line, or
// "include GLOB". What cannot be read names no folder.
func configured(file string, depth int) []string {
	text, err := os.ReadFile(file)
	if err != nil || depth == 0 {
		return nil
	}
	var folders []string
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		switch {
		case len(f) == 0:
		case f[0] == "include":
			for _, glob := range f[1:] {
				files, _ := filepath.Glob(glob) // an odd pattern matches nothing
				for _, more := range files {
					folders = append(folders, configured(more, depth-1)...)
				}
			}
		case filepath.IsAbs(f[0]):
			folders = append(folders, f[0])
		}
	}
	return folders
}

// Needed lists, as absolute paths in order of discovery, the loader and every
// library that the program at path needs, directly or not; none for a static
// program. Paths are as the loader asks for them: links are not followed.
func (f *Finder) Needed(path string) ([]string, error) {
	var list []string
	seen := map[string]bool{}
	queue := []string{path}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		o, err := open(at)
		if err != nil {
			return nil, err
		}
		if o.loader != "" && !seen[o.loader] {
			seen[o.loader] = true
			list = append(list, o.loader)
		}
		for _, name := range o.needed {
			found, err := f.find(name, at, o)
			if err != nil {
				return nil, err
			}
			if !seen[found] {
				seen[found] = true
				list = append(list, found)
				queue = append(queue, found)
			}
		}
	}
	return list, nil
}

// object is what a file says of its needs.
type object struct {
	class   elf.Class
	machine elf.Machine
	loader  string   // of a program (PT_INTERP)
	needed  []string // names (DT_NEEDED)
	folders []string // its own (DT_RUNPATH or DT_RPATH)
}

func open(path string) (object, error) {
	file, err := elf.Open(path)
	if err != nil {
		return object{}, fmt.Errorf("find the libraries of %s: it is no ELF program that can be read: %w", path, err)
	}
	defer file.Close()
	o := object{class: file.Class, machine: file.Machine}
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP && p.Filesz > 0 && p.Filesz < 4096 {
			text := make([]byte, p.Filesz)
			if _, err := p.ReadAt(text, 0); err != nil {
				return o, fmt.Errorf("find the loader of %s: %w", path, err)
			}
			o.loader = string(bytes.TrimRight(text, "\x00"))
		}
	}
	if o.needed, err = dynamic(file, elf.DT_NEEDED); err != nil {
		return o, fmt.Errorf("find the libraries of %s: %w", path, err)
	}
	for _, tag := range []elf.DynTag{elf.DT_RUNPATH, elf.DT_RPATH} {
		folders, err := dynamic(file, tag)
		if err != nil {
			return o, fmt.Errorf("find the library folders of %s: %w", path, err)
		}
		for _, f := range folders {
			for folder := range strings.SplitSeq(f, ":") {
				origin := filepath.Dir(path)
				folder = strings.NewReplacer("$ORIGIN", origin, "${ORIGIN}", origin).Replace(folder)
				if filepath.IsAbs(folder) {
					o.folders = append(o.folders, folder)
				}
			}
		}
	}
	return o, nil
}

// dynamic reads a dynamic section's strings; a static program has none.
func dynamic(file *elf.File, tag elf.DynTag) ([]string, error) {
	list, err := file.DynString(tag)
	var format *elf.FormatError
	if err != nil && !errors.As(err, &format) {
		return nil, nil // no dynamic section
	}
	return list, err
}

// find looks for a library of the same machine as who needs it.
func (f *Finder) find(name, neededBy string, o object) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	for _, folder := range slices.Concat(o.folders, f.Folders) {
		path := filepath.Join(folder, name)
		file, err := elf.Open(path)
		if err != nil {
			continue
		}
		fits := file.Class == o.class && file.Machine == o.machine
		file.Close()
		if fits {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s needs the library %s, which is in none of %s", neededBy, name, strings.Join(slices.Concat(o.folders, f.Folders), ", "))
}
