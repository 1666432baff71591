// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Makes programs for the kernel's verifier of BPF out of the bitcode of ordinary Rust.
//
// Principles
// - All memory of a discipline lies in a BPF arena, and a pointer is a plain number for the verifier: the
//   address that a program of the user would have. Only the instruction that reads or writes casts the number
//   to a pointer into the arena. A wrong number reads or damages the arena and nothing else, so the kernel
//   needs no proof of where a pointer points.
// - So every function has numbers as arguments and as its result. The kernel checks each once, as a global
//   function, and knows nothing about its arguments.
// - Each loop asks the kernel for leave to go on (`may_goto`). What would be a panic, or a loop without an
//   end, sets `gw_broken` to the number of its place and returns. The caller goes on with any value, which is
//   harmless for the kernel, and the shim then treats the discipline as broken.
//
// Passes, in their order
// - gw-sever: replaces each call of a function that does not return (a panic) by a place with a number, so
//   that the texts of panics need no code.
// - gw-dispatch: a call through a pointer becomes a choice among the functions of its type.
// - gw-lower: arithmetic that the machine lacks becomes calls of functions: f64, products of 128 bits.
// - gw-unwind: a function that calls itself becomes a chain of copies.
// - gw-flatten: inlines functions where the calls within each other are too many for the kernel.
// - gw-arena: all of the above principles. It must be the last one, and works on the whole program.
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SCCIterator.h"
#include "llvm/Analysis/CallGraph.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DIBuilder.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/ReplaceConstant.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Plugins/PassPlugin.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Scalar/Reg2Mem.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

static cl::list<std::string> Demote("gw-demote", cl::CommaSeparated,
				    cl::desc("functions that keep their values in the arena, not on the stack"));
static cl::opt<bool> Hide("gw-hide", cl::init(true), cl::desc("hide values in loops from the verifier"));
static cl::opt<std::string> Sites("gw-sites", cl::desc("file for the places of panics"));

namespace {

// ------------------------------------------------------------------------------------------------------
// gw-sever

constexpr const char *STOP_AT = "gw_stop_at";

bool isStop(const CallInst &call)
{
	const Function *callee = call.getCalledFunction();
	if (!callee || callee->isIntrinsic())
		return callee && callee->getIntrinsicID() == Intrinsic::trap;
	if (call.doesNotReturn())
		return true;
	// Text is for messages of errors, which the program of the user has shown before.
	StringRef name = callee->getName();
	return name.contains("6format12format_inner") || name.ends_with("4core3fmt5write");
}

// The place of an instruction in our own sources: the innermost line that is not in Rust's library.
std::string place(const Instruction &at)
{
	std::string outermost;
	for (const DILocation *loc = at.getDebugLoc(); loc; loc = loc->getInlinedAt()) {
		StringRef file = loc->getFilename();
		std::string text = (file + ":" + Twine(loc->getLine())).str();
		if (!file.contains("/library/") && !file.contains("rustc/"))
			return text;
		outermost = text;
	}
	return outermost.empty() ? "unknown" : outermost;
}

struct Sever : PassInfoMixin<Sever> {
	PreservedAnalyses run(Module &module, ModuleAnalysisManager &)
	{
		LLVMContext &context = module.getContext();
		FunctionCallee stop = module.getOrInsertFunction(
			STOP_AT, FunctionType::get(Type::getVoidTy(context), {Type::getInt32Ty(context)}, false));
		auto *function = cast<Function>(stop.getCallee());
		function->setDoesNotReturn();
		function->addFnAttr(Attribute::Cold);
		function->addFnAttr(Attribute::NoUnwind);
		std::vector<WeakVH> calls;
		for (Function &caller : module)
			for (Instruction &inst : instructions(caller))
				if (auto *call = dyn_cast<CallInst>(&inst); call && isStop(*call))
					calls.push_back(call);
		std::error_code error;
		raw_fd_ostream sites(Sites.empty() ? "-" : Sites.getValue(), error);
		unsigned number = 0;
		for (WeakVH &found : calls) {
			// One that follows another in its block is gone.
			auto *call = cast_or_null<CallInst>(found);
			if (!call)
				continue;
			const Function *callee = call->getCalledFunction();
			sites << ++number << '\t' << place(*call) << '\t'
			      << (callee ? demangle(callee->getName()) : "?") << '\t'
			      << demangle(call->getFunction()->getName()) << '\n';
			IRBuilder<> builder(call);
			auto *instead = builder.CreateCall(stop, {builder.getInt32(number)});
			instead->setDebugLoc(call->getDebugLoc());
			changeToUnreachable(call);
			// `changeToUnreachable` removes the call and all that follows.
		}
		StripDebugInfo(module);
		// A loop that copies would become a call of the function that it is in.
		for (const char *name : {"gw_copy", "gw_fill"})
			if (Function *function = module.getFunction(name)) {
				function->addFnAttr("no-builtins");
				function->addFnAttr(Attribute::NoInline);
			}
		return PreservedAnalyses::none();
	}
	static bool isRequired() { return true; }
};

// ------------------------------------------------------------------------------------------------------
// gw-lower

struct Lower : PassInfoMixin<Lower> {
	Module *module;

