// SPDX-License-Identifier: MIT OR Apache-2.0
//
// gw-lower: arithmetic that BPF lacks becomes calls of functions of the runtime library, which is Rust in
// `entry/src/runtime.rs` and in the library of the compiler. LLVM's back end for BPF knows no such functions,
// and ends with an error instead. This file has the pass and the call; lower_float.cpp and lower_wide.cpp
// choose the functions.
#include "lower.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

namespace giveway {

// A function of mathematics with more instructions is not inlined.
static constexpr unsigned LONG = 40;

Value *call(IRBuilder<> &b, StringRef name, Type *result, ArrayRef<Value *> args)
{
	Function *caller = b.GetInsertBlock()->getParent();
	Function *function = caller->getParent()->getFunction(name);
	if (!function)
		fail(*caller, "needs " + name + ", which the runtime library does not have");
	// The comparisons within would give the verifier of the caller too many cases.
	if (!name.starts_with("gw_umulh"))
		function->addFnAttr(Attribute::NoInline);
	FunctionType *type = function->getFunctionType();
	std::vector<Value *> given(args);
	for (unsigned i = 0; i < given.size(); i++)
		if (given[i]->getType() != type->getParamType(i))
			given[i] = b.CreateBitCast(given[i], type->getParamType(i));
	auto *made = b.CreateCall(type, function, given);
	made->setCallingConv(function->getCallingConv());
	if (type->getReturnType() == result)
		return made;
	if (result->isIntegerTy() && type->getReturnType()->isIntegerTy())
		return b.CreateZExtOrTrunc(made, result);
	return b.CreateBitCast(made, result);
}

void lower(Module &module, ModuleAnalysisManager &)
{
	std::vector<Instruction *> insts;
	for (Function &function : module)
		for (Instruction &inst : instructions(function))
			insts.push_back(&inst);
	for (Instruction *inst : insts) {
		IRBuilder<> builder(inst);
		Value *instead = lower_float(builder, *inst);
		if (!instead)
			instead = lower_wide(builder, *inst);
		if (!instead)
			continue;
		inst->replaceAllUsesWith(instead);
		inst->eraseFromParent();
	}
	for (Function &function : module) {
		// Mathematics is long, and has little in common with the function that needs it.
		StringRef name = function.getName();
		bool mathematics = name.contains("_4libm") || name.contains("compiler_builtins");
		bool long_body = !function.isDeclaration() && function.getInstructionCount() > LONG;
		if (mathematics && long_body && !function.hasFnAttribute(Attribute::AlwaysInline))
			function.addFnAttr(Attribute::NoInline);
		// What was said of a function when its quotient was an instruction is not true of the call,
		// which writes a variable.
		if (!function.isIntrinsic()) {
			function.removeFnAttr(Attribute::Memory);
			function.removeFnAttr(Attribute::Speculatable);
		}
		for (Instruction &inst : instructions(function))
			if (auto *call = dyn_cast<CallInst>(&inst); call && !isa<IntrinsicInst>(call))
				call->removeFnAttr(Attribute::Memory);
	}
}

} // namespace giveway
