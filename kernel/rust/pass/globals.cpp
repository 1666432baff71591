// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The part of gw-arena for variables and constants of the program. They lie in the arena, and the verifier
// sees their addresses as numbers. The loader does not relocate pointers in their initial values, so a
// function, `gw_pointers`, writes these; the test and the shim call it first.
#include "arena.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/ReplaceConstant.h"

namespace giveway {

namespace {

// A pointer in the initial value of a variable.
struct Pointer {
	GlobalVariable *in;
	uint64_t at;
	Constant *target;
};

} // namespace

// The initial value `old`, at a place of a variable, without pointers. Those it had are added to `pointers`.
static Constant *numbers(Constant *old, GlobalVariable *in, uint64_t at, std::vector<Pointer> &pointers)
{
	const DataLayout &layout = in->getDataLayout();
	Type *type = old->getType();
	auto *number = dyn_cast<ConstantExpr>(old);
	if (type->isPointerTy()) {
		// The number of a function is a value already.
		if (number && number->getOpcode() == Instruction::IntToPtr)
			return old;
		if (!old->isNullValue() && !isa<UndefValue>(old))
			pointers.push_back({in, at, old});
		return Constant::getNullValue(type);
	}
	if (number && number->getOpcode() == Instruction::PtrToInt) {
		pointers.push_back({in, at, number->getOperand(0)});
		return Constant::getNullValue(type);
	}
	if (isa<ConstantData>(old))
		return isa<UndefValue>(old) ? Constant::getNullValue(type) : old;
	std::vector<Constant *> parts;
	if (auto *record = dyn_cast<ConstantStruct>(old)) {
		const StructLayout *offsets = layout.getStructLayout(record->getType());
		for (unsigned i = 0; i < record->getNumOperands(); i++) {
			uint64_t offset = offsets->getElementOffset(i);
			parts.push_back(numbers(record->getOperand(i), in, at + offset, pointers));
		}
		return ConstantStruct::get(record->getType(), parts);
	}
	if (auto *array = dyn_cast<ConstantArray>(old)) {
		uint64_t size = layout.getTypeAllocSize(array->getType()->getElementType());
		for (unsigned i = 0; i < array->getNumOperands(); i++)
			parts.push_back(numbers(array->getOperand(i), in, at + i * size, pointers));
		return ConstantArray::get(array->getType(), parts);
	}
	fail(*in, "has an initial value that is not made of numbers and pointers");
}

// Makes the function that writes pointers into initial values.
static void write_pointers(Module &module, ArrayRef<Pointer> pointers)
{
	IRBuilder<> b(module.getContext());
	auto *type = FunctionType::get(b.getInt64Ty(), false);
	auto *function = Function::Create(type, GlobalValue::ExternalLinkage, "gw_pointers", module);
	b.SetInsertPoint(BasicBlock::Create(module.getContext(), "", function));
	for (auto [in, at, target] : pointers)
		if (!isa<Function>(target->stripPointerCasts()))
			b.CreateStore(target, b.CreateConstGEP1_64(b.getInt8Ty(), in, at));
	b.CreateRet(b.getInt64(0));
}

// Moves a variable to the arena. Each instruction that uses its address makes a number of it.
static void move(GlobalVariable *global)
{
	Module &module = *global->getParent();
	auto *made = new GlobalVariable(module, global->getValueType(), false, global->getLinkage(),
					global->getInitializer(), "", global, GlobalValue::NotThreadLocal, 1);
	made->takeName(global);
	if (made->hasPrivateLinkage())
		made->setLinkage(GlobalValue::InternalLinkage);
	made->setAlignment(global->getAlign());
	made->setSection(".addr_space.1");
	std::vector<Use *> uses;
	for (Use &use : global->uses())
		uses.push_back(&use);
	for (Use *use : uses) {
		auto *at = dyn_cast<Instruction>(use->getUser());
		if (!at)
			fail(*made, "has a use that is not an instruction");
		if (auto *phi = dyn_cast<PHINode>(at))
			at = phi->getIncomingBlock(*use)->getTerminator();
		IRBuilder<> b(at);
		use->set(b.CreateIntToPtr(b.CreatePtrToInt(made, b.getInt64Ty()), b.getPtrTy()));
	}
	global->eraseFromParent();
}

void move_globals(Module &module)
{
	std::vector<GlobalVariable *> all;
	for (GlobalVariable &global : module.globals())
		if (global.getAddressSpace() == 0 && !global.getName().starts_with("llvm.") &&
		    !global.hasSection() && !global.isDeclaration())
			all.push_back(&global);
	std::vector<Pointer> pointers;
	for (GlobalVariable *global : all)
		global->setInitializer(numbers(global->getInitializer(), global, 0, pointers));
	write_pointers(module, pointers);
	std::vector<Constant *> constants(all.begin(), all.end());
	convertUsersOfConstantsToInstructions(constants);
	for (GlobalVariable *global : all)
		move(global);
}

} // namespace giveway
