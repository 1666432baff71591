// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What all passes share: the function of each pass, which pass.cpp registers, and the two ways to give up. A
// panic of the discipline ends in `stop_at`, when the program runs. What does not fit BPF ends in `fail`,
// when the program is built.
#pragma once

#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"

namespace giveway {

using namespace llvm;

void sever(Module &module, ModuleAnalysisManager &analyses);
void dispatch(Module &module, ModuleAnalysisManager &analyses);
void lower(Module &module, ModuleAnalysisManager &analyses);
void unwind(Module &module, ModuleAnalysisManager &analyses);
void flatten(Module &module, ModuleAnalysisManager &analyses);
void arena(Module &module, ModuleAnalysisManager &analyses);

// Stands for a panic until gw-arena. Its argument is the number of the place.
constexpr const char *STOP_AT = "gw_stop_at";

FunctionCallee stop_at(Module &module);

// Numbers of places that are not panics of the source.
constexpr unsigned NO_SUCH_FUNCTION = 1 << 20;
constexpr unsigned TOO_DEEP = NO_SUCH_FUNCTION + 1;

// Ends the build with a sentence that begins with the discipline.
[[noreturn]] void fail(const Twine &what);

// The same for a function or variable, which is the subject of `what`.
[[noreturn]] void fail(const GlobalValue &subject, const Twine &what);

// Fails if functions call themselves, also through others.
void refuse_recursion(Module &module);

} // namespace giveway
