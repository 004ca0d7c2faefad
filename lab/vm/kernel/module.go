package kernel

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Module is a module's file.
type Module struct {
	Name string // with underscores
	Path string
}

// Plan returns modules and the modules that they depend on, in the order of loading. It
// omits modules that are built into the kernel.
func (k Kernel) Plan(names []string) ([]Module, error) {
	p := planner{kernel: k, files: map[string]string{}, builtin: map[string]bool{}, state: map[string]int{}}
	if err := p.look(); err != nil {
		return nil, err
	}
	for _, n := range names {
		if err := p.add(underscores(n)); err != nil {
			return nil, err
		}
	}
	return p.plan, nil
}

type planner struct {
	kernel  Kernel
	files   map[string]string // module to path
	builtin map[string]bool
	state   map[string]int
	plan    []Module
}

const (
	underWay = 1 + iota
	planned
)

// look returns the kernel's modules. It refuses a kernel without a modules folder, because
// such a kernel does not show its built-in modules.
func (p *planner) look() error {
	text, err := os.ReadFile(filepath.Join(p.kernel.Modules, "modules.builtin"))
	if err != nil {
		return fmt.Errorf("kernel %s cannot be used: its modules are not where they are looked for: %w", p.kernel.Image, err)
	}
	for line := range strings.Lines(string(text)) {
		p.builtin[moduleName(strings.TrimSpace(line))] = true
	}
	err = filepath.WalkDir(filepath.Join(p.kernel.Modules, "kernel"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && strings.Contains(e.Name(), ".ko") && !e.IsDir() {
			p.files[moduleName(path)] = path
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("list the modules of kernel %s: %w", p.kernel.Release, err)
	}
	return nil
}

// moduleName returns the module's name of a path as in /proc/modules: without folder and
// endings, with underscores.
func moduleName(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".ko")
	return underscores(name)
}

func underscores(name string) string { return strings.ReplaceAll(name, "-", "_") }

func (p *planner) add(name string) error {
	if p.builtin[name] || p.state[name] == planned {
		return nil
	}
	if p.state[name] == underWay {
		return fmt.Errorf("module %s of kernel %s needs itself", name, p.kernel.Release)
	}
	path, ok := p.files[name]
	if !ok {
		return fmt.Errorf("kernel %s cannot be used: it has no module %s", p.kernel.Release, name)
	}
	p.state[name] = underWay
	content, err := Module{name, path}.Read()
	if err != nil {
		return err
	}
	needs, err := depends(content)
	if err != nil {
		return fmt.Errorf("read what module %s needs: %w", path, err)
	}
	for _, n := range needs {
		if err := p.add(underscores(n)); err != nil {
			return fmt.Errorf("module %s: %w", name, err)
		}
	}
	p.state[name] = planned
	p.plan = append(p.plan, Module{name, path})
	return nil
}

// unpackers are the programs for the compressions that distributions use.
var unpackers = map[string]string{".xz": "xz", ".zst": "zstd", ".gz": "gzip"}

// Read returns a module's content, unpacked.
func (m Module) Read() ([]byte, error) {
	content, err := os.ReadFile(m.Path)
	if err != nil {
		return nil, fmt.Errorf("read module %s: %w", m.Name, err)
	}
	program, packed := unpackers[filepath.Ext(m.Path)]
	if !packed {
		return content, nil
	}
	cmd := exec.Command(program, "-dc")
	cmd.Stdin = bytes.NewReader(content)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("unpack module %s with %s (is it installed?): %w", m.Path, program, err)
	}
	return out, nil
}

// depends reads the names of the modules that a module needs from its
// ".modinfo" section: strings "key=value" (include/linux/moduleparam.h).
func depends(module []byte) ([]string, error) {
	file, err := elf.NewFile(bytes.NewReader(module))
	if err != nil {
		return nil, err
	}
	section := file.Section(".modinfo")
	if section == nil {
		return nil, errors.New("it has no .modinfo section")
	}
	info, err := section.Data()
	if err != nil {
		return nil, err
	}
	for text := range bytes.SplitSeq(info, []byte{0}) {
		if list, ok := strings.CutPrefix(string(text), "depends="); ok && list != "" {
			return strings.Split(list, ","), nil
		}
	}
	return nil, nil
}
