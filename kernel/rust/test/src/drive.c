// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Loads a discipline into the kernel, makes the same random operations there and in its native build, and
// compares all results: departures, drops with their reasons and order, marks, wake-up times and backlogs.
//
// The operations follow the contract suite: bursts and pauses, few flows, lengths of 40 to 1,500 bytes and
// some of any, changes of the rate, resets. The kernel makes each batch in one call (BPF_PROG_TEST_RUN).
// Operations and results lie in the arena, which this program maps.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef uint64_t u64;
typedef uint32_t u32;
typedef uint16_t u16;
typedef uint8_t u8;

// As in entry/src/call.rs and entry/src/test.rs.
struct arrival {
	u64 flow, label, reserved;
	u32 bytes, slot, offset, remaining;
	u16 class, from, to, hops[6];
	u8 ecn, header;
};
enum kind { ARRIVE, LEAVE, WAIT, RATE, RESET };
struct op {
	u64 after, rate;
	struct arrival arrival;
	u32 kind, padding;
};
#define OPS (1 << 13)
#define WORDS (1 << 16)
extern struct op gw_ops[OPS];
extern u64 gw_record[WORDS];

// As in main.bpf.c.
enum what { BUILD, TEST, WHERE };
struct args {
	u64 what, a, b, c;
};
#define BASE (1ull << 44)

// Memory for the discipline.
#define HEAP (64ull << 20)
#define FLOWS 16
#define MBIT 1000000ull

static int warnings(enum libbpf_print_level level, const char *format, va_list args)
{
	return level <= LIBBPF_WARN ? vfprintf(stderr, format, args) : 0;
}

// xorshift64* (Vigna 2016).
static u64 state = 88172645463325252ull;
static u64 word(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 2685821657736338717ull;
}

static u64 nanoseconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

// Offset of a variable in the arena's data.
static u64 offset(const char *elf, const char *name)
{
	const Elf64_Ehdr *header = (const void *)elf;
	const Elf64_Shdr *sections = (const void *)(elf + header->e_shoff);
	for (int i = 0; i < header->e_shnum; i++) {
		const Elf64_Sym *symbols = (const void *)(elf + sections[i].sh_offset);
		const char *names = elf + sections[sections[i].sh_link].sh_offset;
		if (sections[i].sh_type != SHT_SYMTAB)
			continue;
		for (u64 k = 0; k < sections[i].sh_size / sizeof *symbols; k++)
			if (!strcmp(names + symbols[k].st_name, name))
				return symbols[k].st_value;
	}
	fprintf(stderr, "there is no variable %s\n", name);
	exit(2);
}

static u32 serial;

static void arrive(struct arrival *a)
{
	static const u8 dscps[8] = {0, 8, 46, 34, 0, 16, 1, 63};
	static const int hops[8][6] = {
		{-1}, {1, -1}, {2, -1}, {1, 1, -1}, {1, 2, -1}, {2, 1, 1, -1}, {3, 1, 2, 1, 1, 4}, {3, 1, 2, 1, 1, 5},
	};
	static const u64 kbit[4] = {0, 64, 900, 3000};
	u32 flow = word() % FLOWS, length = word(), more = word(), bits = more & 0xffff;
	a->flow = flow;
	a->bytes = length % 64 == 0 ? 1 + (length >> 8) % 65535 : 40 + (length >> 8) % 1461;
	a->slot = serial++;
	a->from = flow / 4;
	a->to = flow % 5;
	a->class = (more >> 16) % 4;
	a->header = dscps[flow % 8] << 2 | (bits % 8 == 0) | (bits % 3 == 0) << 1;
	a->ecn = more >> 20 & 1 ? (bits / 4 % 4 == 3 ? 3 : bits / 4 % 4 == 0 ? 2 : 1) : 0;
	a->offset = serial * 700;
	a->remaining = bits * 8;
	a->label = bits % 8 == 2 || bits % 8 == 3 ? bits * 1000ull : 0;
	a->reserved = 1000 * (bits % 32 == 0 ? 0 : bits % 32 == 1 ? 2 * kbit[flow % 4] + 100 : kbit[flow % 4]);
	for (int i = 0; i < 6; i++)
		a->hops[i] = 0xffff;
	for (int i = 0; i < 6 && hops[flow % 8][i] >= 0; i++)
		a->hops[i] = hops[flow % 8][i];
}

// Phases of a thousand operations are balanced, too fast, or too slow.
static u32 phase;

static void operation(struct op *op)
{
	static const u32 arrivals[4] = {16, 20, 10, 15};
	u64 chance = word(), time = word();
	u32 kind = chance % 32, rare = (chance >> 8) % 256;
	memset(op, 0, sizeof *op);
	if (!(chance >> 40 & 1023))
		phase = chance >> 50 & 3;
	op->kind = kind < arrivals[phase] ? ARRIVE : kind < 29 ? LEAVE : WAIT;
	if (kind == 31 && rare == 0)
		op->kind = RESET;
	if (kind == 31 && rare > 0 && rare < 4)
		op->kind = RATE;
	// Up to 1.2 ms in picoseconds, rarely up to 65 ms, and very rarely up to 20 s.
	op->after = time % 1200000000ull / (phase + 1);
	if (!(time >> 40 & 15))
		op->after = (time >> 44 & 0xffff) * MBIT;
	if (kind == 31 && rare == 5)
		op->after = (chance >> 16) % 20000 * 1000000000ull;
	op->rate = 1000;
	for (u32 i = (chance >> 32) % 8; i > 0; i--)
		op->rate *= 10;
	arrive(&op->arrival);
}

