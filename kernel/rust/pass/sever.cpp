// SPDX-License-Identifier: MIT OR Apache-2.0
//
// gw-sever: replaces each call of a function that does not return by a place with a number. Such a function
// formats and prints the message of a panic, which takes much code and has no reader in the kernel. The file
// of the option `gw-sites` has each number with its line of the source.
#include "pass.h"

#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Utils/Local.h"

namespace giveway {

static cl::opt<std::string> Sites("gw-sites", cl::init("-"), cl::desc("file for the places of panics"));

static bool is_stop(const CallInst &call)
{
	const Function *callee = call.getCalledFunction();
	if (!callee || callee->isIntrinsic())
		return callee && callee->getIntrinsicID() == Intrinsic::trap;
	if (call.doesNotReturn())
		return true;
	// Text is for messages of errors, which the program of the user has shown before.
	StringRef name = callee->getName();
	return name.contains("6format12format_inner") || name.ends_with("4core3fmt5write");
}

// The place of an instruction in our own sources: the innermost line that is not in Rust's library.
static std::string place(const Instruction &at)
{
	std::string outermost;
	for (const DILocation *loc = at.getDebugLoc(); loc; loc = loc->getInlinedAt()) {
		StringRef file = loc->getFilename();
		std::string text = (file + ":" + Twine(loc->getLine())).str();
		if (!file.contains("/library/") && !file.contains("rustc/"))
			return text;
		outermost = text;
	}
	return outermost.empty() ? "unknown" : outermost;
}

void sever(Module &module, ModuleAnalysisManager &)
{
	FunctionCallee stop = stop_at(module);
	auto *function = cast<Function>(stop.getCallee());
	function->setDoesNotReturn();
	function->addFnAttr(Attribute::Cold);
	function->addFnAttr(Attribute::NoUnwind);
	std::vector<WeakVH> calls;
	for (Function &caller : module)
		for (Instruction &inst : instructions(caller))
			if (auto *call = dyn_cast<CallInst>(&inst); call && is_stop(*call))
				calls.push_back(call);
	std::error_code error;
	raw_fd_ostream sites(Sites, error);
	if (error)
		fail("the file " + Sites + " for the places of panics cannot be written: " + error.message());
	unsigned number = 0;
	for (WeakVH &found : calls) {
		// One that follows another in its block is gone.
		auto *call = cast_or_null<CallInst>(found);
		if (!call)
			continue;
		const Function *callee = call->getCalledFunction();
		sites << ++number << '\t' << place(*call) << '\t'
		      << (callee ? demangle(callee->getName()) : "?") << '\t'
		      << demangle(call->getFunction()->getName()) << '\n';
		IRBuilder<> builder(call);
		auto *instead = builder.CreateCall(stop, {builder.getInt32(number)});
		instead->setDebugLoc(call->getDebugLoc());
		// This removes the call and all that follows.
		changeToUnreachable(call);
	}
	StripDebugInfo(module);
	// A loop that copies would become a call of the function that it is in.
	for (const char *name : {"gw_copy", "gw_fill"})
		if (Function *function = module.getFunction(name)) {
			function->addFnAttr("no-builtins");
			function->addFnAttr(Attribute::NoInline);
		}
}

} // namespace giveway
