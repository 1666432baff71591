// SPDX-License-Identifier: MIT OR Apache-2.0
//
// gw-unwind: a function that calls itself becomes a chain of copies, one for each level, since the kernel
// allows no recursion. The deepest level is a place that sets `gw_broken`. Trees, such as those of routes,
// have functions of this kind.
#include "pass.h"

#include "llvm/ADT/SCCIterator.h"
#include "llvm/Analysis/CallGraph.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/Local.h"

namespace giveway {

// A packet has six next hops, so a tree of routes has seven levels.
static constexpr unsigned LEVELS = 7;

// Functions that are inlined into others of their group, at most.
static constexpr unsigned TURNS = 20;

static std::vector<CallInst *> calls(Function &from, Function &to)
{
	std::vector<CallInst *> found;
	for (Instruction &inst : instructions(from))
		if (auto *call = dyn_cast<CallInst>(&inst); call && call->getCalledFunction() == &to)
			found.push_back(call);
	return found;
}

// Inlines a function of a group that calls itself through others. Returns false if there is no group.
static bool join(Module &module)
{
	CallGraph graph(module);
	for (auto scc = scc_begin(&graph); !scc.isAtEnd(); ++scc) {
		if (scc->size() < 2)
			continue;
		Function *smallest = nullptr;
		for (CallGraphNode *node : *scc) {
			Function *function = node->getFunction();
			if (!function || !calls(*function, *function).empty())
				continue;
			unsigned size = function->getInstructionCount();
			if (!smallest || size < smallest->getInstructionCount())
				smallest = function;
		}
		if (!smallest)
			continue;
		std::vector<User *> users(smallest->user_begin(), smallest->user_end());
		for (User *user : users)
			if (auto *call = dyn_cast<CallInst>(user)) {
				// A call that stays is an error if recursion does, which gw-flatten reports.
				InlineFunctionInfo info;
				(void)InlineFunction(*call, info);
			}
		return true;
	}
	return false;
}

// Makes a chain of copies of a function that calls itself.
static void copy(Function &first)
{
	std::vector<Function *> levels = {&first};
	for (unsigned level = 1; level < LEVELS; level++) {
		ValueToValueMapTy map;
		levels.push_back(CloneFunction(&first, map));
	}
	// A clone calls itself where the original did.
	for (unsigned level = 0; level < LEVELS; level++) {
		Function *at = levels[level];
		std::vector<CallInst *> found = calls(*at, *at);
		if (at != &first)
			for (CallInst *call : calls(*at, first))
				found.push_back(call);
		for (CallInst *call : found) {
			if (level + 1 < LEVELS) {
				call->setCalledFunction(levels[level + 1]);
				continue;
			}
			IRBuilder<> b(call);
			b.CreateCall(stop_at(*first.getParent()), {b.getInt32(TOO_DEEP)});
			changeToUnreachable(call);
		}
	}
}

void unwind(Module &module, ModuleAnalysisManager &)
{
	for (unsigned turn = 0; turn < TURNS && join(module); turn++)
		;
	std::vector<Function *> all;
	for (Function &function : module)
		if (!function.isDeclaration() && !calls(function, function).empty())
			all.push_back(&function);
	for (Function *function : all)
		copy(*function);
}

void refuse_recursion(Module &module)
{
	CallGraph graph(module);
	for (auto scc = scc_begin(&graph); !scc.isAtEnd(); ++scc)
		if (scc.hasCycle())
			for (CallGraphNode *node : *scc)
				if (node->getFunction())
					fail(*node->getFunction(), "calls itself");
}

} // namespace giveway
