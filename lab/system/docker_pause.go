package system

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
)

// pauseProgram is the only file in the containers' image: an executable that sleeps
// for ever. A container runs as long as its first process; the lab starts tools from
// outside. The program needs no library and no other file, so the lab builds the
// image without a download.
type pauseProgram struct {
	machine elf.Machine
	code    []byte
}

// pausePrograms has a program for each GOARCH. The program calls pause(2) in an
// endless loop. On an architecture without pause(2) it calls ppoll(2) without a
// timeout.
var pausePrograms = map[string]pauseProgram{
	"amd64": {elf.EM_X86_64, []byte{
		0xb8, 34, 0, 0, 0, // mov eax, 34 (pause)
		0x0f, 0x05, // syscall
		0xeb, 0xf7, // jmp to the start
	}},
	"arm64": {elf.EM_AARCH64, []byte{
		0x00, 0x00, 0x80, 0xd2, // mov x0, 0
		0x01, 0x00, 0x80, 0xd2, // mov x1, 0
		0x02, 0x00, 0x80, 0xd2, // mov x2, 0
		0x03, 0x00, 0x80, 0xd2, // mov x3, 0
		0x28, 0x09, 0x80, 0xd2, // mov x8, 73 (ppoll)
		0x01, 0x00, 0x00, 0xd4, // svc 0
		0xfa, 0xff, 0xff, 0x17, // b to the start
	}},
}

const pausePath = "/pause"

// pauseImage returns the image's root directory as a tar archive, for `docker
// import`.
func pauseImage(arch string) ([]byte, error) {
	p, ok := pausePrograms[arch]
	if !ok {
		return nil, fmt.Errorf("make the containers' image: the pause program does not exist for %s, only for amd64 and arm64", arch)
	}
	program, err := p.executable()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: pausePath[1:], Mode: 0o755, Size: int64(len(program))}); err != nil {
		return nil, fmt.Errorf("make the containers' image: %w", err)
	}
	if _, err := w.Write(program); err != nil {
		return nil, fmt.Errorf("make the containers' image: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("make the containers' image: %w", err)
	}
	return b.Bytes(), nil
}

// executable returns a static ELF file with one segment, which is the whole file
// (elf(5)).
func (p pauseProgram) executable() ([]byte, error) {
	const (
		loadAt     = 0x400000
		headerSize = 64 // Elf64_Ehdr
		progSize   = 56 // Elf64_Phdr
		page       = 0x10000
	)
	size := uint64(headerSize + progSize + len(p.code))
	header := elf.Header64{
		Ident:     [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:      uint16(elf.ET_EXEC),
		Machine:   uint16(p.machine),
		Version:   uint32(elf.EV_CURRENT),
		Entry:     loadAt + headerSize + progSize,
		Phoff:     headerSize,
		Ehsize:    headerSize,
		Phentsize: progSize,
		Phnum:     1,
	}
	segment := elf.Prog64{
		Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X),
		Vaddr: loadAt, Paddr: loadAt, Filesz: size, Memsz: size, Align: page,
	}
	var b bytes.Buffer
	for _, part := range []any{header, segment, p.code} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			return nil, fmt.Errorf("make the containers' image: %w", err)
		}
	}
	return b.Bytes(), nil
}
