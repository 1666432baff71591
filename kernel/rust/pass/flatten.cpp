// SPDX-License-Identifier: MIT OR Apache-2.0
//
// gw-flatten: inlines functions where too many calls are within each other. The kernel allows eight, the
// program itself included. On the longest chain, the function whose copies are smallest is inlined, until all
// chains are short enough. The optimizer has inlined what makes a program faster, so that each further copy
// only makes it larger.
#include "pass.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/Cloning.h"

namespace giveway {

// Functions of a chain, without the program itself.
static constexpr unsigned MOST = 7;

using Depths = DenseMap<const Function *, unsigned>;

// The function with a body that an instruction calls, or null.
static Function *called(const Instruction &inst)
{
	auto *call = dyn_cast<CallInst>(&inst);
	Function *callee = call ? call->getCalledFunction() : nullptr;
	return callee && !callee->isDeclaration() ? callee : nullptr;
}

static unsigned depth(const Function *function, Depths &known)
{
	auto found = known.find(function);
	if (found != known.end())
		return found->second;
	unsigned most = 0;
	for (const Instruction &inst : instructions(*function)) {
		// These become calls of functions that copy.
		if (isa<MemIntrinsic>(inst))
			most = std::max(most, 1u);
		if (const Function *callee = called(inst))
			most = std::max(most, depth(callee, known));
	}
	return known[function] = most + 1;
}

// Along the longest chain from a function, the function of least cost. Null if all have to stay.
static Function *cheapest(Function *root, Depths &known)
{
	Function *best = nullptr;
	uint64_t least = UINT64_MAX;
	for (Function *at = root; at;) {
		Function *next = nullptr;
		for (Instruction &inst : instructions(*at))
			if (Function *callee = called(inst))
				if (!next || known[callee] > known[next])
					next = callee;
		if (!next || known[next] + 1 < known[at])
			break;
		uint64_t size = next->getInstructionCount(), sites = 0;
		for (User *user : next->users())
			sites += isa<CallInst>(user);
		if (!next->hasExternalLinkage() && size * sites < least) {
			least = size * sites;
			best = next;
		}
		at = next;
	}
	return best;
}

// Inlines a function wherever it is called, and removes it.
static void inline_all(Function &function)
{
	std::vector<CallInst *> calls;
	for (User *user : function.users())
		if (auto *call = dyn_cast<CallInst>(user))
			calls.push_back(call);
	for (CallInst *call : calls) {
		InlineFunctionInfo info;
		InlineResult result = InlineFunction(*call, info);
		if (!result.isSuccess())
			fail(function, Twine("cannot be inlined: ") + result.getFailureReason());
	}
	if (!function.use_empty())
		fail(function, "has a use that is not a call");
	function.eraseFromParent();
}

void flatten(Module &module, ModuleAnalysisManager &)
{
	refuse_recursion(module);
	for (;;) {
		Depths known;
		Function *root = nullptr;
		for (Function &function : module)
			if (!function.isDeclaration() && function.hasExternalLinkage() &&
			    (!root || depth(&function, known) > depth(root, known)))
				root = &function;
		if (!root || depth(root, known) <= MOST)
			return;
		Function *best = cheapest(root, known);
		if (!best)
			fail(*root, "has more than " + Twine(MOST) + " calls within each other");
		inline_all(*best);
	}
}

} // namespace giveway
