// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What the files of gw-arena share: its parts, in the order in which arena.cpp calls them, and the helpers
// that several parts need.
#pragma once

#include "pass.h"

#include "llvm/IR/IRBuilder.h"

namespace giveway {

// stops.cpp, memory.cpp and variables.cpp
void end_at_panics(Function &function);
void define_values(Function &function);
void demote_if_named(Function &function, FunctionAnalysisManager &functions);
void expand_copies(Function &function);
void move_variables(Function &function);

// signatures.cpp
void change_signatures(Module &module);

// loops.cpp
void hide_constants(Function &function);
void compare_copies(Function &function);
void ask_in_loops(Function &function);

// globals.cpp
void move_globals(Module &module);

// accesses.cpp
void cast_accesses(Function &function);

// btf.cpp; the names come before all other parts.
void name_functions(Module &module);
void describe_types(Module &module);

// A new variable of the program.
GlobalVariable *variable(Module &module, Type *type, const Twine &name, Align align);

// True for functions with a body. The C of the shim is linked later, and compiled for BPF as it is.
inline bool ours(const Function &function)
{
	return !function.isDeclaration();
}

// The number of registers that a value needs.
unsigned registers(Type *type, const DataLayout &layout);

// Replaces an instruction by the end of the function, which sets `gw_broken` to a number.
void stop(Instruction *at, uint64_t number);

// Zero, which the verifier does not know.
Value *hidden_zero(IRBuilder<> &b);

} // namespace giveway
