//! The registers of a thread of x86-64, and what a system call has left in them. Source: the x86-64
//! psABI, A.2.1; linux/arch/x86/kernel/signal.c (`arch_do_signal_or_restart`).

/// General registers: `struct user_regs_struct`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ThreadRegisters([u64; 27]);

impl ThreadRegisters {
    /// Where the thread goes on.
    #[must_use]
    pub fn counter(&self) -> u64 {
        self.0[RIP]
    }

    /// The same, elsewhere.
    #[must_use]
    pub fn at(&self, counter: u64) -> ThreadRegisters {
        let mut other = *self;
        other.0[RIP] = counter;
        other
    }

    /// The number of the system call that the thread is in; `None`: it is in none.
    #[must_use]
    pub fn call(&self) -> Option<u64> {
        let number = self.0[ORIG_RAX];
        (number.cast_signed() >= 0).then_some(number)
    }

    /// What the system call returns: a negative errno where it fails.
    #[must_use]
    pub fn result(&self) -> i64 {
        self.0[RAX].cast_signed()
    }

    /// These registers, but at the instruction `syscall` at an address, about to make a call. As for
    /// the kernel the thread is in no call then, it restarts none.
    #[must_use]
    pub fn about_to(&self, number: u64, arguments: [u64; 6], instruction: u64) -> ThreadRegisters {
        let mut other = self.at(instruction);
        (other.0[RAX], other.0[ORIG_RAX]) = (number, u64::MAX);
        for (register, argument) in ARGUMENTS.into_iter().zip(arguments) {
            other.0[register] = argument;
        }
        other
    }

    /// These registers, but before the call that the thread is in, which it makes again with the same
    /// arguments.
    #[must_use]
    pub fn again(&self) -> ThreadRegisters {
        let mut other = self.at(self.0[RIP].wrapping_sub(SYSCALL_BYTES));
        (other.0[RAX], other.0[ORIG_RAX]) = (self.0[ORIG_RAX], u64::MAX);
        other
    }

    pub(super) fn is_64_bit(&self) -> bool {
        self.0[CS] == USER_CS && self.call().is_none_or(|number| number & X32 == 0)
    }
}

/// Places in `struct user_regs_struct`.
const R10: usize = 7;
const R9: usize = 8;
const R8: usize = 9;
const RAX: usize = 10;
const RDX: usize = 12;
const RSI: usize = 13;
const RDI: usize = 14;
const ORIG_RAX: usize = 15;
const RIP: usize = 16;
const CS: usize = 17;
/// Of a system call.
const ARGUMENTS: [usize; 6] = [RDI, RSI, RDX, R10, R8, R9];
/// The code segment of programs of 64 bits (`__USER_CS`).
const USER_CS: u64 = 0x33;
/// The bit of the x32 calls.
const X32: u64 = 0x4000_0000;
/// Of the instruction `syscall`.
const SYSCALL_BYTES: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn registers() -> ThreadRegisters {
        let mut registers = ThreadRegisters(std::array::from_fn(|at| at as u64));
        registers.0[CS] = USER_CS;
        registers
    }

    #[test]
    fn an_interrupted_call_is_made_again_with_its_arguments() {
        let mut before = registers();
        (before.0[ORIG_RAX], before.0[RAX]) = (232, (-4_i64).cast_unsigned());
        assert_eq!((before.call(), before.result()), (Some(232), -4));
        let again = before.again();
        assert_eq!((again.counter(), again.0[RAX], again.call()), (14, 232, None));
        assert_eq!(again.0[RDI], before.0[RDI]);
    }

    #[test]
    fn a_call_has_its_arguments_and_nothing_is_restarted() {
        let call = registers().about_to(3, [21, 22, 23, 24, 25, 26], 0x1000);
        assert_eq!((call.counter(), call.result(), call.call()), (0x1000, 3, None));
        let (r10, r8, r9) = (call.0[R10], call.0[R8], call.0[R9]);
        assert_eq!([call.0[RDI], call.0[RSI], call.0[RDX], r10, r8, r9], [21, 22, 23, 24, 25, 26]);
    }

    #[test]
    fn calls_of_32_bits_and_of_x32_are_not_those_of_64() {
        let mut registers = registers();
        assert!(registers.is_64_bit());
        registers.0[ORIG_RAX] = X32 | 1;
        assert!(!registers.is_64_bit());
        registers.0[CS] = 0x23;
        assert!(!registers.at(1).is_64_bit());
    }
}
