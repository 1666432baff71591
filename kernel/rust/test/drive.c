// SPDX-License-Identifier: MIT OR Apache-2.0
// Runs one discipline in the kernel and natively on the same random operations, and compares all results.
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
typedef uint64_t u64; typedef uint32_t u32; typedef uint16_t u16; typedef uint8_t u8;
#define CAT_(a, b, c) a##b##c
#define CAT(a, b, c) CAT_(a, b, c)
#define GW(what) CAT(gw_, NAME, what)
#define STR_(x) #x
#define STR(x) STR_(x)
struct arrival { u64 flow, label, reserved; u32 bytes, slot, offset, remaining; u16 class, from, to, hops[6]; u8 ecn, header; };
struct op { u64 after, rate; struct arrival arrival; u32 kind, padding; };
#define OPS (1 << 13)
#define WORDS (1 << 16)
extern struct op gw_ops[OPS]; extern u64 gw_record[WORDS];
extern u64 GW(_build)(u64, u64, u64); extern u64 GW(_test)(u64);
struct args { u64 what, a, b, c; };
static int quiet(enum libbpf_print_level level, const char *f, va_list a) { if (level <= LIBBPF_WARN && getenv("DBG")) return vfprintf(stderr, f, a); return 0; }
static u64 seed = 88172645463325252ull;
static u64 rnd(void) { seed ^= seed << 13; seed ^= seed >> 7; seed ^= seed << 17; return seed * 2685821657736338717ull; }
static u64 ns(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000ull + t.tv_nsec; }
static char *elf; static u64 symbol(const char *name) {
	Elf64_Ehdr *h = (void *)elf; Elf64_Shdr *s = (void *)(elf + h->e_shoff);
	for (int i = 0; i < h->e_shnum; i++) if (s[i].sh_type == SHT_SYMTAB) { char *str = elf + s[s[i].sh_link].sh_offset; Elf64_Sym *y = (void *)(elf + s[i].sh_offset);
		for (u64 k = 0; k < s[i].sh_size / sizeof *y; k++) if (!strcmp(str + y[k].st_name, name)) return y[k].st_value; }
	return -1ull; }
