// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The part of gw-arena for the places where a function ends early: a panic, and what cannot be reached. The
// kernel knows neither, so the function sets `gw_broken` and returns. The file also gives a value to what has
// none, which the verifier wants for the same reason: it checks code that never runs.
#include "arena.h"

#include "llvm/IR/InstIterator.h"

namespace giveway {

// The number of a place that the compiler says cannot be reached.
static constexpr uint64_t UNREACHABLE = 1ull << 32;

void end_at_panics(Function &function)
{
	std::vector<UnreachableInst *> ends;
	for (BasicBlock &block : function)
		if (auto *end = dyn_cast<UnreachableInst>(block.getTerminator()))
			ends.push_back(end);
	for (UnreachableInst *end : ends) {
		uint64_t number = UNREACHABLE;
		auto *call = dyn_cast_or_null<CallInst>(end->getPrevNode());
		Function *callee = call ? call->getCalledFunction() : nullptr;
		if (callee && callee->getName() == STOP_AT) {
			number = cast<ConstantInt>(call->getArgOperand(0))->getZExtValue();
			call->eraseFromParent();
		}
		stop(end, number);
	}
}

// The verifier wants a value in each register that is read or passed on.
void define_values(Function &function)
{
	for (Instruction &inst : instructions(function))
		for (Use &use : inst.operands())
			if (isa<UndefValue>(use.get()))
				use.set(Constant::getNullValue(use->getType()));
}

} // namespace giveway
