// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The part of gw-lower for integers of more than 64 bits, and for products whose overflow is checked. The
// machine has registers of 64 bits and no instruction for the upper half of a product. Rates and virtual
// times need products of 128 bits, and a checked product of 64 bits is one, too. A function of the runtime
// library returns the lower half of its result, and leaves the upper half in the variable `gw_high`.
#include "lower.h"

#include "llvm/IR/IntrinsicInst.h"

namespace giveway {

// Numbers of more than 64 bits and less than 128, which the optimizer makes up.
static bool odd(Type *type)
{
	return type->isIntegerTy() && type->getIntegerBitWidth() > 64 && type->getIntegerBitWidth() < 128;
}

static Value *widen(IRBuilder<> &b, Value *x, bool sign)
{
	return sign ? b.CreateSExt(x, b.getInt128Ty()) : b.CreateZExt(x, b.getInt128Ty());
}

std::vector<Value *> halves(IRBuilder<> &b, Value *x)
{
	Type *word = b.getInt64Ty();
	unsigned size = x->getType()->getIntegerBitWidth();
	if (size != 128)
		fail(*b.GetInsertBlock()->getParent(), "computes with a number of " + Twine(size) + " bits");
	return {b.CreateTrunc(x, word), b.CreateTrunc(b.CreateLShr(x, 64), word)};
}

Value *joined(IRBuilder<> &b, Value *low, Type *type)
{
	Function *caller = b.GetInsertBlock()->getParent();
	GlobalVariable *variable = caller->getParent()->getGlobalVariable("gw_high");
	if (!variable)
		fail(*caller, "needs gw_high, which the runtime library does not have");
	Value *high = b.CreateZExt(b.CreateLoad(b.getInt64Ty(), variable), type);
	return b.CreateOr(b.CreateZExt(low, type), b.CreateShl(high, 64));
}

// A shift of a number of 128 bits by a number of bits that is not known here.
static Value *shifted(IRBuilder<> &b, unsigned opcode, Value *x, Value *by)
{
	std::vector<Value *> half = halves(b, x);
	Value *low = half[0], *high = half[1], *zero = b.getInt64(0);
	Value *count = b.CreateTrunc(by, b.getInt64Ty()), *step = b.CreateAnd(count, 63);
	Value *far = b.CreateICmpNE(b.CreateAnd(count, 64), zero), *other = b.CreateXor(step, 63);
	Value *low_out, *high_out;
	if (opcode == Instruction::Shl) {
		Value *moved = b.CreateShl(low, step);
		Value *mixed = b.CreateOr(b.CreateShl(high, step), b.CreateLShr(b.CreateLShr(low, 1), other));
		low_out = b.CreateSelect(far, zero, moved);
		high_out = b.CreateSelect(far, moved, mixed);
	} else {
		bool sign = opcode == Instruction::AShr;
		Value *moved = sign ? b.CreateAShr(high, step) : b.CreateLShr(high, step);
		Value *mixed = b.CreateOr(b.CreateLShr(low, step), b.CreateShl(b.CreateShl(high, 1), other));
		low_out = b.CreateSelect(far, moved, mixed);
		high_out = b.CreateSelect(far, sign ? b.CreateAShr(high, 63) : zero, moved);
	}
	Type *type = x->getType();
	return b.CreateOr(b.CreateZExt(low_out, type), b.CreateShl(b.CreateZExt(high_out, type), 64));
}

static Value *shift(IRBuilder<> &b, Instruction &inst)
{
	Value *x = inst.getOperand(0), *by = inst.getOperand(1);
	if (isa<ConstantInt>(by))
		return nullptr;
	if (odd(inst.getType())) {
		x = widen(b, x, inst.getOpcode() == Instruction::AShr);
		return b.CreateTrunc(shifted(b, inst.getOpcode(), x, widen(b, by, false)), inst.getType());
	}
	return inst.getType()->isIntegerTy(128) ? shifted(b, inst.getOpcode(), x, by) : nullptr;
}

static Value *divided(IRBuilder<> &b, StringRef name, Value *x, Value *y)
{
	std::vector<Value *> args = halves(b, x);
	for (Value *half : halves(b, y))
		args.push_back(half);
	return joined(b, call(b, name, b.getInt64Ty(), args), x->getType());
}

static Value *division(IRBuilder<> &b, StringRef name, Instruction &inst, bool sign)
{
	Value *x = inst.getOperand(0), *y = inst.getOperand(1);
	if (odd(inst.getType()))
		return b.CreateTrunc(divided(b, name, widen(b, x, sign), widen(b, y, sign)), inst.getType());
	return inst.getType()->isIntegerTy(128) ? divided(b, name, x, y) : nullptr;
}

static Value *product(IRBuilder<> &b, Value *x, Value *y)
{
	Type *word = b.getInt64Ty(), *both = x->getType();
	Value *x0 = b.CreateTrunc(x, word), *x1 = b.CreateTrunc(b.CreateLShr(x, 64), word);
	Value *y0 = b.CreateTrunc(y, word), *y1 = b.CreateTrunc(b.CreateLShr(y, 64), word);
	Value *high = call(b, "gw_umulh", word, {x0, y0});
	high = b.CreateAdd(high, b.CreateAdd(b.CreateMul(x0, y1), b.CreateMul(x1, y0)));
	Value *low = b.CreateZExt(b.CreateMul(x0, y0), both);
	return b.CreateOr(low, b.CreateShl(b.CreateZExt(high, both), 64));
}

static Value *multiplication(IRBuilder<> &b, Instruction &inst)
{
	Value *x = inst.getOperand(0), *y = inst.getOperand(1);
	if (odd(inst.getType()))
		return b.CreateTrunc(product(b, widen(b, x, false), widen(b, y, false)), inst.getType());
	return inst.getType()->isIntegerTy(128) ? product(b, x, y) : nullptr;
}

// A rotation, or another shift of two numbers as one.
static Value *funnel(IRBuilder<> &b, IntrinsicInst &inst, bool left)
{
	auto arg = [&](unsigned i) { return inst.getOperand(i); };
	if (!inst.getType()->isIntegerTy(128) || isa<ConstantInt>(arg(2)))
		return nullptr;
	Value *by = b.CreateAnd(arg(2), 127), *rest = b.CreateSub(b.getIntN(128, 127), by);
	// The other part is shifted in two steps, since one may not shift by 128.
	Value *x = left ? shifted(b, Instruction::Shl, arg(0), by)
			: shifted(b, Instruction::Shl, b.CreateShl(arg(0), 1), rest);
	Value *y = left ? shifted(b, Instruction::LShr, b.CreateLShr(arg(1), 1), rest)
			: shifted(b, Instruction::LShr, arg(1), by);
	return b.CreateOr(x, y);
}

// A product and whether it overflows.
static Value *checked(IRBuilder<> &b, IntrinsicInst &inst, bool sign)
{
	auto arg = [&](unsigned i) { return inst.getOperand(i); };
	Type *part = arg(0)->getType();
	Value *low = b.CreateMul(arg(0), arg(1));
	Value *high = call(b, "gw_umulh", part, {arg(0), arg(1)}), *over;
	if (sign) {
		Value *x = b.CreateAnd(b.CreateAShr(arg(0), 63), arg(1));
		Value *y = b.CreateAnd(b.CreateAShr(arg(1), 63), arg(0));
		over = b.CreateICmpNE(b.CreateSub(b.CreateSub(high, x), y), b.CreateAShr(low, 63));
	} else {
		over = b.CreateICmpNE(high, b.getInt64(0));
	}
	Value *both = b.CreateInsertValue(PoisonValue::get(inst.getType()), low, 0);
	return b.CreateInsertValue(both, over, 1);
}

// The same for a product of 128 bits without sign.
static Value *checked_wide(IRBuilder<> &b, IntrinsicInst &inst)
{
	Type *part = inst.getOperand(0)->getType();
	std::vector<Value *> x = halves(b, inst.getOperand(0)), y = halves(b, inst.getOperand(1));
	Value *none = b.getInt64(0);
	auto high = [&](Value *l, Value *r) { return call(b, "gw_umulh", b.getInt64Ty(), {l, r}); };
	Value *one = b.CreateMul(x[1], y[0]), *other = b.CreateMul(x[0], y[1]);
	Value *over = b.CreateAnd(b.CreateICmpNE(x[1], none), b.CreateICmpNE(y[1], none));
	over = b.CreateOr(over, b.CreateICmpNE(high(x[1], y[0]), none));
	over = b.CreateOr(over, b.CreateICmpNE(high(x[0], y[1]), none));
	Value *middle = b.CreateAdd(high(x[0], y[0]), one);
	over = b.CreateOr(over, b.CreateICmpULT(middle, one));
	Value *top = b.CreateAdd(middle, other);
	over = b.CreateOr(over, b.CreateICmpULT(top, other));
	Value *low = b.CreateZExt(b.CreateMul(x[0], y[0]), part);
	Value *whole = b.CreateOr(low, b.CreateShl(b.CreateZExt(top, part), 64));
	Value *both = b.CreateInsertValue(PoisonValue::get(inst.getType()), whole, 0);
	return b.CreateInsertValue(both, over, 1);
}

Value *lower_wide(IRBuilder<> &b, Instruction &inst)
{
	switch (inst.getOpcode()) {
	case Instruction::Mul: return multiplication(b, inst);
	case Instruction::Shl:
	case Instruction::LShr:
	case Instruction::AShr: return shift(b, inst);
	case Instruction::UDiv: return division(b, "gw_udivti", inst, false);
	case Instruction::URem: return division(b, "gw_umodti", inst, false);
	case Instruction::SDiv: return division(b, "gw_divti", inst, true);
	case Instruction::SRem: return division(b, "gw_modti", inst, true);
	default: break;
	}
	auto *known = dyn_cast<IntrinsicInst>(&inst);
	if (!known)
		return nullptr;
	switch (known->getIntrinsicID()) {
	case Intrinsic::fshl: return funnel(b, *known, true);
	case Intrinsic::fshr: return funnel(b, *known, false);
	case Intrinsic::umul_with_overflow:
		if (known->getOperand(0)->getType()->isIntegerTy(128))
			return checked_wide(b, *known);
		return known->getOperand(0)->getType()->isIntegerTy(64) ? checked(b, *known, false) : nullptr;
	case Intrinsic::smul_with_overflow:
		return known->getOperand(0)->getType()->isIntegerTy(64) ? checked(b, *known, true) : nullptr;
	default: return nullptr;
	}
}

} // namespace giveway