static int differs(const u64 *native, const u64 *kernel, u64 words, u64 done)
{
	for (u64 at = 0; at < words; at++)
		if (native[at] != kernel[at]) {
			printf("DIFFER in the batch after %lu operations, word %lu: native %lx, kernel %lx\n", done, at,
			       native[at], kernel[at]);
			return 6;
		}
	return 0;
}

int gw_compare(const char *path, u64 (*build)(u64, u64, u64), u64 (*test)(u64), u64 total, u64 variant)
{
	static char log[1 << 24];
	struct args args = {WHERE};
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &args, .ctx_size_in = sizeof args);
	struct bpf_prog_info info = {};
	u32 info_size = sizeof info;
	size_t size, result_size;
	struct stat stat;
	u64 kernel_time = 0, native_time = 0, drops = 0, begun, native, loading;

	libbpf_set_print(warnings);
	int file = open(path, O_RDONLY);
	if (file < 0 || fstat(file, &stat))
		return perror(path), 2;
	const char *elf = mmap(0, stat.st_size, PROT_READ, MAP_PRIVATE, file, 0);
	struct bpf_object *object = bpf_object__open_file(path, 0);
	if (!object)
		return 2;
	struct bpf_program *program = bpf_object__find_program_by_name(object, "gw_main");
	bpf_program__set_log_level(program, 4);
	bpf_program__set_log_buf(program, log, sizeof log);
	begun = nanoseconds();
	int error = bpf_object__load(object);
	loading = nanoseconds() - begun;
	const char *processed = strstr(log, "processed ");
	if (error) {
		size_t length = strlen(log);
		printf("the kernel refuses it: %d\n%s\n", error, log + (length > 1500 ? length - 1500 : 0));
		return 3;
	}
	int fd = bpf_program__fd(program);
	bpf_prog_get_info_by_fd(fd, &info, &info_size);

	struct bpf_map *bss = bpf_object__find_map_by_name(object, ".bss");
	volatile u64 *result = bpf_map__initial_value(bss, &result_size);
	bpf_map__initial_value(bpf_object__find_map_by_name(object, "arena"), &size);
	if (bpf_prog_test_run_opts(fd, &run))
		return perror("the program cannot run"), 2;
	char *data = (char *)*result - offset(elf, "gw_call");
	volatile u64 *broken = (u64 *)(data + offset(elf, "gw_broken"));
	u64 *heap = (u64 *)(data + offset(elf, "gw_heap"));
	struct op *ops = (struct op *)(data + offset(elf, "gw_ops"));
	u64 *record = (u64 *)(data + offset(elf, "gw_record"));
	// The variables are at the start of the arena or at its end.
	u64 start = (u64)data == BASE ? BASE + (size + 4095) / 4096 * 4096 : BASE + 4096;
	// The kernel adds no page in a program, so each page is touched here.
	memset((void *)start, 0, HEAP);
	heap[0] = start;
	heap[1] = start + HEAP;

	args = (struct args){BUILD, variant, 10 * MBIT, 1};
	error = bpf_prog_test_run_opts(fd, &run);
	native = build(variant, 10 * MBIT, 1);
	if (native)
		return 5;
	if (error || *result || *broken) {
		printf("building fails: run %d, result %lu, broken %lx\n", error, *result, *broken);
		return 4;
	}
	u64 built = heap[0];
	for (u64 done = 0; done < total; done += OPS) {
		for (u32 i = 0; i < OPS; i++)
			operation(&gw_ops[i]);
		memcpy(ops, gw_ops, sizeof gw_ops);
		args = (struct args){TEST, OPS, 0, 0};
		begun = nanoseconds();
		error = bpf_prog_test_run_opts(fd, &run);
		kernel_time += nanoseconds() - begun;
		begun = nanoseconds();
		native = test(OPS);
		native_time += nanoseconds() - begun;
		if (differs(gw_record, record, native, done))
			return 6;
		if (error || *broken || *result != native || native >= WORDS) {
			printf("the run fails after %lu operations: run %d, broken %lx, words %lu and %lu\n", done, error,
			       *broken, native, *result);
			return 7;
		}
		for (u64 i = 0; i < native; i++)
			drops += gw_record[i] >> 62 == 1;
	}
	printf("equal: variant %lu, %lu drops; verifier %lu instructions in %lu ms; %u bytes of BPF, %u of machine "
	       "code; memory %lu kB built, %lu kB later; %lu ns an operation, natively %lu\n",
	       variant, drops, processed ? strtoull(processed + 10, 0, 10) : 0, loading / 1000000,
	       info.xlated_prog_len, info.jited_prog_len, (built - start) >> 10, (heap[0] - built) >> 10,
	       kernel_time / total, native_time / total);
	return 0;
}
