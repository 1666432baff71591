//! The programs at the hooks of a detour, as instructions of BPF, and their loading.
//!
//! They are a few instructions each, so they are written here as such: no compiler and no library is needed.
//!
//! Reference: RFC 9669 (the instruction set); include/uapi/linux/bpf.h (system call, helper functions).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A hook of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// Frames that the interface received.
    Ingress,
    /// Frames that the interface is about to send.
    Egress,
}

/// An instruction: operation, registers (destination in the lower half), offset and constant. RFC 9669
/// section 3.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Instruction {
    operation: u8,
    registers: u8,
    offset: i16,
    constant: i32,
}

/// A program of the type BPF_PROG_TYPE_SCHED_CLS. Its argument, in register 1, is a `struct __sk_buff`.
#[derive(Debug, PartialEq, Eq)]
pub struct Program(Vec<Instruction>);

/// Offset of `mark` in `struct __sk_buff`.
const MARK_AT: i16 = 8;
/// The helper function `bpf_redirect`.
const REDIRECT: i32 = 23;
/// Flag of `bpf_redirect`: the interface receives the frame, and does not send it.
const RECEIVES: i32 = 1;
/// Answers of a program: TCX_PASS and TCX_DROP. Both end the chain of programs.
const PASS: i32 = 0;
const DROP: i32 = 2;

const fn set(register: u8, constant: i32) -> Instruction {
    Instruction { operation: 0xb7, registers: register, offset: 0, constant }
}

/// Reads the mark into register 2.
const READ_MARK: Instruction = Instruction { operation: 0x61, registers: 0x12, offset: MARK_AT, constant: 0 };
/// Writes register 2 to the mark.
const WRITE_MARK: Instruction =
    Instruction { operation: 0x63, registers: 0x21, offset: MARK_AT, constant: 0 };
const EXIT: Instruction = Instruction { operation: 0x95, registers: 0, offset: 0, constant: 0 };

const fn call(function: i32) -> Instruction {
    Instruction { operation: 0x85, registers: 0, offset: 0, constant: function }
}

/// Skips `offset` instructions if register 2 has this value.
const fn skip_if_equal(constant: i32, offset: i16) -> Instruction {
    Instruction { operation: 0x15, registers: 2, offset, constant }
}

impl Program {
    /// Lets another interface send every frame.
    pub fn send_to(interface: u32) -> Program {
        Program(vec![set(1, interface as i32), set(2, 0), call(REDIRECT), EXIT])
    }

    /// Marks every frame, and lets another interface receive it.
    pub fn mark_and_receive_at(interface: u32, mark: u32) -> Program {
        let mark = [set(2, mark as i32), WRITE_MARK];
        let redirect = [set(1, interface as i32), set(2, RECEIVES), call(REDIRECT), EXIT];
        Program([&mark[..], &redirect].concat())
    }

    /// Passes frames with this mark, and clears it. Drops all others.
    pub fn pass_only(mark: u32) -> Program {
        let other = [READ_MARK, skip_if_equal(mark as i32, 2), set(0, DROP), EXIT];
        let marked = [set(2, 0), WRITE_MARK, set(0, PASS), EXIT];
        Program([other, marked].concat())
    }

    /// Loads the program, and attaches it to the hook of an interface, behind other programs. It is detached
    /// when the descriptor is closed.
    ///
    /// # Errors
    /// The error of the system. It is EPERM without CAP_BPF and CAP_NET_ADMIN, and EINVAL before Linux 6.6.
    pub fn attach(&self, interface: u32, hook: Hook) -> io::Result<OwnedFd> {
        let license = c"MIT";
        let mut load = Load {
            kind: 3,
            count: self.0.len() as u32,
            instructions: self.0.as_ptr() as u64,
            license: license.as_ptr() as u64,
            log_level: 0,
            log_size: 0,
            log: 0,
            version: 0,
            flags: 0,
            name: *b"giveway_detour\0\0",
        };
        // BPF_PROG_LOAD.
        let program = bpf(5, &mut load)?;
        let mut link = Link {
            program: program.as_raw_fd().unsigned_abs(),
            interface,
            // BPF_TCX_INGRESS and BPF_TCX_EGRESS.
            hook: if hook == Hook::Ingress { 46 } else { 47 },
            flags: 0,
            relative_to: 0,
            unused: 0,
            revision: 0,
        };
        // BPF_LINK_CREATE.
        bpf(28, &mut link)
    }
}

/// Arguments of BPF_PROG_LOAD: the beginning of `union bpf_attr`.
#[repr(C)]
struct Load {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    version: u32,
    flags: u32,
    name: [u8; 16],
}

/// Arguments of BPF_LINK_CREATE for tcx.
#[repr(C)]
struct Link {
    program: u32,
    interface: u32,
    hook: u32,
    flags: u32,
    relative_to: u32,
    unused: u32,
    revision: u64,
}

/// A command of bpf(2) that returns a descriptor.
fn bpf<T>(command: libc::c_int, arguments: &mut T) -> io::Result<OwnedFd> {
    let size = size_of::<T>() as libc::c_uint;
    // SAFETY: the kernel reads `size` bytes of the arguments, their size, which consist of integers without
    // padding. The addresses among them are those of the instructions and the licence of the caller, which
    // live until the call returns; the kernel reads as many instructions as `count` says, and the licence
    // ends with zero.
    let answer = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(arguments), size) };
    let fd = libc::c_int::try_from(answer).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the kernel has opened the descriptor just now, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that the kernel reads, compared with the encoding of RFC 9669.
    #[test]
    fn instructions_have_the_bytes_of_the_standard() {
        assert_eq!(size_of::<Instruction>(), 8);
        let bytes = |program: &Program| -> Vec<String> {
            let each = |of: &Instruction| {
                format!("{:02x} {:02x} {:04x} {:08x}", of.operation, of.registers, of.offset, of.constant)
            };
            program.0.iter().map(each).collect()
        };
        assert_eq!(
            bytes(&Program::send_to(7)),
            ["b7 01 0000 00000007", "b7 02 0000 00000000", "85 00 0000 00000017", "95 00 0000 00000000"]
        );
        assert_eq!(
            bytes(&Program::pass_only(0x67)),
            [
                "61 12 0008 00000000",
                "15 02 0002 00000067",
                "b7 00 0000 00000002",
                "95 00 0000 00000000",
                "b7 02 0000 00000000",
                "63 21 0008 00000000",
                "b7 00 0000 00000000",
                "95 00 0000 00000000"
            ]
        );
    }

    #[test]
    fn arguments_have_the_sizes_of_the_kernel() {
        assert_eq!((size_of::<Load>(), size_of::<Link>()), (64, 32));
    }
}