	Value *call(IRBuilder<> &b, StringRef name, Type *result, ArrayRef<Value *> args)
	{
		std::vector<Type *> types;
		for (Value *arg : args)
			types.push_back(arg->getType());
		Function *function = module->getFunction(name);
		if (!function) {
			errs() << "gw-lower: there is no function " << name << "\n";
			function = cast<Function>(
				module->getOrInsertFunction(name, FunctionType::get(result, types, false)).getCallee());
		}
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

	Value *compare(IRBuilder<> &b, FCmpInst::Predicate predicate, Value *x, Value *y)
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

	// Value for an instruction that the machine lacks, or null if it has it.
	Value *lowered(Instruction &inst, IRBuilder<> &b)
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
			return wide ? bits(b, [&](Value *x) { return b.CreateXor(x, 1ull << 63); }, arg(0)) : nullptr;
		case Instruction::FCmp:
			if (!arg(0)->getType()->isDoubleTy())
				return nullptr;
			return compare(b, cast<FCmpInst>(inst).getPredicate(), arg(0), arg(1));
		case Instruction::UIToFP:
		case Instruction::SIToFP: {
			bool sign = inst.getOpcode() == Instruction::SIToFP;
			unsigned size = arg(0)->getType()->getIntegerBitWidth();
			if (!wide)
				return nullptr;
			if (size > 64)
				return call(b, sign ? "gw_floattidf" : "gw_floatuntidf", type, halves(b, arg(0)));
			Value *x = sign ? b.CreateSExt(arg(0), b.getInt64Ty()) : b.CreateZExt(arg(0), b.getInt64Ty());
			return call(b, sign ? "__floatdidf" : "__floatundidf", type, {x});
		}
		case Instruction::FPToUI:
		case Instruction::FPToSI:
			return to_int(b, arg(0), type, inst.getOpcode() == Instruction::FPToSI);
		case Instruction::FPExt: return wide ? call(b, "__extendsfdf2", type, {arg(0)}) : nullptr;
		case Instruction::FPTrunc:
			return arg(0)->getType()->isDoubleTy() ? call(b, "__truncdfsf2", type, {arg(0)}) : nullptr;
		case Instruction::Mul:
			if (odd(type))
				return narrow(b, product(b, widen(b, arg(0), false), widen(b, arg(1), false)), type);
			return type->isIntegerTy(128) ? product(b, arg(0), arg(1)) : nullptr;
		case Instruction::Shl:
		case Instruction::LShr:
		case Instruction::AShr:
			if (isa<ConstantInt>(arg(1)))
				return nullptr;
			if (odd(type)) {
				Value *x = widen(b, arg(0), inst.getOpcode() == Instruction::AShr);
				return narrow(b, shifted(b, inst.getOpcode(), x, widen(b, arg(1), false)), type);
			}
			return type->isIntegerTy(128) ? shifted(b, inst.getOpcode(), arg(0), arg(1)) : nullptr;
		case Instruction::UDiv:
			if (odd(type))
				return narrow(b, divided(b, "gw_udivti", widen(b, arg(0), false), widen(b, arg(1), false)), type);
			return type->isIntegerTy(128) ? divided(b, "gw_udivti", arg(0), arg(1)) : nullptr;
		case Instruction::URem:
			if (odd(type))
				return narrow(b, divided(b, "gw_umodti", widen(b, arg(0), false), widen(b, arg(1), false)), type);
			return type->isIntegerTy(128) ? divided(b, "gw_umodti", arg(0), arg(1)) : nullptr;
		case Instruction::SDiv:
			if (odd(type))
				return narrow(b, divided(b, "gw_divti", widen(b, arg(0), true), widen(b, arg(1), true)), type);
			return type->isIntegerTy(128) ? divided(b, "gw_divti", arg(0), arg(1)) : nullptr;
		case Instruction::SRem:
			if (odd(type))
				return narrow(b, divided(b, "gw_modti", widen(b, arg(0), true), widen(b, arg(1), true)), type);
			return type->isIntegerTy(128) ? divided(b, "gw_modti", arg(0), arg(1)) : nullptr;
		default: break;
		}
		auto *known = dyn_cast<IntrinsicInst>(&inst);
		if (!known)
			return nullptr;
		switch (known->getIntrinsicID()) {
		case Intrinsic::fabs:
			return wide ? bits(b, [&](Value *x) { return b.CreateAnd(x, ~(1ull << 63)); }, arg(0)) : nullptr;
		case Intrinsic::copysign: {
			Value *x = b.CreateAnd(b.CreateBitCast(arg(0), b.getInt64Ty()), ~(1ull << 63));
			Value *y = b.CreateAnd(b.CreateBitCast(arg(1), b.getInt64Ty()), 1ull << 63);
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
		case Intrinsic::fshl:
		case Intrinsic::fshr: {
			if (!type->isIntegerTy(128) || isa<ConstantInt>(arg(2)))
				return nullptr;
			bool left = known->getIntrinsicID() == Intrinsic::fshl;
			Value *by = b.CreateAnd(arg(2), 127), *rest = b.CreateSub(b.getIntN(128, 127), by);
			// The other part is shifted in two steps, since one may not shift by 128.
			Value *x = left ? shifted(b, Instruction::Shl, arg(0), by)
					: shifted(b, Instruction::Shl, b.CreateShl(arg(0), 1), rest);
			Value *y = left ? shifted(b, Instruction::LShr, b.CreateLShr(arg(1), 1), rest)
					: shifted(b, Instruction::LShr, arg(1), by);
			return b.CreateOr(x, y);
		}
		case Intrinsic::umul_with_overflow:
		case Intrinsic::smul_with_overflow: {
			Type *part = arg(0)->getType();
			if (part->isIntegerTy(128) && known->getIntrinsicID() == Intrinsic::umul_with_overflow) {
				std::vector<Value *> x = halves(b, arg(0)), y = halves(b, arg(1));
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
				Value *both = b.CreateInsertValue(PoisonValue::get(type), whole, 0);
				return b.CreateInsertValue(both, over, 1);
			}
			if (!part->isIntegerTy(64))
				return nullptr;
			bool sign = known->getIntrinsicID() == Intrinsic::smul_with_overflow;
			Value *low = b.CreateMul(arg(0), arg(1));
			Value *high = call(b, "gw_umulh", part, {arg(0), arg(1)}), *over;
			if (sign) {
				Value *x = b.CreateAnd(b.CreateAShr(arg(0), 63), arg(1));
				Value *y = b.CreateAnd(b.CreateAShr(arg(1), 63), arg(0));
				over = b.CreateICmpNE(b.CreateSub(b.CreateSub(high, x), y), b.CreateAShr(low, 63));
			} else {
				over = b.CreateICmpNE(high, b.getInt64(0));
			}
			Value *both = b.CreateInsertValue(PoisonValue::get(type), low, 0);
			return b.CreateInsertValue(both, over, 1);
		}
		default: return nullptr;
		}
	}

	Value *bits(IRBuilder<> &b, function_ref<Value *(Value *)> change, Value *x)
	{
		return b.CreateBitCast(change(b.CreateBitCast(x, b.getInt64Ty())), x->getType());
	}

	Value *to_int(IRBuilder<> &b, Value *x, Type *type, bool sign)
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
		most = b.CreateSelect(sign ? b.CreateICmpSLT(most, limit) : b.CreateICmpULT(most, limit), most, limit);
		if (sign) {
			Value *low = b.getInt(APInt::getSignedMinValue(size).sext(32));
			most = b.CreateSelect(b.CreateICmpSGT(most, low), most, low);
		}
		return b.CreateTrunc(most, type);
	}

	// Numbers of more than 64 bits and less than 128, which the optimizer makes up.
	static bool odd(Type *type)
	{
		return type->isIntegerTy() && type->getIntegerBitWidth() > 64 && type->getIntegerBitWidth() < 128;
	}

