// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Makes programs for the kernel's verifier of BPF out of the bitcode of ordinary Rust. The verifier refuses
// what the compiler makes of such code, so the passes of this folder change it. This file registers them.
//
// Principles
// - All memory of a discipline lies in a BPF arena, and a pointer is a plain number for the verifier: the
//   address that a program of the user would have. Only the instruction that reads or writes casts the number
//   to a pointer into the arena. A wrong number reads or damages the arena and nothing else, so the kernel
//   needs no proof of where a pointer points.
// - So every function has numbers as arguments and as its result. The kernel checks each once, as a global
//   function, and knows nothing about its arguments.
// - Each loop asks the kernel for leave to go on (`may_goto`). What would be a panic, or a loop without an
//   end, sets `gw_broken` to the number of its place and returns. The caller goes on with any value, which is
//   harmless for the kernel, and the shim then treats the discipline as broken.
//
// Passes, in their order. The folder has a file for each, and more for the parts of gw-lower and gw-arena.
// - gw-sever: replaces each call of a function that does not return (a panic) by a place with a number, so
//   that the texts of panics need no code.
// - gw-dispatch: a call through a pointer becomes a choice among the functions of its type.
// - gw-lower: arithmetic that the machine lacks becomes calls of functions: f64, products of 128 bits.
// - gw-unwind: a function that calls itself becomes a chain of copies.
// - gw-flatten: inlines functions where the calls within each other are too many for the kernel.
// - gw-arena: all of the above principles. It must be the last one, and works on the whole program.
#include "pass.h"

#include "llvm/Demangle/Demangle.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Plugins/PassPlugin.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorHandling.h"

namespace giveway {

static cl::opt<std::string> Discipline("gw-discipline", cl::init("a discipline"),
				       cl::desc("name of the discipline, for messages"));

FunctionCallee stop_at(Module &module)
{
	LLVMContext &context = module.getContext();
	return module.getOrInsertFunction(
		STOP_AT, FunctionType::get(Type::getVoidTy(context), {Type::getInt32Ty(context)}, false));
}

void fail(const Twine &what)
{
	report_fatal_error(Twine(Discipline) + " cannot become a program for the kernel: " + what, false);
}

void fail(const GlobalValue &subject, const Twine &what)
{
	StringRef kind = isa<Function>(subject) ? "the function " : "the variable ";
	fail(kind + demangle(subject.getName()) + " " + what);
}

namespace {

constexpr std::pair<StringLiteral, void (*)(Module &, ModuleAnalysisManager &)> PASSES[] = {
	{"gw-sever", sever},   {"gw-dispatch", dispatch}, {"gw-lower", lower},
	{"gw-unwind", unwind}, {"gw-flatten", flatten},   {"gw-arena", arena},
};

struct Pass : PassInfoMixin<Pass> {
	void (*change)(Module &, ModuleAnalysisManager &);

	explicit Pass(void (*change)(Module &, ModuleAnalysisManager &)) : change(change) {}

	PreservedAnalyses run(Module &module, ModuleAnalysisManager &analyses)
	{
		change(module, analyses);
		return PreservedAnalyses::none();
	}

	static bool isRequired() { return true; }
};

bool add(StringRef name, ModulePassManager &passes, ArrayRef<PassBuilder::PipelineElement>)
{
	for (auto [known, change] : PASSES)
		if (name == known) {
			passes.addPass(Pass(change));
			return true;
		}
	return false;
}

} // namespace

} // namespace giveway

extern "C" LLVM_ATTRIBUTE_WEAK llvm::PassPluginLibraryInfo llvmGetPassPluginInfo()
{
	return {LLVM_PLUGIN_API_VERSION, "giveway", "1", [](llvm::PassBuilder &builder) {
			builder.registerPipelineParsingCallback(giveway::add);
		}};
}
