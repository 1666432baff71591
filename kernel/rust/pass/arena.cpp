// SPDX-License-Identifier: MIT OR Apache-2.0
//
// gw-arena: makes functions of numbers out of functions of pointers, with all memory in the arena of the
// program. The principles are in pass.cpp. This file has the order of the parts, which have a file each; an
// order is needed because some parts make what others change, such as variables, reads and writes.
#include "arena.h"

#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Support/CommandLine.h"

namespace giveway {

static cl::opt<bool> Hide("gw-hide", cl::init(true), cl::desc("hide values in loops from the verifier"));

static constexpr const char *BROKEN = "gw_broken", *ZERO = "gw_zero";

GlobalVariable *variable(Module &module, Type *type, const Twine &name, Align align)
{
	auto *made = new GlobalVariable(module, type, false, GlobalValue::InternalLinkage,
					Constant::getNullValue(type), name);
	made->setAlignment(align);
	return made;
}

unsigned registers(Type *type, const DataLayout &layout)
{
	return std::max<uint64_t>(1, (layout.getTypeSizeInBits(type).getFixedValue() + 63) / 64);
}

void stop(Instruction *at, uint64_t number)
{
	GlobalVariable *broken = at->getModule()->getGlobalVariable(BROKEN);
	IRBuilder<> b(at);
	// The first place counts: the others follow from it.
	Value *old = b.CreateLoad(b.getInt64Ty(), broken);
	Value *first = b.CreateICmpEQ(old, b.getInt64(0));
	b.CreateStore(b.CreateSelect(first, b.getInt64(number), old), broken);
	Type *result = at->getFunction()->getReturnType();
	if (result->isVoidTy())
		b.CreateRetVoid();
	else
		b.CreateRet(Constant::getNullValue(result));
	at->eraseFromParent();
}

Value *hidden_zero(IRBuilder<> &b)
{
	return b.CreateLoad(b.getInt64Ty(), b.GetInsertBlock()->getModule()->getGlobalVariable(ZERO), true);
}

static void refuse_calls_through_pointers(Function &function)
{
	for (Instruction &inst : instructions(function))
		if (auto *call = dyn_cast<CallInst>(&inst); call && call->isIndirectCall())
			fail(function, "has a call through a pointer");
}

void arena(Module &module, ModuleAnalysisManager &analyses)
{
	StripDebugInfo(module);
	Type *word = Type::getInt64Ty(module.getContext());
	if (!module.getGlobalVariable(BROKEN))
		variable(module, word, BROKEN, Align(8))->setLinkage(GlobalValue::ExternalLinkage);
	variable(module, word, ZERO, Align(8))->setLinkage(GlobalValue::ExternalLinkage);
	refuse_recursion(module);
	name_functions(module);
	auto &functions = analyses.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();
	for (Function &function : module)
		if (ours(function)) {
			end_at_panics(function);
			define_values(function);
			demote_if_named(function, functions);
			expand_copies(function);
			move_variables(function);
		}
	change_signatures(module);
	for (Function &function : module)
		if (ours(function)) {
			if (Hide) {
				hide_constants(function);
				compare_copies(function);
			}
			ask_in_loops(function);
			refuse_calls_through_pointers(function);
		}
	move_globals(module);
	for (Function &function : module)
		if (ours(function))
			cast_accesses(function);
	describe_types(module);
}

} // namespace giveway