	static Value *widen(IRBuilder<> &b, Value *x, bool sign)
	{
		return sign ? b.CreateSExt(x, b.getInt128Ty()) : b.CreateZExt(x, b.getInt128Ty());
	}

	static Value *narrow(IRBuilder<> &b, Value *x, Type *type)
	{
		return b.CreateTrunc(x, type);
	}

	// A shift of a number of 128 bits by a number of bits that is not known here.
	Value *shifted(IRBuilder<> &b, unsigned opcode, Value *x, Value *by)
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

	std::vector<Value *> halves(IRBuilder<> &b, Value *x)
	{
		Type *word = b.getInt64Ty();
		if (x->getType()->getIntegerBitWidth() != 128)
			report_fatal_error("gw-lower: a number of a size that is not 128 bits");
		return {b.CreateTrunc(x, word), b.CreateTrunc(b.CreateLShr(x, 64), word)};
	}

	// A number of 128 bits: the lower half, and the upper half that the function left in a variable.
	Value *joined(IRBuilder<> &b, Value *low, Type *type)
	{
		GlobalVariable *variable = module->getGlobalVariable("gw_high");
		Value *high = b.CreateZExt(b.CreateLoad(b.getInt64Ty(), variable), type);
		return b.CreateOr(b.CreateZExt(low, type), b.CreateShl(high, 64));
	}

	Value *divided(IRBuilder<> &b, StringRef name, Value *x, Value *y)
	{
		std::vector<Value *> args = halves(b, x);
		for (Value *half : halves(b, y))
			args.push_back(half);
		return joined(b, call(b, name, b.getInt64Ty(), args), x->getType());
	}

	Value *product(IRBuilder<> &b, Value *x, Value *y)
	{
		Type *word = b.getInt64Ty(), *both = x->getType();
		Value *x0 = b.CreateTrunc(x, word), *x1 = b.CreateTrunc(b.CreateLShr(x, 64), word);
		Value *y0 = b.CreateTrunc(y, word), *y1 = b.CreateTrunc(b.CreateLShr(y, 64), word);
		Value *high = call(b, "gw_umulh", word, {x0, y0});
		high = b.CreateAdd(high, b.CreateAdd(b.CreateMul(x0, y1), b.CreateMul(x1, y0)));
		Value *low = b.CreateZExt(b.CreateMul(x0, y0), both);
		return b.CreateOr(low, b.CreateShl(b.CreateZExt(high, both), 64));
	}

	PreservedAnalyses run(Module &all, ModuleAnalysisManager &)
	{
		module = &all;
		std::vector<Instruction *> insts;
		for (Function &function : all)
			for (Instruction &inst : instructions(function))
				insts.push_back(&inst);
		for (Instruction *inst : insts) {
			IRBuilder<> builder(inst);
			if (Value *instead = lowered(*inst, builder)) {
				inst->replaceAllUsesWith(instead);
				inst->eraseFromParent();
			}
		}
		// What was said of a function when its quotient was an instruction is not true of the call, which
		// writes a variable.
		for (Function &function : all) {
			// Mathematics is long, and has little in common with the function that needs it.
			StringRef name = function.getName();
			bool mathematics = name.contains("_4libm") || name.contains("compiler_builtins");
			if (mathematics && !function.isDeclaration() && function.getInstructionCount() > 40 &&
			    !function.hasFnAttribute(Attribute::AlwaysInline))
				function.addFnAttr(Attribute::NoInline);
			if (!function.isIntrinsic()) {
				function.removeFnAttr(Attribute::Memory);
				function.removeFnAttr(Attribute::Speculatable);
			}
			for (Instruction &inst : instructions(function))
				if (auto *call = dyn_cast<CallInst>(&inst); call && !isa<IntrinsicInst>(call))
					call->removeFnAttr(Attribute::Memory);
		}
		return PreservedAnalyses::none();
	}
	static bool isRequired() { return true; }
};

// ------------------------------------------------------------------------------------------------------
// gw-dispatch

// A pointer to a function becomes a number, and a call through it a choice among the functions of its type.
struct Dispatch : PassInfoMixin<Dispatch> {
	PreservedAnalyses run(Module &module, ModuleAnalysisManager &)
	{
		LLVMContext &context = module.getContext();
		std::vector<Function *> taken;
		for (Function &function : module)
			if (!function.isDeclaration() && function.hasAddressTaken())
				taken.push_back(&function);
		MapVector<Function *, Constant *> numbers;
		Type *pointer = PointerType::get(context, 0), *word = Type::getInt64Ty(context);
		for (Function *function : taken)
			numbers[function] = ConstantExpr::getIntToPtr(ConstantInt::get(word, 16 * (numbers.size() + 1)), pointer);
		std::vector<CallInst *> calls;
		for (Function &function : module)
			for (Instruction &inst : instructions(function))
				if (auto *call = dyn_cast<CallInst>(&inst); call && call->isIndirectCall())
					calls.push_back(call);
		FunctionCallee stop = module.getOrInsertFunction(
			STOP_AT, FunctionType::get(Type::getVoidTy(context), {Type::getInt32Ty(context)}, false));
		for (CallInst *call : calls) {
			std::vector<Function *> fitting;
			for (Function *function : taken)
				if (function->getFunctionType() == call->getFunctionType())
					fitting.push_back(function);
			// All disciplines fit in the place of a child.
			if (fitting.size() > 40)
				report_fatal_error(Twine("gw-dispatch: ") + Twine(fitting.size()) +
						   " functions for a call in " + demangle(call->getFunction()->getName()), false);
			BasicBlock *head = call->getParent(), *tail = head->splitBasicBlock(std::next(call->getIterator()));
			head->getTerminator()->eraseFromParent();
			Value *callee = call->getCalledOperand();
			PHINode *result = nullptr;
			if (!call->getType()->isVoidTy()) {
				result = PHINode::Create(call->getType(), fitting.size(), "", tail->begin());
				call->replaceAllUsesWith(result);
			}
			BasicBlock *from = head;
			for (Function *function : fitting) {
				BasicBlock *here = BasicBlock::Create(context, "", head->getParent());
				BasicBlock *next = BasicBlock::Create(context, "", head->getParent());
				IRBuilder<> b(from);
				b.CreateCondBr(b.CreateICmpEQ(callee, numbers[function]), here, next);
				b.SetInsertPoint(here);
				std::vector<Value *> args(call->arg_begin(), call->arg_end());
				auto *made = b.CreateCall(function, args);
				made->setCallingConv(function->getCallingConv());
				if (result)
					result->addIncoming(made, here);
				b.CreateBr(tail);
				from = next;
			}
			IRBuilder<> b(from);
			// No function has this number: the memory is damaged.
			b.CreateCall(stop, {b.getInt32(1 << 20)});
			b.CreateUnreachable();
			call->eraseFromParent();
		}
		for (Function *function : taken) {
			Constant *number = numbers[function];
			std::vector<Use *> uses;
			for (Use &use : function->uses())
				if (auto *call = dyn_cast<CallBase>(use.getUser()); !call || !call->isCallee(&use))
					uses.push_back(&use);
			for (Use *use : uses) {
				if (auto *constant = dyn_cast<Constant>(use->getUser()); constant && !isa<GlobalValue>(constant))
					constant->handleOperandChange(function, number);
				else
					use->set(number);
			}
		}
		return PreservedAnalyses::none();
	}
	static bool isRequired() { return true; }
};

