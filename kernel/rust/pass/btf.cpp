// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The part of gw-arena for BTF, the description of types that the kernel wants for each global function. It
// needs names that the kernel accepts, and the type of every argument and result: a number of 64 bits.
#include "arena.h"

#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/DIBuilder.h"
#include "llvm/IR/InstIterator.h"

namespace giveway {

// Letters that are kept of a name: its end, which says most.
static constexpr size_t LONGEST = 70;

// Short names that the kernel accepts and a reader of the verifier's log recognises.
void name_functions(Module &module)
{
	unsigned number = 0;
	for (Function &function : module) {
		if (!ours(function) || function.getName().starts_with("gw_"))
			continue;
		std::string full = demangle(function.getName()), name;
		for (char c : full) {
			if (isalnum(c))
				name += c;
			else if (!name.empty() && name.back() != '_')
				name += '_';
		}
		if (name.size() > LONGEST)
			name = name.substr(name.size() - LONGEST);
		function.setName("r" + Twine(++number) + "_" + name);
	}
}

void describe_types(Module &module)
{
	DIBuilder builder(module);
	DIFile *file = builder.createFile("giveway.rs", ".");
	builder.createCompileUnit(DISourceLanguageName(dwarf::DW_LANG_C99), file, "giveway", true, "", 0);
	DIType *word = builder.createBasicType("gw_word", 64, dwarf::DW_ATE_unsigned);
	for (Function &function : module) {
		if (!ours(function))
			continue;
		std::vector<Metadata *> types = {word};
		for (Argument &arg : function.args())
			for (unsigned i = 0; i < registers(arg.getType(), module.getDataLayout()); i++)
				types.push_back(word);
		auto *type = builder.createSubroutineType(builder.getOrCreateTypeArray(types));
		auto flags = DISubprogram::SPFlagDefinition | DISubprogram::SPFlagOptimized;
		StringRef name = function.getName();
		auto *program = builder.createFunction(file, name, name, file, 1, type, 1,
						       DINode::FlagPrototyped, flags);
		for (unsigned i = 0; i + 1 < types.size(); i++) {
			std::string argument = "a" + std::to_string(i);
			builder.createParameterVariable(program, argument, i + 1, file, 1, word, true);
		}
		function.setSubprogram(program);
		// A call within a function that has a description needs a place.
		for (Instruction &inst : instructions(function))
			if (isa<CallInst>(inst))
				inst.setDebugLoc(DILocation::get(module.getContext(), 1, 0, program));
	}
	builder.finalize();
}

} // namespace giveway
