// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The part of gw-arena for loops. The verifier allows a loop without a known end if each turn asks the kernel
// for leave (`may_goto`). It then tries turns until one is like a former one in all values that it knows. So
// this file also hides values from it, since otherwise each constant and each comparison makes a turn that is
// like no other, and the check does not end.
#include "arena.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

namespace giveway {

// The numbers of places where the kernel ends a loop follow this one.
static constexpr uint64_t REFUSED = 2ull << 32;

// True for numbers and pointers of one register.
static bool fits(Type *type)
{
	return type->isPointerTy() || (type->isIntegerTy() && type->getIntegerBitWidth() <= 64);
}

// The same value, which the verifier does not know. `zero` is a hidden zero.
static Value *hidden(IRBuilder<> &b, Value *value, Value *zero)
{
	Type *type = value->getType();
	return type->isPointerTy() ? b.CreateGEP(b.getInt8Ty(), value, {zero})
				   : b.CreateAdd(b.CreateTrunc(zero, type), value);
}

// Hides a value that a block receives from another. `zeros` has the hidden zeros of the blocks.
static void hide(PHINode &phi, unsigned i, DenseMap<BasicBlock *, Value *> &zeros)
{
	BasicBlock *from = phi.getIncomingBlock(i);
	IRBuilder<> b(from->getTerminator());
	Value *&zero = zeros[from];
	if (!zero)
		zero = hidden_zero(b);
	phi.setIncomingValue(i, hidden(b, phi.getIncomingValue(i), zero));
}

// Within a loop the verifier compares the cases that meet by the ranges of their values, so each constant
// makes a case of its own. An unknown value makes none.
void hide_constants(Function &function)
{
	DominatorTree tree(function);
	LoopInfo info(tree);
	DenseMap<BasicBlock *, Value *> zeros;
	for (BasicBlock &block : function) {
		if (!info.getLoopFor(&block))
			continue;
		for (PHINode &phi : block.phis())
			for (unsigned i = 0; i < phi.getNumIncomingValues(); i++)
				if (isa<ConstantInt>(phi.getIncomingValue(i)) && fits(phi.getType()) &&
				    !phi.getType()->isIntegerTy(1) &&
				    !isa<CallBrInst>(phi.getIncomingBlock(i)->getTerminator()))
					hide(phi, i, zeros);
	}
}

// A comparison tells the verifier about the values that it compares. Here it compares copies, so that a turn
// of a loop learns nothing that the next turn would have to distinguish.
void compare_copies(Function &function)
{
	DominatorTree tree(function);
	LoopInfo info(tree);
	for (BasicBlock &block : function) {
		if (!info.getLoopFor(&block))
			continue;
		std::vector<ICmpInst *> found;
		for (Instruction &inst : block)
			if (auto *compare = dyn_cast<ICmpInst>(&inst))
				found.push_back(compare);
		Value *zero = nullptr;
		for (ICmpInst *compare : found)
			for (Use &use : compare->operands()) {
				if (isa<Constant>(use.get()) || !fits(use->getType()))
					continue;
				IRBuilder<> b(compare);
				if (!zero)
					zero = hidden_zero(b);
				use.set(hidden(b, use.get(), zero));
			}
	}
}

// Each loop asks the kernel for leave before each turn.
void ask_in_loops(Function &function)
{
	DominatorTree tree(function);
	LoopInfo info(tree);
	uint64_t place = REFUSED;
	for (Loop *loop : info.getLoopsInPreorder()) {
		BasicBlock *header = loop->getHeader();
		SmallVector<BasicBlock *> latches;
		loop->getLoopLatches(latches);
		// The verifier then tries no number of turns that it knows, but the turn in general. It knows
		// constants, and values after a comparison with one.
		DenseMap<BasicBlock *, Value *> zeros;
		for (PHINode &phi : header->phis())
			if (fits(phi.getType()))
				for (unsigned i = 0; i < phi.getNumIncomingValues(); i++)
					hide(phi, i, zeros);
		for (BasicBlock *latch : latches) {
			BasicBlock *ask = SplitEdge(latch, header, &tree, &info);
			BasicBlock *refused = BasicBlock::Create(function.getContext(), "refused", &function);
			IRBuilder<> b(refused);
			stop(b.CreateUnreachable(), ++place);
			Instruction *end = ask->getTerminator();
			BasicBlock *next = end->getSuccessor(0);
			b.SetInsertPoint(end);
			auto *type = FunctionType::get(b.getVoidTy(), false);
			auto *leave = InlineAsm::get(type, "may_goto ${0:l}", "!i", true);
			b.CreateCallBr(type, leave, next, {refused}, {});
			end->eraseFromParent();
		}
	}
}

} // namespace giveway