// ------------------------------------------------------------------------------------------------------
// gw-unwind

// The kernel allows no function that calls itself. Such a function becomes a chain of copies, one for each
// level; the deepest level is a place that sets `gw_broken`.
struct Unwind : PassInfoMixin<Unwind> {
	// A packet has six next hops, so a tree of routes has seven levels.
	static constexpr unsigned LEVELS = 7;

	static std::vector<CallInst *> calls(Function &from, Function &to)
	{
		std::vector<CallInst *> found;
		for (Instruction &inst : instructions(from))
			if (auto *call = dyn_cast<CallInst>(&inst); call && call->getCalledFunction() == &to)
				found.push_back(call);
		return found;
	}

	// Inlines a function of a group that calls itself through others. Returns false if there is no group.
	static bool join(Module &module)
	{
		CallGraph graph(module);
		for (auto scc = scc_begin(&graph); !scc.isAtEnd(); ++scc) {
			if (scc->size() < 2)
				continue;
			Function *smallest = nullptr;
			for (CallGraphNode *node : *scc) {
				Function *function = node->getFunction();
				if (function && calls(*function, *function).empty() &&
				    (!smallest || function->getInstructionCount() < smallest->getInstructionCount()))
					smallest = function;
			}
			if (!smallest)
				continue;
			std::vector<User *> users(smallest->user_begin(), smallest->user_end());
			for (User *user : users)
				if (auto *call = dyn_cast<CallInst>(user)) {
					InlineFunctionInfo info;
					(void)InlineFunction(*call, info);
				}
			return true;
		}
		return false;
	}

	PreservedAnalyses run(Module &module, ModuleAnalysisManager &)
	{
		for (unsigned turn = 0; turn < 20 && join(module); turn++)
			;
		std::vector<Function *> all;
		for (Function &function : module)
			if (!function.isDeclaration() && !calls(function, function).empty())
				all.push_back(&function);
		FunctionCallee stop = module.getFunction(STOP_AT);
		for (Function *first : all) {
			std::vector<Function *> levels = {first};
			for (unsigned level = 1; level < LEVELS; level++) {
				ValueToValueMapTy map;
				levels.push_back(CloneFunction(first, map));
			}
			// A clone calls itself where the original did.
			for (unsigned level = 0; level < LEVELS; level++) {
				Function *at = levels[level];
				std::vector<CallInst *> found = calls(*at, *at);
				if (at != first)
					for (CallInst *call : calls(*at, *first))
						found.push_back(call);
				for (CallInst *call : found) {
					if (level + 1 < LEVELS) {
						call->setCalledFunction(levels[level + 1]);
						continue;
					}
					IRBuilder<> b(call);
					b.CreateCall(stop, {b.getInt32((1 << 20) + 1)});
					changeToUnreachable(call);
				}
			}
		}
		return PreservedAnalyses::none();
	}
	static bool isRequired() { return true; }
};

// ------------------------------------------------------------------------------------------------------
// gw-flatten

// The kernel allows eight calls within each other, the program itself included. On chains that are longer,
// the functions whose copies are smallest are inlined.
struct Flatten : PassInfoMixin<Flatten> {
	static constexpr unsigned MOST = 7;

	static bool is_leaf(const Instruction &inst)
	{
		// These become calls of functions that copy.
		return isa<MemIntrinsic>(inst);
	}

	unsigned depth(const Function *function, DenseMap<const Function *, unsigned> &known, unsigned at)
	{
		auto found = known.find(function);
		if (found != known.end())
			return found->second;
		unsigned most = 0;
		if (at < 64)
			for (const Instruction &inst : instructions(*function)) {
				if (is_leaf(inst))
					most = std::max(most, 1u);
				if (auto *call = dyn_cast<CallInst>(&inst))
					if (Function *callee = call->getCalledFunction(); callee && !callee->isDeclaration())
						most = std::max(most, depth(callee, known, at + 1));
			}
		return known[function] = most + 1;
	}

	PreservedAnalyses run(Module &module, ModuleAnalysisManager &)
	{
		CallGraph graph(module);
		for (auto scc = scc_begin(&graph); !scc.isAtEnd(); ++scc)
			if (scc.hasCycle()) {
				errs() << "gw-flatten: a function calls itself\n";
				return PreservedAnalyses::all();
			}
		for (unsigned turn = 0; turn < 200; turn++) {
			DenseMap<const Function *, unsigned> known;
			Function *root = nullptr;
			for (Function &function : module)
				if (!function.isDeclaration() && function.hasExternalLinkage() &&
				    (!root || depth(&function, known, 0) > depth(root, known, 0)))
					root = &function;
			if (!root || depth(root, known, 0) <= MOST)
				break;
			// Along the longest chain, the function of least cost.
			Function *best = nullptr;
			uint64_t least = UINT64_MAX;
			for (Function *at = root; at;) {
				Function *next = nullptr;
				for (Instruction &inst : instructions(*at))
					if (auto *call = dyn_cast<CallInst>(&inst))
						if (Function *callee = call->getCalledFunction(); callee && !callee->isDeclaration())
							if (!next || known[callee] > known[next])
								next = callee;
				if (!next || known[next] + 1 < known[at])
					break;
				uint64_t size = next->getInstructionCount(), sites = 0;
				for (User *user : next->users())
					sites += isa<CallInst>(user);
				if (!next->hasExternalLinkage() && size * sites < least) {
					least = size * sites;
					best = next;
				}
				at = next;
			}
			if (!best) {
				errs() << "gw-flatten: the calls within each other are too many\n";
				break;
			}
			std::vector<CallInst *> calls;
			for (User *user : best->users())
				if (auto *call = dyn_cast<CallInst>(user))
					calls.push_back(call);
			for (CallInst *call : calls) {
				InlineFunctionInfo info;
				if (!InlineFunction(*call, info).isSuccess())
					errs() << "gw-flatten: cannot inline " << best->getName() << "\n";
			}
			if (best->use_empty())
				best->eraseFromParent();
			else
				break;
		}
		return PreservedAnalyses::none();
	}
	static bool isRequired() { return true; }
};

