// SPDX-License-Identifier: MIT OR Apache-2.0
//
// gw-dispatch: a pointer to a function becomes a number, and a call through it a choice among the functions
// of its type. The kernel does not allow a call whose target is in a variable, and Rust makes such calls for
// `dyn` and for pointers to functions.
#include "pass.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"

namespace giveway {

// More functions than this are all disciplines, which fit in the place of a child.
static constexpr size_t MOST_CHOICES = 40;

using Numbers = MapVector<Function *, Constant *>;

// Replaces a call through a pointer.
static void choose(CallInst &call, const Numbers &numbers)
{
	Function &caller = *call.getFunction();
	LLVMContext &context = caller.getContext();
	std::vector<Function *> fitting;
	for (auto [function, number] : numbers)
		if (function->getFunctionType() == call.getFunctionType())
			fitting.push_back(function);
	if (fitting.size() > MOST_CHOICES)
		fail(caller, "has a call of one of " + Twine(fitting.size()) + " functions by a pointer");
	BasicBlock *head = call.getParent();
	BasicBlock *tail = head->splitBasicBlock(std::next(call.getIterator()));
	head->getTerminator()->eraseFromParent();
	Value *callee = call.getCalledOperand();
	PHINode *result = nullptr;
	if (!call.getType()->isVoidTy()) {
		result = PHINode::Create(call.getType(), fitting.size(), "", tail->begin());
		call.replaceAllUsesWith(result);
	}
	BasicBlock *from = head;
	for (Function *function : fitting) {
		BasicBlock *here = BasicBlock::Create(context, "", &caller);
		BasicBlock *next = BasicBlock::Create(context, "", &caller);
		IRBuilder<> b(from);
		b.CreateCondBr(b.CreateICmpEQ(callee, numbers.lookup(function)), here, next);
		b.SetInsertPoint(here);
		std::vector<Value *> args(call.arg_begin(), call.arg_end());
		auto *made = b.CreateCall(function, args);
		made->setCallingConv(function->getCallingConv());
		if (result)
			result->addIncoming(made, here);
		b.CreateBr(tail);
		from = next;
	}
	IRBuilder<> b(from);
	// No function has this number: the memory is damaged.
	b.CreateCall(stop_at(*caller.getParent()), {b.getInt32(NO_SUCH_FUNCTION)});
	b.CreateUnreachable();
	call.eraseFromParent();
}

// Replaces a pointer to a function, except where the function is called.
static void replace(Function &function, Constant *number)
{
	std::vector<Use *> uses;
	for (Use &use : function.uses())
		if (auto *call = dyn_cast<CallBase>(use.getUser()); !call || !call->isCallee(&use))
			uses.push_back(&use);
	for (Use *use : uses) {
		auto *constant = dyn_cast<Constant>(use->getUser());
		if (constant && !isa<GlobalValue>(constant))
			constant->handleOperandChange(&function, number);
		else
			use->set(number);
	}
}

void dispatch(Module &module, ModuleAnalysisManager &)
{
	LLVMContext &context = module.getContext();
	Type *pointer = PointerType::get(context, 0), *word = Type::getInt64Ty(context);
	Numbers numbers;
	for (Function &function : module)
		if (!function.isDeclaration() && function.hasAddressTaken()) {
			Constant *number = ConstantInt::get(word, 16 * (numbers.size() + 1));
			numbers[&function] = ConstantExpr::getIntToPtr(number, pointer);
		}
	std::vector<CallInst *> calls;
	for (Function &function : module)
		for (Instruction &inst : instructions(function))
			if (auto *call = dyn_cast<CallInst>(&inst); call && call->isIndirectCall())
				calls.push_back(call);
	for (CallInst *call : calls)
		choose(*call, numbers);
	for (auto [function, number] : numbers)
		replace(*function, number);
}

} // namespace giveway
