// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

// canaryPath is where the canary's only program is in its image: where a container's init is looked for.
const canaryPath = "/sbin/init"

// machineCode is a program without any library, in the instructions of one processor. Without an argument it sleeps
// for ever, as an init may; with one it ends at once, and returns 0.
type machineCode struct {
	machine elf.Machine
	code    []byte
}

// canaryCode is the program, by LXD's name for the architecture.
var canaryCode = map[string]machineCode{
	"x86_64": {elf.EM_X86_64, []byte{
		0x48, 0x83, 0x3c, 0x24, 0x01, // cmp qword [rsp], 1: the number of arguments, with the program's own name
		0x7f, 0x09, // jg end
		0xb8, 0x22, 0x00, 0x00, 0x00, // sleep: mov eax, 34 (pause)
		0x0f, 0x05, // syscall
		0xeb, 0xf7, // jmp sleep
		0x31, 0xff, // end: xor edi, edi
		0xb8, 0x3c, 0x00, 0x00, 0x00, // mov eax, 60 (exit)
		0x0f, 0x05, // syscall
	}},
	"aarch64": {elf.EM_AARCH64, words(
		0xf94003e0, // ldr x0, [sp]: the number of arguments, with the program's own name
		0xf100041f, // cmp x0, 1
		0x5400010c, // b.gt end
		0xd2800000, // sleep: mov x0, 0
		0xd2800001, // mov x1, 0
		0xd2800002, // mov x2, 0
		0xd2800003, // mov x3, 0
		0xd2800928, // mov x8, 73 (ppoll)
		0xd4000001, // svc 0
		0x17fffffa, // b sleep
		0xd2800000, // end: mov x0, 0
		0xd2800ba8, // mov x8, 93 (exit)
		0xd4000001, // svc 0
	)},
}

func words(instructions ...uint32) []byte {
	var code []byte
	for _, word := range instructions {
		code = binary.LittleEndian.AppendUint32(code, word)
	}
	return code
}

// canaryProgram is the executable file of an architecture; nil where there is none for it.
func canaryProgram(architecture string) []byte {
	program, ok := canaryCode[architecture]
	if !ok {
		return nil
	}
	const (
		start  = 0x400000 // where the file is mapped
		header = 64 + 56  // of the file and of its only segment
		page   = 0x1000
	)
	size := uint64(header + len(program.code))
	file := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(program.machine), Version: uint32(elf.EV_CURRENT),
		Entry: start + header, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1,
	}
	segment := elf.Prog64{
		Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: start, Paddr: start, Filesz: size, Memsz: size, Align: page,
	}
	var out bytes.Buffer
	for _, part := range []any{file, segment, program.code} {
		_ = binary.Write(&out, binary.LittleEndian, part) // a buffer takes everything, and the parts are of fixed size
	}
	return out.Bytes()
}