// ------------------------------------------------------------------------------------------------------
// gw-arena

struct Arena : PassInfoMixin<Arena> {
	Module *module;
	LLVMContext *context;
	const DataLayout *layout;
	GlobalVariable *broken, *zero;
	bool failed = false;

	void fail(const Twine &what)
	{
		errs() << "gw-arena: " << what << "\n";
		failed = true;
	}

	GlobalVariable *scratch(Type *type, const Twine &name, Align align)
	{
		auto *made = new GlobalVariable(*module, type, false, GlobalValue::InternalLinkage,
						Constant::getNullValue(type), name);
		made->setAlignment(align);
		return made;
	}

	// True for functions with a body. The C of the shim is linked later, and compiled for BPF as it is.
	static bool ours(const Function &function)
	{
		return !function.isDeclaration();
	}

	void stop(Instruction *at, uint64_t number)
	{
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

	// Panics and what cannot be reached: sets `gw_broken` and returns.
	void stops(Function &function)
	{
		std::vector<UnreachableInst *> ends;
		for (BasicBlock &block : function)
			if (auto *end = dyn_cast<UnreachableInst>(block.getTerminator()))
				ends.push_back(end);
		for (UnreachableInst *end : ends) {
			uint64_t number = 1ull << 32;
			if (auto *call = dyn_cast_or_null<CallInst>(end->getPrevNode()))
				if (Function *callee = call->getCalledFunction(); callee && callee->getName() == STOP_AT) {
					number = cast<ConstantInt>(call->getArgOperand(0))->getZExtValue();
					call->eraseFromParent();
				}
			stop(end, number);
		}
	}

	// Keeps the values that live across blocks in the arena: each read or write of them is one.
	void demote(Function &function, FunctionAnalysisManager &functions)
	{
		SmallPtrSet<Instruction *, 16> before;
		for (Instruction &inst : instructions(function))
			if (isa<AllocaInst>(inst))
				before.insert(&inst);
		RegToMemPass().run(function, functions);
		for (Instruction &inst : instructions(function))
			if (isa<AllocaInst>(inst) && !before.contains(&inst))
				for (User *user : inst.users()) {
					if (auto *load = dyn_cast<LoadInst>(user))
						load->setVolatile(true);
					else if (auto *store = dyn_cast<StoreInst>(user))
						store->setVolatile(true);
				}
	}

	// The verifier wants a value in each register that is read or passed on.
	void defined(Function &function)
	{
		for (Instruction &inst : instructions(function))
			for (Use &use : inst.operands())
				if (isa<UndefValue>(use.get()))
					use.set(Constant::getNullValue(use->getType()));
	}

	void copy(IRBuilder<> &b, Value *to, Value *from, uint64_t size, Align align)
	{
		// All words are read before the first is written, so that the two may overlap.
		std::vector<std::pair<Value *, uint64_t>> words;
		for (uint64_t at = 0; at < size;) {
			uint64_t step = 8;
			while (at + step > size || step > commonAlignment(align, at).value() * 8)
				step /= 2;
			Type *type = b.getIntNTy(step * 8);
			Value *source = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), from, at);
			words.push_back({b.CreateAlignedLoad(type, source, Align(1)), at});
			at += step;
		}
		for (auto [word, at] : words)
			b.CreateAlignedStore(word, b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), to, at), Align(1));
	}

	void memory(Function &function)
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
			case Intrinsic::memmove: {
				auto *transfer = cast<MemTransferInst>(known);
				auto *size = dyn_cast<ConstantInt>(transfer->getLength());
				if (size && size->getZExtValue() <= 256) {
					// At most five words at a time are in registers, unless the two may overlap.
					uint64_t all = size->getZExtValue();
					bool overlaps = known->getIntrinsicID() == Intrinsic::memmove;
					uint64_t chunk = overlaps ? all : 32;
					for (uint64_t at = 0; at < all; at += chunk)
						copy(b, b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), transfer->getRawDest(), at),
						     b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), transfer->getRawSource(), at),
						     std::min(chunk, all - at), Align(8));
				} else {
					runtime(b, "gw_copy", {transfer->getRawDest(), transfer->getRawSource(),
							       b.CreateZExt(transfer->getLength(), b.getInt64Ty())});
				}
				break;
			}
			case Intrinsic::memset:
			case Intrinsic::memset_inline: {
				auto *set = cast<MemSetInst>(known);
				auto *size = dyn_cast<ConstantInt>(set->getLength());
				Value *byte = b.CreateZExt(set->getValue(), b.getInt64Ty());
				Value *word = b.CreateMul(byte, b.getInt64(0x0101010101010101ull));
				if (size && size->getZExtValue() <= 256) {
					uint64_t all = size->getZExtValue();
					for (uint64_t at = 0; at < all;) {
						uint64_t step = 8;
						while (at + step > all)
							step /= 2;
						Value *part = b.CreateTrunc(word, b.getIntNTy(step * 8));
						Value *place = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), set->getRawDest(), at);
						b.CreateAlignedStore(part, place, Align(1));
						at += step;
					}
				} else {
					runtime(b, "gw_fill", {set->getRawDest(), word, b.CreateZExt(set->getLength(), b.getInt64Ty())});
				}
				break;
			}
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

	void runtime(IRBuilder<> &b, StringRef name, ArrayRef<Value *> args)
	{
		Function *function = module->getFunction(name);
		if (!function)
			return fail("there is no function " + name);
		b.CreateCall(function, args)->setCallingConv(function->getCallingConv());
	}

	// Variables of a function that are not registers become variables of the program. A qdisc is called under
	// its lock, and no function calls itself, so there is one of each.
	void variables(Function &function)
	{
		std::vector<AllocaInst *> found;
		for (Instruction &inst : instructions(function))
			if (auto *variable = dyn_cast<AllocaInst>(&inst))
				found.push_back(variable);
		for (AllocaInst *variable : found) {
			if (!variable->isStaticAlloca()) {
				fail("a variable of unknown size in " + function.getName());
				continue;
			}
			Type *type = variable->getAllocatedType();
			if (auto *count = dyn_cast<ConstantInt>(variable->getArraySize()); count && !count->isOne())
				type = ArrayType::get(type, count->getZExtValue());
			variable->replaceAllUsesWith(scratch(type, "gw_var", variable->getAlign()));
			variable->eraseFromParent();
		}
	}

	static unsigned registers(Type *type, const DataLayout &layout)
	{
		return std::max<uint64_t>(1, (layout.getTypeSizeInBits(type).getFixedValue() + 63) / 64);
	}

	// Arguments beyond the fifth register, and results that need more than one, are passed in memory.
	void signatures()
	{
		std::vector<Function *> all;
		for (Function &function : *module)
			if (ours(function))
				all.push_back(&function);
		for (Function *function : all) {
			FunctionType *old = function->getFunctionType();
			Type *result = old->getReturnType();
			Type *word = Type::getInt64Ty(*context);
			bool indirect = !result->isVoidTy() && (result->isAggregateType() || registers(result, *layout) > 1);
			GlobalVariable *place = indirect ? scratch(result, "gw_result", Align(16)) : nullptr;
			// A function whose address is taken keeps its arguments; `dispatch` has the others.
			std::vector<Type *> types;
			std::vector<GlobalVariable *> spilled(old->getNumParams());
			unsigned used = 0;
			for (unsigned i = 0; i < old->getNumParams(); i++) {
				unsigned needs = registers(old->getParamType(i), *layout);
				if (used + needs > 5 || old->getParamType(i)->isAggregateType()) {
					spilled[i] = scratch(old->getParamType(i), "gw_arg", Align(16));
				} else {
					used += needs;
					types.push_back(old->getParamType(i));
				}
			}
			// The verifier wants a number as the result of each global function.
			Type *returns = indirect || result->isVoidTy() ? word : result;
			auto *type = FunctionType::get(returns, types, false);
			Function *made = Function::Create(type, GlobalValue::ExternalLinkage, "", module);
			made->takeName(function);
			made->splice(made->begin(), function);
			made->addFnAttr(Attribute::NoUnwind);
			if (function->hasFnAttribute(Attribute::NoInline))
				made->addFnAttr(Attribute::NoInline);
			made->setSubprogram(nullptr);
			IRBuilder<> b(&*made->getEntryBlock().getFirstInsertionPt());
			unsigned next = 0;
			for (unsigned i = 0; i < old->getNumParams(); i++) {
				Value *arg;
				if (spilled[i])
					arg = b.CreateLoad(old->getParamType(i), spilled[i]);
				else
					arg = made->getArg(next++);
				function->getArg(i)->replaceAllUsesWith(arg);
			}
			for (BasicBlock &block : *made) {
				auto *end = dyn_cast<ReturnInst>(block.getTerminator());
				if (!end || returns == result)
					continue;
				b.SetInsertPoint(end);
				if (indirect)
					b.CreateStore(end->getReturnValue(), place);
				b.CreateRet(b.getInt64(0));
				end->eraseFromParent();
			}
			std::vector<User *> users(function->user_begin(), function->user_end());
			for (User *user : users) {
				auto *call = dyn_cast<CallInst>(user);
				if (!call || call->getCalledOperand() != function)
					continue;
				b.SetInsertPoint(call);
				std::vector<Value *> args;
				for (unsigned i = 0; i < old->getNumParams(); i++) {
					if (spilled[i])
						b.CreateStore(call->getArgOperand(i), spilled[i]);
					else
						args.push_back(call->getArgOperand(i));
				}
				Value *gives = b.CreateCall(type, made, args);
				if (indirect)
					gives = b.CreateLoad(result, place);
				if (!result->isVoidTy())
					call->replaceAllUsesWith(gives);
				call->eraseFromParent();
			}
			if (!function->use_empty())
				function->replaceAllUsesWith(made);
			function->eraseFromParent();
		}
	}

	// Each loop asks the kernel for leave before each turn.
	void loops(Function &function)
	{
		DominatorTree tree(function);
		LoopInfo info(tree);
		uint64_t place = 0;
		for (Loop *loop : info.getLoopsInPreorder()) {
			BasicBlock *header = loop->getHeader();
			SmallVector<BasicBlock *> latches;
			loop->getLoopLatches(latches);
			// The verifier then tries no number of turns that it knows, but the turn in general. It knows
			// constants, and values after a comparison with one.
			DenseMap<BasicBlock *, Value *> hidden;
			for (PHINode &phi : header->phis()) {
				bool pointer = phi.getType()->isPointerTy();
				if (!pointer && (!phi.getType()->isIntegerTy() || phi.getType()->getIntegerBitWidth() > 64))
					continue;
				for (unsigned i = 0; i < phi.getNumIncomingValues(); i++) {
					Value *start = phi.getIncomingValue(i);
					BasicBlock *from = phi.getIncomingBlock(i);
					IRBuilder<> b(from->getTerminator());
					Value *&nothing = hidden[from];
					if (!nothing)
						nothing = b.CreateLoad(b.getInt64Ty(), zero, true);
					phi.setIncomingValue(i, pointer ? b.CreateGEP(b.getInt8Ty(), start, {nothing})
									: b.CreateAdd(b.CreateTrunc(nothing, phi.getType()), start));
				}
			}
			for (BasicBlock *latch : latches) {
				BasicBlock *ask = SplitEdge(latch, header, &tree, &info);
				BasicBlock *refused = BasicBlock::Create(*context, "refused", &function);
				IRBuilder<> b(refused);
				stop(b.CreateUnreachable(), (2ull << 32) + ++place);
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

	// Within a loop the verifier compares the cases that meet by the ranges of their values, so each constant
	// makes a case of its own. An unknown value makes none.
	void hide(Function &function)
	{
		DominatorTree tree(function);
		LoopInfo info(tree);
		DenseMap<BasicBlock *, Value *> hidden;
		for (BasicBlock &block : function) {
			if (!info.getLoopFor(&block))
				continue;
			for (PHINode &phi : block.phis())
				for (unsigned i = 0; i < phi.getNumIncomingValues(); i++) {
					auto *start = dyn_cast<ConstantInt>(phi.getIncomingValue(i));
					BasicBlock *from = phi.getIncomingBlock(i);
					if (!start || phi.getType()->getIntegerBitWidth() > 64 || phi.getType()->isIntegerTy(1) ||
					    isa<CallBrInst>(from->getTerminator()))
						continue;
					IRBuilder<> b(from->getTerminator());
					Value *&nothing = hidden[from];
					if (!nothing)
						nothing = b.CreateLoad(b.getInt64Ty(), zero, true);
					phi.setIncomingValue(i, b.CreateAdd(b.CreateTrunc(nothing, phi.getType()), start));
				}
		}
	}

	// A comparison tells the verifier about the values that it compares. Here it compares copies, so that a turn
	// of a loop learns nothing that the next turn would have to distinguish.
	void forget(Function &function)
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
			Value *nothing = nullptr;
			for (ICmpInst *compare : found)
				for (Use &use : compare->operands()) {
					Value *value = use.get();
					Type *type = value->getType();
					if (isa<Constant>(value) || !(type->isPointerTy() || type->isIntegerTy()) ||
					    (type->isIntegerTy() && type->getIntegerBitWidth() > 64))
						continue;
					IRBuilder<> b(compare);
					if (!nothing)
						nothing = b.CreateLoad(b.getInt64Ty(), zero, true);
					use.set(type->isPointerTy() ? b.CreateGEP(b.getInt8Ty(), value, {nothing})
								    : b.CreateAdd(b.CreateTrunc(nothing, type), value));
				}
		}
	}

	// A constant without pointers. Those it had are returned with their places.
	Constant *numbers(Constant *old, uint64_t at, std::vector<std::pair<uint64_t, Constant *>> &pointers)
	{
		Type *type = old->getType();
		if (type->isPointerTy()) {
			// The number of a function is a value already.
			if (auto *number = dyn_cast<ConstantExpr>(old); number && number->getOpcode() == Instruction::IntToPtr)
				return old;
			if (!old->isNullValue() && !isa<UndefValue>(old))
				pointers.push_back({at, old});
			return Constant::getNullValue(type);
		}
		if (auto *number = dyn_cast<ConstantExpr>(old); number && number->getOpcode() == Instruction::PtrToInt) {
			pointers.push_back({at, number->getOperand(0)});
			return Constant::getNullValue(type);
		}
		if (isa<ConstantData>(old))
			return isa<UndefValue>(old) ? Constant::getNullValue(type) : old;
		std::vector<Constant *> parts;
		if (auto *record = dyn_cast<ConstantStruct>(old)) {
			const StructLayout *offsets = layout->getStructLayout(record->getType());
			for (unsigned i = 0; i < record->getNumOperands(); i++)
				parts.push_back(numbers(record->getOperand(i), at + offsets->getElementOffset(i), pointers));
			return ConstantStruct::get(record->getType(), parts);
		}
		if (auto *array = dyn_cast<ConstantArray>(old)) {
			uint64_t size = layout->getTypeAllocSize(array->getType()->getElementType());
			for (unsigned i = 0; i < array->getNumOperands(); i++)
				parts.push_back(numbers(array->getOperand(i), at + i * size, pointers));
			return ConstantArray::get(array->getType(), parts);
		}
		fail("an initial value of another kind");
		return Constant::getNullValue(type);
	}

	// Variables and constants of the program lie in the arena. The verifier sees their addresses as numbers.
	void globals()
	{
		std::vector<GlobalVariable *> all;
		for (GlobalVariable &global : module->globals())
			if (global.getAddressSpace() == 0 && !global.getName().starts_with("llvm.") &&
			    !global.hasSection() && !global.isDeclaration())
				all.push_back(&global);
		std::vector<std::tuple<GlobalVariable *, uint64_t, Constant *>> fixes;
		for (GlobalVariable *global : all) {
			std::vector<std::pair<uint64_t, Constant *>> pointers;
			Constant *value = numbers(global->getInitializer(), 0, pointers);
			global->setInitializer(value);
			for (auto [at, target] : pointers)
				fixes.push_back({global, at, target});
		}
		// Pointers in initial values are written by a function, since the loader does not relocate them.
		IRBuilder<> b(*context);
		auto *init = Function::Create(FunctionType::get(b.getInt64Ty(), false), GlobalValue::ExternalLinkage,
					      "gw_pointers", module);
		b.SetInsertPoint(BasicBlock::Create(*context, "", init));
		for (auto [global, at, target] : fixes) {
			if (isa<Function>(target->stripPointerCasts()))
				continue;
			b.CreateStore(target, b.CreateConstGEP1_64(b.getInt8Ty(), global, at));
		}
		b.CreateRet(b.getInt64(0));
		std::vector<Constant *> constants(all.begin(), all.end());
		convertUsersOfConstantsToInstructions(constants);
		for (GlobalVariable *global : all) {
			auto *made = new GlobalVariable(*module, global->getValueType(), false, global->getLinkage(),
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
				auto *user = dyn_cast<Instruction>(use->getUser());
				if (!user) {
					fail("a use of " + made->getName() + " that is no instruction");
					continue;
				}
				Instruction *at = user;
				if (auto *phi = dyn_cast<PHINode>(user))
					at = phi->getIncomingBlock(*use)->getTerminator();
				b.SetInsertPoint(at);
				use->set(b.CreateIntToPtr(b.CreatePtrToInt(made, b.getInt64Ty()), b.getPtrTy()));
			}
			if (global->use_empty())
				global->eraseFromParent();
		}
	}

	// The variable of the program whose address this is.
	static GlobalVariable *variable(Value *base)
	{
		auto *pointer = dyn_cast<Operator>(base);
		if (!pointer || pointer->getOpcode() != Instruction::IntToPtr)
			return nullptr;
		auto *number = dyn_cast<Operator>(pointer->getOperand(0));
		if (!number || number->getOpcode() != Instruction::PtrToInt)
			return nullptr;
		return dyn_cast<GlobalVariable>(number->getOperand(0));
	}

	// The instruction that reads or writes casts the number to a pointer.
	void accesses(Function &function)
	{
		MapVector<std::pair<BasicBlock *, GlobalVariable *>, Value *> casts;
		std::vector<Instruction *> found;
		for (Instruction &inst : instructions(function))
			if (isa<LoadInst>(inst) || isa<StoreInst>(inst))
				found.push_back(&inst);
		for (Instruction *inst : found) {
			Value *pointer = getLoadStorePointerOperand(inst);
			if (pointer->getType()->getPointerAddressSpace() != 0)
				continue;
			APInt offset(64, 0);
			Value *base = pointer->stripAndAccumulateConstantOffsets(*layout, offset, true);
			if (!offset.isSignedIntN(15) || base->getType() != pointer->getType()) {
				base = pointer;
				offset = 0;
			}
			IRBuilder<> b(inst);
			Value *kernel;
			if (GlobalVariable *global = variable(base)) {
				// One cast for each block. If all blocks shared one, it would be kept on the stack.
				Value *&known = casts[{inst->getParent(), global}];
				if (!known) {
					auto *type = FunctionType::get(b.getPtrTy(), {PointerType::get(*context, 1)}, false);
					std::string text = "$0 = addr_space_cast($1, 0, 1) // " + std::to_string(casts.size());
					auto *cast = b.CreateCall(type, InlineAsm::get(type, text, "=r,r", false), {global});
					cast->setDoesNotAccessMemory();
					known = cast;
				}
				kernel = known;
			} else {
				// Next to the value, so that all accesses through it share the cast.
				Value *number = b.CreatePtrToInt(base, b.getInt64Ty());
				Value *user = b.CreateIntToPtr(number, PointerType::get(*context, 1));
				kernel = b.CreateAddrSpaceCast(user, PointerType::get(*context, 0));
			}
			if (!offset.isZero())
				kernel = b.CreateConstGEP1_64(b.getInt8Ty(), kernel, offset.getSExtValue());
			// The arena is memory of x86-64 or arm64, where words need no alignment.
			Align natural(std::min<uint64_t>(8, PowerOf2Ceil(layout->getTypeStoreSize(getLoadStoreType(inst)))));
			if (auto *load = dyn_cast<LoadInst>(inst))
				load->setAlignment(natural);
			else
				cast<StoreInst>(inst)->setAlignment(natural);
			bool reads = isa<LoadInst>(inst);
			inst->setOperand(reads ? LoadInst::getPointerOperandIndex() : StoreInst::getPointerOperandIndex(),
					 kernel);
		}
	}

	// Types for BTF: every argument and every result is a number of 64 bits.
	void types()
	{
		DIBuilder builder(*module);
		DIFile *file = builder.createFile("giveway.rs", ".");
		builder.createCompileUnit(DISourceLanguageName(dwarf::DW_LANG_C99), file, "giveway", true, "", 0);
		DIType *word = builder.createBasicType("gw_word", 64, dwarf::DW_ATE_unsigned);
		for (Function &function : *module) {
			if (!ours(function))
				continue;
			std::vector<Metadata *> types = {word};
			for (Argument &arg : function.args())
				for (unsigned i = 0; i < registers(arg.getType(), *layout); i++)
					types.push_back(word);
			auto *type = builder.createSubroutineType(builder.getOrCreateTypeArray(types));
			auto flags = DISubprogram::SPFlagDefinition | DISubprogram::SPFlagOptimized;
			auto *program = builder.createFunction(file, function.getName(), function.getName(), file, 1, type, 1,
							       DINode::FlagPrototyped, flags);
			for (unsigned i = 0; i + 1 < types.size(); i++)
				builder.createParameterVariable(program, ("a" + Twine(i)).str(), i + 1, file, 1, word, true);
			function.setSubprogram(program);
			for (Instruction &inst : instructions(function))
				if (isa<CallInst>(inst))
					inst.setDebugLoc(DILocation::get(*context, 1, 0, program));
		}
		builder.finalize();
	}

	// Short names that the kernel accepts and a reader of the verifier's log recognises.
	void names()
	{
		unsigned number = 0;
		for (Function &function : *module) {
			if (!ours(function) || function.getName().starts_with("gw_"))
				continue;
			std::string full = demangle(function.getName()), name;
			for (char c : full) {
				if (isalnum(c))
					name += c;
				else if (!name.empty() && name.back() != '_')
					name += '_';
			}
			if (name.size() > 70)
				name = name.substr(name.size() - 70);
			function.setName("r" + Twine(++number) + "_" + name);
		}
	}

	void recursion()
	{
		CallGraph graph(*module);
		for (auto scc = scc_begin(&graph); !scc.isAtEnd(); ++scc)
			if (scc.hasCycle())
				for (CallGraphNode *node : *scc)
					if (node->getFunction())
						fail("a function that calls itself: " + demangle(node->getFunction()->getName()));
	}

	PreservedAnalyses run(Module &all, ModuleAnalysisManager &analyses)
	{
		module = &all;
		context = &all.getContext();
		layout = &all.getDataLayout();
		StripDebugInfo(all);
		Type *word = Type::getInt64Ty(*context);
		broken = module->getGlobalVariable("gw_broken");
		if (!broken) {
			broken = scratch(word, "gw_broken", Align(8));
			broken->setLinkage(GlobalValue::ExternalLinkage);
		}
		zero = scratch(word, "gw_zero", Align(8));
		zero->setLinkage(GlobalValue::ExternalLinkage);
		recursion();
		names();
		auto &functions = analyses.getResult<FunctionAnalysisManagerModuleProxy>(all).getManager();
		for (Function &function : all)
			if (ours(function)) {
				stops(function);
				defined(function);
				if (is_contained(Demote, function.getName()))
					demote(function, functions);
				memory(function);
				variables(function);
			}
		signatures();
		for (Function &function : all)
			if (ours(function)) {
				if (Hide) {
					hide(function);
					forget(function);
				}
				loops(function);
				for (Instruction &inst : instructions(function))
					if (auto *call = dyn_cast<CallInst>(&inst); call && call->isIndirectCall())
						fail("a call through a pointer in " + function.getName());
			}
		globals();
		for (Function &function : all)
			if (ours(function))
				accesses(function);
		types();
		if (failed)
			errs() << "gw-arena: this program does not fit BPF\n";
		return PreservedAnalyses::none();
	}
	static bool isRequired() { return true; }
};

} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo llvmGetPassPluginInfo()
{
	return {LLVM_PLUGIN_API_VERSION, "giveway", "1", [](PassBuilder &builder) {
			builder.registerPipelineParsingCallback(
				[](StringRef name, ModulePassManager &passes, ArrayRef<PassBuilder::PipelineElement>) {
					if (name == "gw-sever")
						passes.addPass(Sever());
					else if (name == "gw-lower")
						passes.addPass(Lower());
					else if (name == "gw-dispatch")
						passes.addPass(Dispatch());
					else if (name == "gw-unwind")
						passes.addPass(Unwind());
					else if (name == "gw-flatten")
						passes.addPass(Flatten());
					else if (name == "gw-arena")
						passes.addPass(Arena());
					else
						return false;
					return true;
				});
		}};
}
