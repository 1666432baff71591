// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What the files of gw-lower share. `lower_float` and `lower_wide` make the value that takes the place of an
// instruction, or return null if the machine has the instruction.
#pragma once

#include "pass.h"

#include "llvm/IR/IRBuilder.h"

namespace giveway {

Value *lower_float(IRBuilder<> &b, Instruction &inst);
Value *lower_wide(IRBuilder<> &b, Instruction &inst);

// Calls a function of the runtime library.
Value *call(IRBuilder<> &b, StringRef name, Type *result, ArrayRef<Value *> args);

// The lower and the upper half of a number of 128 bits.
std::vector<Value *> halves(IRBuilder<> &b, Value *x);

// A number of 128 bits: the lower half, and the upper half that the function left in a variable.
Value *joined(IRBuilder<> &b, Value *low, Type *type);

} // namespace giveway
