package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

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
