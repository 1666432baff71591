// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The part of gw-lower for `f64`. BPF has no such numbers, but the disciplines compute with them (rates,
// probabilities, virtual times). The functions are those of Rust's library of the compiler, so that the bits
// of a result are those of the native build. A number is kept in a register as its 64 bits.
#include "lower.h"

#include "llvm/IR/IntrinsicInst.h"

namespace giveway {

static constexpr uint64_t SIGN = 1ull << 63;

static Value *compare(IRBuilder<> &b, FCmpInst::Predicate predicate, Value *x, Value *y)
{
	auto ask = [&](const char *name, Value *l, Value *r) { return call(b, name, b.getInt1Ty(), {l, r}); };
	switch (predicate) {
	case FCmpInst::FCMP_FALSE: return b.getFalse();
	case FCmpInst::FCMP_TRUE: return b.getTrue();
	case FCmpInst::FCMP_OEQ: return ask("gw_f64_eq", x, y);
	case FCmpInst::FCMP_OLT: return ask("gw_f64_lt", x, y);
	case FCmpInst::FCMP_OLE: return ask("gw_f64_le", x, y);
	case FCmpInst::FCMP_OGT: return ask("gw_f64_lt", y, x);
	case FCmpInst::FCMP_OGE: return ask("gw_f64_le", y, x);
	case FCmpInst::FCMP_UNO: return ask("gw_f64_uno", x, y);
	case FCmpInst::FCMP_ONE: return b.CreateOr(ask("gw_f64_lt", x, y), ask("gw_f64_lt", y, x));
	// Each of the others is the opposite of one above.
	default: return b.CreateNot(compare(b, FCmpInst::getInversePredicate(predicate), x, y));
	}
}

static Value *bits(IRBuilder<> &b, function_ref<Value *(Value *)> change, Value *x)
{
	return b.CreateBitCast(change(b.CreateBitCast(x, b.getInt64Ty())), x->getType());
}

static Value *to_int(IRBuilder<> &b, Value *x, Type *type, bool sign)
{
	if (!x->getType()->isDoubleTy())
		return nullptr;
	unsigned size = type->getIntegerBitWidth();
	if (size > 64)
		return joined(b, call(b, sign ? "gw_fixdfti" : "gw_fixunsdfti", b.getInt64Ty(), {x}), type);
	if (size == 64)
		return call(b, sign ? "__fixdfdi" : "__fixunsdfdi", type, {x});
	Value *most = call(b, sign ? "__fixdfsi" : "__fixunsdfsi", b.getInt32Ty(), {x});
	if (size == 32)
		return most;
	APInt high = sign ? APInt::getSignedMaxValue(size).sext(32) : APInt::getMaxValue(size).zext(32);
	Value *limit = b.getInt(high);
	Value *less = sign ? b.CreateICmpSLT(most, limit) : b.CreateICmpULT(most, limit);
	most = b.CreateSelect(less, most, limit);
	if (sign) {
		Value *low = b.getInt(APInt::getSignedMinValue(size).sext(32));
		most = b.CreateSelect(b.CreateICmpSGT(most, low), most, low);
	}
	return b.CreateTrunc(most, type);
}

static Value *from_int(IRBuilder<> &b, Value *x, Type *type, bool sign)
{
	if (x->getType()->getIntegerBitWidth() > 64)
		return call(b, sign ? "gw_floattidf" : "gw_floatuntidf", type, halves(b, x));
	x = sign ? b.CreateSExt(x, b.getInt64Ty()) : b.CreateZExt(x, b.getInt64Ty());
	return call(b, sign ? "__floatdidf" : "__floatundidf", type, {x});
}

static Value *intrinsic(IRBuilder<> &b, IntrinsicInst &known)
{
	Type *type = known.getType();
	auto arg = [&](unsigned i) { return known.getOperand(i); };
	switch (known.getIntrinsicID()) {
	case Intrinsic::fabs:
		if (!type->isDoubleTy())
			return nullptr;
		return bits(b, [&](Value *x) { return b.CreateAnd(x, ~SIGN); }, arg(0));
	case Intrinsic::copysign: {
		Value *x = b.CreateAnd(b.CreateBitCast(arg(0), b.getInt64Ty()), ~SIGN);
		Value *y = b.CreateAnd(b.CreateBitCast(arg(1), b.getInt64Ty()), SIGN);
		return b.CreateBitCast(b.CreateOr(x, y), type);
	}
	case Intrinsic::sqrt: return call(b, "gw_f64_sqrt", type, {arg(0)});
	case Intrinsic::floor: return call(b, "gw_f64_floor", type, {arg(0)});
	case Intrinsic::ceil: return call(b, "gw_f64_ceil", type, {arg(0)});
	case Intrinsic::trunc: return call(b, "gw_f64_trunc", type, {arg(0)});
	case Intrinsic::round: return call(b, "gw_f64_round", type, {arg(0)});
	case Intrinsic::rint:
	case Intrinsic::nearbyint:
	case Intrinsic::roundeven: return call(b, "gw_f64_rint", type, {arg(0)});
	case Intrinsic::fma: return call(b, "gw_f64_fma", type, {arg(0), arg(1), arg(2)});
	case Intrinsic::minnum:
	case Intrinsic::minimumnum: return call(b, "gw_f64_min", type, {arg(0), arg(1)});
	case Intrinsic::maxnum:
	case Intrinsic::maximumnum: return call(b, "gw_f64_max", type, {arg(0), arg(1)});
	case Intrinsic::fptoui_sat: return to_int(b, arg(0), type, false);
	case Intrinsic::fptosi_sat: return to_int(b, arg(0), type, true);
	default: return nullptr;
	}
}

Value *lower_float(IRBuilder<> &b, Instruction &inst)
{
	Type *type = inst.getType();
	auto arg = [&](unsigned i) { return inst.getOperand(i); };
	bool wide = type->isDoubleTy();
	switch (inst.getOpcode()) {
	case Instruction::FAdd: return wide ? call(b, "__adddf3", type, {arg(0), arg(1)}) : nullptr;
	case Instruction::FSub: return wide ? call(b, "__subdf3", type, {arg(0), arg(1)}) : nullptr;
	case Instruction::FMul: return wide ? call(b, "__muldf3", type, {arg(0), arg(1)}) : nullptr;
	case Instruction::FDiv: return wide ? call(b, "__divdf3", type, {arg(0), arg(1)}) : nullptr;
	case Instruction::FNeg:
		return wide ? bits(b, [&](Value *x) { return b.CreateXor(x, SIGN); }, arg(0)) : nullptr;
	case Instruction::FCmp:
		if (!arg(0)->getType()->isDoubleTy())
			return nullptr;
		return compare(b, cast<FCmpInst>(inst).getPredicate(), arg(0), arg(1));
	case Instruction::UIToFP: return wide ? from_int(b, arg(0), type, false) : nullptr;
	case Instruction::SIToFP: return wide ? from_int(b, arg(0), type, true) : nullptr;
	case Instruction::FPToUI: return to_int(b, arg(0), type, false);
	case Instruction::FPToSI: return to_int(b, arg(0), type, true);
	case Instruction::FPExt: return wide ? call(b, "__extendsfdf2", type, {arg(0)}) : nullptr;
	case Instruction::FPTrunc:
		return arg(0)->getType()->isDoubleTy() ? call(b, "__truncdfsf2", type, {arg(0)}) : nullptr;
	default: break;
	}
	auto *known = dyn_cast<IntrinsicInst>(&inst);
	return known ? intrinsic(b, *known) : nullptr;
}

} // namespace giveway
