package profile

import (
	"debug/elf"
	"debug/gosym"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// userSymbols has the functions of one executable file or library.
type userSymbols struct {
	segments  []segment
	functions symbols // by virtual address
}

// segment has the virtual addresses of a part of the file.
type segment struct{ offset, size, address uint64 }

// openUserSymbols reads a file's symbol tables: .symtab and .dynsym. For a stripped Go
// program it reads .gopclntab, which every Go program needs at run time.
func openUserSymbols(r io.ReaderAt) (s *userSymbols, err error) {
	defer func() { // debug/elf and debug/gosym panic on some damaged files
		if p := recover(); p != nil {
			s, err = nil, fmt.Errorf("read the symbols: the file is damaged: %v", p)
		}
	}()
	f, err := elf.NewFile(r)
	if err != nil {
		return nil, fmt.Errorf("read the symbols: %w", err)
	}
	s = &userSymbols{}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
			s.segments = append(s.segments, segment{p.Off, p.Filesz, p.Vaddr})
		}
	}
	list := append(elfFunctions(f.Symbols()), elfFunctions(f.DynamicSymbols())...)
	if len(list) == 0 || f.Section(".symtab") == nil {
		list = append(list, goFunctions(f)...)
	}
	s.functions = newSymbols(list)
	return s, nil
}

func elfFunctions(symbols []elf.Symbol, err error) []function {
	if err != nil { // there is no such table
		return nil
	}
	var list []function
	for _, s := range symbols {
		if t := elf.ST_TYPE(s.Info); (t == elf.STT_FUNC || t == elf.STT_GNU_IFUNC) && s.Section != elf.SHN_UNDEF && s.Name != "" {
			f := function{start: s.Value, name: s.Name}
			if s.Size > 0 {
				f.end = s.Value + s.Size
			}
			list = append(list, f)
		}
	}
	return list
}

func goFunctions(f *elf.File) []function {
	lines, text := f.Section(".gopclntab"), f.Section(".text")
	if lines == nil {
		lines = f.Section(".data.rel.ro.gopclntab") // position-independent
	}
	if lines == nil || text == nil {
		return nil
	}
	data, err := lines.Data()
	if err != nil {
		return nil
	}
	table, err := gosym.NewTable(nil, gosym.NewLineTable(data, text.Addr))
	if err != nil {
		return nil
	}
	list := make([]function, 0, len(table.Funcs))
	for _, fn := range table.Funcs {
		list = append(list, function{fn.Entry, fn.End, fn.Name})
	}
	return list
}

// name returns the function at an offset of the file.
func (s *userSymbols) name(offset uint64) (string, bool) {
	for _, seg := range s.segments {
		if offset >= seg.offset && offset-seg.offset < seg.size {
			return s.functions.name(offset - seg.offset + seg.address)
		}
	}
	return "", false
}

// files has the symbols of the files that were read; nil if a file has none.
type files map[string]*userSymbols

// of returns the symbols of a file that a process has mapped.
func (fs files) of(pid uint32, file string) *userSymbols {
	s, ok := fs[file]
	if ok {
		return s
	}
	if file == vdsoName {
		s = openVDSO()
	} else {
		s = openMapped(pid, file)
	}
	fs[file] = s
	return s
}

// openMapped opens the file by its path here. If that fails, it uses the path in the other
// process's root (a container), and then the process's program (a deleted or replaced file).
func openMapped(pid uint32, file string) *userSymbols {
	if !strings.HasPrefix(file, "/") {
		return nil // [stack], //anon
	}
	path := strings.TrimSuffix(file, " (deleted)")
	candidates := []string{path, fmt.Sprintf("/proc/%d/root%s", pid, path)}
	exe := fmt.Sprintf("/proc/%d/exe", pid)
	if target, err := os.Readlink(exe); err == nil && target == file {
		candidates = slices.Insert(candidates, 0, exe)
	}
	for _, c := range candidates {
		f, err := os.Open(c)
		if err != nil {
			continue
		}
		s, err := openUserSymbols(f)
		f.Close()
		if err == nil {
			return s
		}
	}
	return nil
}

// userName returns the function at an address of a process. If the function is not known,
// it returns the name of the file, else [unknown].
func userName(fs files, pid uint32, p *process, address uint64) string {
	if p == nil {
		return "[unknown]"
	}
	m, ok := p.find(address)
	if !ok {
		return "[unknown]"
	}
	if s := fs.of(pid, m.file); s != nil {
		if name, ok := s.name(address - m.start + m.offset); ok {
			return name
		}
	}
	return "[" + strings.Trim(filepath.Base(m.file), "[]") + "]"
}
