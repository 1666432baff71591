// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The part of gw-arena for reads and writes. Each casts its number to a pointer into the arena, which is the
// only place where the verifier sees a pointer. The offset of a field stays outside of the cast, so that the
// accesses to one object share it.
#include "arena.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Operator.h"

namespace giveway {

using Casts = MapVector<std::pair<BasicBlock *, GlobalVariable *>, Value *>;

// The variable of the program whose address this is.
static GlobalVariable *addressed(Value *base)
{
	auto *pointer = dyn_cast<Operator>(base);
	if (!pointer || pointer->getOpcode() != Instruction::IntToPtr)
		return nullptr;
	auto *number = dyn_cast<Operator>(pointer->getOperand(0));
	if (!number || number->getOpcode() != Instruction::PtrToInt)
		return nullptr;
	return dyn_cast<GlobalVariable>(number->getOperand(0));
}

// The pointer into the arena for a number.
static Value *cast_number(IRBuilder<> &b, Value *base, Casts &casts)
{
	auto *arena = PointerType::get(b.getContext(), 1);
	GlobalVariable *global = addressed(base);
	if (!global) {
		// Next to the value, so that all accesses through it share the cast.
		Value *number = b.CreatePtrToInt(base, b.getInt64Ty());
		return b.CreateAddrSpaceCast(b.CreateIntToPtr(number, arena), b.getPtrTy());
	}
	// One cast for each block. If all blocks shared one, it would be kept on the stack.
	Value *&known = casts[{b.GetInsertBlock(), global}];
	if (!known) {
		auto *type = FunctionType::get(b.getPtrTy(), {arena}, false);
		std::string text = "$0 = addr_space_cast($1, 0, 1) // " + std::to_string(casts.size());
		auto *cast = b.CreateCall(type, InlineAsm::get(type, text, "=r,r", false), {global});
		cast->setDoesNotAccessMemory();
		known = cast;
	}
	return known;
}

void cast_accesses(Function &function)
{
	const DataLayout &layout = function.getDataLayout();
	Casts casts;
	std::vector<Instruction *> found;
	for (Instruction &inst : instructions(function))
		if (isa<LoadInst>(inst) || isa<StoreInst>(inst))
			found.push_back(&inst);
	for (Instruction *inst : found) {
		Value *pointer = getLoadStorePointerOperand(inst);
		if (pointer->getType()->getPointerAddressSpace() != 0)
			continue;
		APInt offset(64, 0);
		Value *base = pointer->stripAndAccumulateConstantOffsets(layout, offset, true);
		if (!offset.isSignedIntN(15) || base->getType() != pointer->getType()) {
			base = pointer;
			offset = 0;
		}
		IRBuilder<> b(inst);
		Value *kernel = cast_number(b, base, casts);
		if (!offset.isZero())
			kernel = b.CreateConstGEP1_64(b.getInt8Ty(), kernel, offset.getSExtValue());
		// The arena is memory of x86-64 or arm64, where words need no alignment.
		uint64_t size = PowerOf2Ceil(layout.getTypeStoreSize(getLoadStoreType(inst)));
		Align natural(std::min<uint64_t>(8, size));
		if (auto *load = dyn_cast<LoadInst>(inst)) {
			load->setAlignment(natural);
			load->setOperand(LoadInst::getPointerOperandIndex(), kernel);
		} else {
			cast<StoreInst>(inst)->setAlignment(natural);
			inst->setOperand(StoreInst::getPointerOperandIndex(), kernel);
		}
	}
}

} // namespace giveway