static u32 serial;
static const u8 dscps[8] = {0, 8, 46, 34, 0, 16, 1, 63};
// As the contract suite does: flows with fixed hosts, classes, reservations; lengths of 40 to 1500 bytes and a few of any.
static void arrival(struct arrival *a, u32 flows, int any) {
	u32 flow = rnd() % flows, r = rnd(); 
	memset(a, 0, sizeof *a); a->flow = flow; if (flows > 16) a->flow = flow * 0x9e3779b97f4a7c15ull;
	a->bytes = any && r % 64 == 0 ? 1 + (r >> 8) % 65535 : 40 + (r >> 8) % 1461;
	u64 q = rnd(); u32 bytes = q & 0xffff;
	a->slot = serial++; a->from = flow / 4; a->to = flow % 5; a->class = (q >> 16) % 4;
	a->header = dscps[flow % 8] << 2 | (bytes % 8 == 0) | (bytes % 3 == 0) << 1;
	a->ecn = (q >> 20) & 1 ? (bytes / 4 % 4 == 3 ? 3 : bytes / 4 % 4 == 0 ? 2 : 1) : 0;
	a->offset = serial * 700; a->remaining = bytes * 8;
	for (int i = 0; i < 6; i++) a->hops[i] = 0xffff;
	int hops[8][6] = {{-1},{1,-1},{2,-1},{1,1,-1},{1,2,-1},{2,1,1,-1},{3,1,2,1,1,4},{3,1,2,1,1,5}};
	for (int i = 0; i < 6 && hops[flow % 8][i] >= 0; i++) a->hops[i] = hops[flow % 8][i];
	u64 kbit[4] = {0, 64, 900, 3000}; a->reserved = 1000 * (bytes % 32 == 0 ? 0 : bytes % 32 == 1 ? 2 * kbit[flow % 4] + 100 : kbit[flow % 4]);
	a->label = bytes % 8 == 2 || bytes % 8 == 3 ? (u64)bytes * 1000 : 0;
}
int main(int c, char **v) {
	const char *path = v[1]; u64 total = c > 2 ? atoll(v[2]) : 1000000, variant = c > 3 ? atoll(v[3]) : 0; u32 flows = c > 4 ? atoi(v[4]) : 16; u64 rate = 10000000;
	libbpf_set_print(quiet);
	int f = open(path, O_RDONLY); struct stat st; fstat(f, &st); elf = mmap(0, st.st_size, PROT_READ, MAP_PRIVATE, f, 0);
	struct bpf_object *o = bpf_object__open_file(path, 0); if (!o) { puts("open failed"); return 2; }
	struct bpf_program *p = bpf_object__find_program_by_name(o, "gw_main");
	static char log[1 << 26]; bpf_program__set_log_level(p, getenv("LOG") ? atoi(getenv("LOG")) : 4); bpf_program__set_log_buf(p, log, sizeof log);
	u64 t0 = ns(); int e = bpf_object__load(o); u64 t1 = ns();
	if (getenv("LOGFILE")) { FILE *w = fopen(getenv("LOGFILE"), "w"); fputs(log, w); fclose(w); }
	if (e) { size_t n = strlen(log); printf("load failed %d\n%s\n", e, log + (n > 2500 ? n - 2500 : 0)); return 3; }
	char *q = strstr(log, "processed "); u64 insns = q ? strtoull(q + 10, 0, 10) : 0;
	struct bpf_prog_info info = {}; u32 len = sizeof info; bpf_prog_get_info_by_fd(bpf_program__fd(p), &info, &len);
	struct bpf_map *m = bpf_object__find_map_by_name(o, "arena"); size_t size; char *data = bpf_map__initial_value(m, &size);
	char *base = (char *)(1ull << 44); u64 *heap = (u64 *)(data + symbol("gw_heap")); volatile u64 *broken = (u64 *)(data + symbol("gw_broken"));
	struct op *ops = (void *)(data + symbol("gw_ops")); u64 *record = (u64 *)(data + symbol("gw_record"));
	u64 bytes = 48u << 20; char *start = data == base ? base + (size + 4095) / 4096 * 4096 : base + 4096; memset(start, 0, bytes); heap[0] = (u64)start; heap[1] = (u64)start + bytes;
	struct args args = {0, variant, rate, 1}; LIBBPF_OPTS(bpf_test_run_opts, t, .ctx_in = &args, .ctx_size_in = sizeof args); int fd = bpf_program__fd(p);
	e = bpf_prog_test_run_opts(fd, &t); 
	u64 native = GW(_build)(variant, rate, 1);
	struct bpf_map *bss = bpf_object__find_map_by_name(o, ".bss"); u64 result = bss ? *(u64 *)bpf_map__initial_value(bss, &size) : 99;
	if (e || native || result || *broken) { printf("build: run %d native %lu kernel %lu broken %lx\n", e, native, result, *broken); return native ? 5 : 4; }
	u64 used = heap[0] - (u64)start, tk = 0, tn = 0, words = 0, kinds[5] = {}, out[4] = {}; 
	u32 mode = 0;
	for (u64 done = 0; done < total;) {
		for (u32 i = 0; i < OPS; i++) { struct op *x = &gw_ops[i]; memset(x, 0, sizeof *x); u64 r = rnd(); u32 k = r % 32;
			if (!(r >> 40 & 1023)) mode = r >> 50 & 3;
			u32 arrivals = mode == 0 ? 16 : mode == 1 ? 20 : mode == 2 ? 10 : 15;
			x->kind = k < arrivals ? 0 : k < 29 ? 1 : k < 31 ? 2 : 5;
			if (x->kind == 5) { u32 w = (r >> 8) % 256; x->kind = w == 0 ? 4 : w < 4 ? 3 : 2; if (w == 5) x->after = (r >> 16) % 20000 * 1000000000ull; }
			x->after += (r >> 20) % 16 == 0 ? (r >> 24) % 65536 * 1000000 : (r >> 24) % 1200000000ull / (mode + 1);
			u64 step = (r >> 32) % 8; u64 p10 = 1; while (step--) p10 *= 10; x->rate = 1000 * p10;
			arrival(&x->arrival, flows, 1); kinds[x->kind]++; }
		memcpy(ops, gw_ops, sizeof gw_ops);
		args = (struct args){1, OPS, 0, 0}; u64 a = ns(); e = bpf_prog_test_run_opts(fd, &t); tk += ns() - a;
		a = ns(); u64 n = GW(_test)(OPS); tn += ns() - a;
		result = *(u64 *)bpf_map__initial_value(bss, &size);
		if (e || *broken || result != n || memcmp(record, gw_record, n * 8)) {
			for (int z = 0; getenv("DBG") && z < OPS; z++) if (memcmp(ops + z, gw_ops + z, sizeof *ops)) { printf("op %d damaged: kind %u, kernel %u\n", z, gw_ops[z].kind, ops[z].kind); break; } u64 i = 0; while (i < n && record[i] == gw_record[i]) i++;
			printf("DIFFER after %lu ops: run %d broken %lx words native %lu kernel %lu first at %lu: native %lx kernel %lx\n", done, e, *broken, n, result, i, gw_record[i], record[i]); if (getenv("DBG")) for (u64 z = i > 12 ? i - 12 : 0; z < i + 6; z++) printf("%lu: %lx %lx\n", z, gw_record[z], record[z]); for (int z = 0, w = 0; getenv("DBG") && z < 60; z++) printf("%u ", gw_ops[z].kind); return 6; }
		if (n >= WORDS) { puts("record full"); return 7; }
		for (u64 i = 0; i < n; i++) if (gw_record[i] >> 62 == 1) out[3]++;
		words += n; done += OPS; }
	printf("EQUAL %lu ops, variant %lu, insns verified %lu, load %lu ms, xlated %u B, jited %u B, heap at build %lu kB, later %lu kB, drops %lu, ns/op kernel %lu native %lu\n", total, variant, insns, (t1 - t0) / 1000000, info.xlated_prog_len, info.jited_prog_len, used >> 10, (heap[0] - (u64)start - used) >> 10, out[3], tk / total, tn / total);
	return 0;
}
