// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The part of gw-arena for the local variables of a function. The stack of the kernel has 512 bytes for all
// calls within each other, and a pointer to it is not a number. So what is not in a register becomes a
// variable of the program. The functions that the option `gw-demote` names also keep their registers there.
#include "arena.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Transforms/Scalar/Reg2Mem.h"

namespace giveway {

static cl::list<std::string> Demote("gw-demote", cl::CommaSeparated,
				    cl::desc("functions that keep their values in the arena"));

// Keeps the values that live across blocks in the arena: each read or write of them is one.
void demote_if_named(Function &function, FunctionAnalysisManager &functions)
{
	if (!is_contained(Demote, function.getName()))
		return;
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

// Variables of a function that are not registers become variables of the program. A qdisc is called under its
// lock, and no function calls itself, so there is one of each.
void move_variables(Function &function)
{
	std::vector<AllocaInst *> found;
	for (Instruction &inst : instructions(function))
		if (auto *local = dyn_cast<AllocaInst>(&inst))
			found.push_back(local);
	for (AllocaInst *local : found) {
		if (!local->isStaticAlloca())
			fail(function, "has a variable of unknown size");
		Type *type = local->getAllocatedType();
		if (auto *count = dyn_cast<ConstantInt>(local->getArraySize()); count && !count->isOne())
			type = ArrayType::get(type, count->getZExtValue());
		local->replaceAllUsesWith(variable(*function.getParent(), type, "gw_var", local->getAlign()));
		local->eraseFromParent();
	}
}

} // namespace giveway
