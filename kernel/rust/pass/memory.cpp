// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The part of gw-arena for copies and fills of memory. The compiler has instructions for them, and makes
// calls of `memcpy` and `memset` out of the large ones, but the kernel has no such functions. Here small ones
// become reads and writes of words, and large ones calls of the runtime library.
#include "arena.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

namespace giveway {

// Bytes of the largest copy or fill without a call.
static constexpr uint64_t SMALL = 256;

static void call_runtime(IRBuilder<> &b, StringRef name, ArrayRef<Value *> args)
{
	Function &caller = *b.GetInsertBlock()->getParent();
	Function *function = caller.getParent()->getFunction(name);
	if (!function)
		fail(caller, "needs " + name + ", which the runtime library does not have");
	b.CreateCall(function, args)->setCallingConv(function->getCallingConv());
}

static Value *after(IRBuilder<> &b, Value *pointer, uint64_t bytes)
{
	return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), pointer, bytes);
}

static void copy_words(IRBuilder<> &b, Value *to, Value *from, uint64_t size)
{
	// All words are read before the first is written, so that the two may overlap.
	std::vector<std::pair<Value *, uint64_t>> words;
	for (uint64_t at = 0; at < size;) {
		uint64_t step = 8;
		while (at + step > size)
			step /= 2;
		Type *type = b.getIntNTy(step * 8);
		words.push_back({b.CreateAlignedLoad(type, after(b, from, at), Align(1)), at});
		at += step;
	}
	for (auto [word, at] : words)
		b.CreateAlignedStore(word, after(b, to, at), Align(1));
}

static void copy(IRBuilder<> &b, MemTransferInst &inst)
{
	Value *to = inst.getRawDest(), *from = inst.getRawSource();
	auto *size = dyn_cast<ConstantInt>(inst.getLength());
	if (!size || size->getZExtValue() > SMALL)
		return call_runtime(b, "gw_copy", {to, from, b.CreateZExt(inst.getLength(), b.getInt64Ty())});
	// At most five words at a time are in registers, unless the two may overlap.
	uint64_t all = size->getZExtValue();
	uint64_t chunk = inst.getIntrinsicID() == Intrinsic::memmove ? all : 32;
	for (uint64_t at = 0; at < all; at += chunk)
		copy_words(b, after(b, to, at), after(b, from, at), std::min(chunk, all - at));
}

static void fill(IRBuilder<> &b, MemSetInst &inst)
{
	auto *size = dyn_cast<ConstantInt>(inst.getLength());
	Value *byte = b.CreateZExt(inst.getValue(), b.getInt64Ty());
	Value *word = b.CreateMul(byte, b.getInt64(0x0101010101010101ull));
	if (!size || size->getZExtValue() > SMALL) {
		Value *length = b.CreateZExt(inst.getLength(), b.getInt64Ty());
		return call_runtime(b, "gw_fill", {inst.getRawDest(), word, length});
	}
	uint64_t all = size->getZExtValue();
	for (uint64_t at = 0; at < all;) {
		uint64_t step = 8;
		while (at + step > all)
			step /= 2;
		Value *part = b.CreateTrunc(word, b.getIntNTy(step * 8));
		b.CreateAlignedStore(part, after(b, inst.getRawDest(), at), Align(1));
		at += step;
	}
}

// Also removes what only tells the optimizer something.
void expand_copies(Function &function)
{
	std::vector<IntrinsicInst *> found;
	for (Instruction &inst : instructions(function))
		if (auto *known = dyn_cast<IntrinsicInst>(&inst))
			found.push_back(known);
	for (IntrinsicInst *known : found) {
		IRBuilder<> b(known);
		switch (known->getIntrinsicID()) {
		case Intrinsic::memcpy:
		case Intrinsic::memcpy_inline:
		case Intrinsic::memmove: copy(b, *cast<MemTransferInst>(known)); break;
		case Intrinsic::memset:
		case Intrinsic::memset_inline: fill(b, *cast<MemSetInst>(known)); break;
		case Intrinsic::lifetime_start:
		case Intrinsic::lifetime_end:
		case Intrinsic::assume:
		case Intrinsic::experimental_noalias_scope_decl:
		case Intrinsic::invariant_start:
		case Intrinsic::prefetch:
		case Intrinsic::sideeffect: break;
		default: continue;
		}
		if (!known->getType()->isVoidTy())
			known->replaceAllUsesWith(PoisonValue::get(known->getType()));
		known->eraseFromParent();
	}
}

} // namespace giveway
