// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The part of gw-arena for arguments and results. A function of BPF has five registers for arguments and one
// for its result, and the verifier checks a function on its own only if all of them are numbers. So arguments
// beyond the fifth register, and results that need more than one, are passed in variables of the program.
#include "arena.h"

namespace giveway {

static constexpr unsigned MOST = 5;

namespace {

// The signature of a function before and after the change.
struct Signature {
	FunctionType *old, *made;
	// The variable for the result, if it is not in a register.
	GlobalVariable *place = nullptr;
	// For each argument its variable, or null if it is in registers.
	std::vector<GlobalVariable *> spilled;

	bool same_result() const { return made->getReturnType() == old->getReturnType(); }
};

} // namespace

static Signature signature(Function &function)
{
	Module &module = *function.getParent();
	const DataLayout &layout = module.getDataLayout();
	Signature found;
	found.old = function.getFunctionType();
	Type *result = found.old->getReturnType();
	if (!result->isVoidTy() && (result->isAggregateType() || registers(result, layout) > 1))
		found.place = variable(module, result, "gw_result", Align(16));
	std::vector<Type *> types;
	unsigned used = 0;
	for (Type *type : found.old->params()) {
		unsigned needs = registers(type, layout);
		if (used + needs > MOST || type->isAggregateType()) {
			found.spilled.push_back(variable(module, type, "gw_arg", Align(16)));
			continue;
		}
		found.spilled.push_back(nullptr);
		used += needs;
		types.push_back(type);
	}
	// The verifier wants a number as the result of each global function.
	bool none = found.place || result->isVoidTy();
	Type *returns = none ? Type::getInt64Ty(module.getContext()) : result;
	found.made = FunctionType::get(returns, types, false);
	return found;
}

// Makes the function with the new signature and the body of the old one.
static Function *make(Function &function, const Signature &signature)
{
	Module &module = *function.getParent();
	Function *made = Function::Create(signature.made, GlobalValue::ExternalLinkage, "", module);
	made->takeName(&function);
	made->splice(made->begin(), &function);
	made->addFnAttr(Attribute::NoUnwind);
	if (function.hasFnAttribute(Attribute::NoInline))
		made->addFnAttr(Attribute::NoInline);
	made->setSubprogram(nullptr);
	IRBuilder<> b(&*made->getEntryBlock().getFirstInsertionPt());
	unsigned next = 0;
	for (Argument &argument : function.args()) {
		GlobalVariable *spilled = signature.spilled[argument.getArgNo()];
		Value *value = spilled ? static_cast<Value *>(b.CreateLoad(argument.getType(), spilled))
				       : made->getArg(next++);
		argument.replaceAllUsesWith(value);
	}
	if (signature.same_result())
		return made;
	for (BasicBlock &block : *made) {
		auto *end = dyn_cast<ReturnInst>(block.getTerminator());
		if (!end)
			continue;
		b.SetInsertPoint(end);
		if (signature.place)
			b.CreateStore(end->getReturnValue(), signature.place);
		b.CreateRet(b.getInt64(0));
		end->eraseFromParent();
	}
	return made;
}

static void change_call(CallInst &call, Function *made, const Signature &signature)
{
	IRBuilder<> b(&call);
	std::vector<Value *> args;
	for (unsigned i = 0; i < call.arg_size(); i++) {
		if (signature.spilled[i])
			b.CreateStore(call.getArgOperand(i), signature.spilled[i]);
		else
			args.push_back(call.getArgOperand(i));
	}
	Value *gives = b.CreateCall(signature.made, made, args);
	if (signature.place)
		gives = b.CreateLoad(call.getType(), signature.place);
	if (!call.getType()->isVoidTy())
		call.replaceAllUsesWith(gives);
	call.eraseFromParent();
}

void change_signatures(Module &module)
{
	std::vector<Function *> all;
	for (Function &function : module)
		if (ours(function))
			all.push_back(&function);
	for (Function *function : all) {
		Signature found = signature(*function);
		Function *made = make(*function, found);
		std::vector<User *> users(function->user_begin(), function->user_end());
		for (User *user : users) {
			auto *call = dyn_cast<CallInst>(user);
			if (call && call->getCalledOperand() == function)
				change_call(*call, made, found);
		}
		if (!function->use_empty())
			function->replaceAllUsesWith(made);
		function->eraseFromParent();
	}
}

} // namespace giveway
